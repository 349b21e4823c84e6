"""Exercises on masked training: masking judged by rules and by shares of chance, its loss, whole words."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from tinytx_course.exercises.card import Grid, Part
from tinytx_course.exercises.comparing import integers, number, pair, tokens
from tinytx_course.exercises.exercise import Exercise, generator, normal
from tinytx_course.exercises.losses import large_logits, on_large_logits
from tinytx_course.exercises.observation import Call, Failure
from tinytx_course.exercises.telling import tell_failure, tell_pass
from tinytx_course.exercises.verdict import Verdict

if TYPE_CHECKING:
    from tinytx_course.exercises.judging import Trial

_IGNORED = -100
_SIGMAS = 5.6  # of a binomial share: correct code is rejected less than once in ten million
_NEAR = 0.045  # between shares and a pattern they are taken for
_APART = 4  # times the variance of single draws: more, and tokens were drawn together
_WINDOW, _BEFORE = 12, 2  # positions of a row that are shown, of these before the first one marked
_MANY, _FEW = (4, [0, 1, 2, 3, 5, 58], 60), (3, [0, 1], 5)  # mask id, special ids, how many ids
# Shape of a batch, ids, p, salt of the generator: growing batches, then one of them with other generators.
_CASES = (
    ((1, 8), _MANY, 0.5, 100),
    ((3, 8), _MANY, 0.5, 101),
    ((6, 20), _MANY, 0.3, 102),
    ((30, 100), _MANY, 0.8, 103),
    ((130, 130), _FEW, 0.95, 104),
    *(((6, 20), _MANY, 0.3, salt) for salt in range(170, 178)),
)
_DRAWN_AGAIN, _LARGE, _FEW_IDS = 2, 3, 4


@dataclass(frozen=True)
class Draw:
    """What came of one call; inputs, labels and token ids have shape (B, T)."""

    inputs: Tensor
    labels: Tensor
    token_ids: Tensor
    mask_id: int
    special_ids: list[int]
    vocab_size: int
    p: float

    def is_special(self, ids: Tensor) -> Tensor:
        """Where special ids are."""
        return torch.isin(ids, torch.tensor(self.special_ids, device="cpu"))

    @property
    def special(self) -> Tensor:
        """Where the originals are special."""
        return self.is_special(self.token_ids)

    @property
    def drawn(self) -> Tensor:
        """Where there is a label."""
        return self.labels != _IGNORED

    @property
    def changed(self) -> Tensor:
        """Where the input differs from the original."""
        return self.inputs != self.token_ids

    @property
    def masked(self) -> Tensor:
        """Where a drawn token became the mask id."""
        return self.drawn & (self.inputs == self.mask_id)

    @property
    def fates(self) -> tuple[float, float, float]:
        """Shares of mask id, random ids and unchanged ones among the drawn tokens."""
        n, masked, stays = (int(x.sum()) for x in (self.drawn, self.masked, self.drawn & ~self.changed))
        return masked / max(n, 1), (n - masked - stays) / max(n, 1), stays / max(n, 1)


Finding = tuple[str, str, Tensor | None]  # slug, more words than those of the mistake, cells to mark


def _labels_of_draw(draw: Draw) -> Finding | None:
    """Rules on labels that hold whatever is drawn."""
    odd = draw.drawn & (draw.labels != draw.token_ids)
    if (draw.inputs == _IGNORED).any():
        return "exchanged", "", draw.inputs == _IGNORED
    if not draw.drawn.any() and not draw.changed.any():
        return None  # nothing drawn: the shares will show it
    if (draw.labels == draw.token_ids).all():
        return "labels-everywhere", "", ~draw.changed
    if odd.any() and (fill := _other_ignored_label(draw, odd)) is not None:
        return "other-ignored-label", f"Yours have {fill}.", odd
    if draw.changed.any() and not (draw.drawn & draw.changed).any():
        return "labels-reversed", "", draw.drawn
    if odd.any() and (draw.labels == draw.inputs)[draw.drawn].all():
        return "labels-are-new-ids", "", odd
    if odd.any() and (draw.labels == draw.mask_id)[odd].all():
        return "labels-are-new-ids", "This is the mask id.", odd
    return ("wrong-labels", "", odd) if odd.any() else None


def _other_ignored_label(draw: Draw, odd: Tensor) -> int | None:
    """The one odd label, if there is only one and it marks what is not predicted."""
    fill = draw.labels[odd].unique()
    if len(fill) != 1:
        return None
    is_no_id = (odd & ~draw.changed).any() and not (draw.token_ids[odd] == fill).any()
    is_frequent = (draw.labels[~draw.changed] == fill).float().mean() > 0.5
    return int(fill) if is_no_id or is_frequent else None


def _places(draw: Draw) -> Finding | None:
    """Rules on which tokens may be drawn and changed."""
    hit = draw.special & (draw.drawn | draw.changed)
    if hit.any():
        return "special-drawn", "", hit
    bare = draw.changed & ~draw.drawn
    if bare.any():
        masked = draw.inputs == draw.mask_id
        only_masked = masked.sum() > bare.sum() and torch.equal(masked, draw.drawn)
        return "only-masked-labelled" if only_masked else "changed-without-label", "", bare
    outside = (draw.inputs < 0) | (draw.inputs >= draw.vocab_size)
    if outside.any():
        return "id-outside-vocabulary", "", outside
    bad = draw.changed & draw.is_special(draw.inputs)
    return ("random-special-id", "", bad) if bad.any() else None


def _off(observed: float, expected: float, n: int) -> bool:
    """Whether a share of n lies too far from what it should be."""
    return abs(observed - expected) > _SIGMAS * math.sqrt(expected * (1 - expected) / n)


def _distance(shares: Sequence[float], pattern: Sequence[float]) -> float:
    return max(abs(share - due) for share, due in zip(shares, pattern, strict=True))


_PATTERNS = (  # shares of mask id, random ids and unchanged ones among the drawn tokens
    ((1, 0, 0), "always-mask-id"),
    ((0.9, 0.1, 0), "nothing-stays"),
    ((0.8, 0.2, 0), "nothing-stays"),
    ((0.8, 0, 0.2), "no-random-ids"),
    ((0.9, 0, 0.1), "no-random-ids"),
    ((0.8, 0.02, 0.18), "tenth-of-the-rest"),
    ((0.72, 0.1, 0.18), "overlapping-draws"),
    ((0.4, 0.5, 0.1), "half-overwritten"),
    ((0.1, 0.8, 0.1), "shares-exchanged"),
    ((0.1, 0.1, 0.8), "shares-exchanged"),
    ((1 / 3, 1 / 3, 1 / 3), "equal-shares"),
    ((0.15, 0.1, 0.75), "p-used-twice"),
)


def _shares(draw: Draw) -> Finding | None:
    """Shares on a large input."""
    n, drawn, fates = int((~draw.special).sum()), int(draw.drawn.sum()), draw.fates
    share = drawn / n
    masked, another, stayed = (f"{fate:.0%}" for fate in fates)
    described = f"Of the drawn tokens {masked} became `mask_id`, {another} another id, {stayed} stayed."
    if drawn and not draw.changed.any():
        return "input-unchanged", "", None
    if _distance([*fates, share / draw.p], [8 / 9, 1 / 9, 0.0, 0.9]) < _NEAR and fates[2] < 0.01:
        return "kept-without-label", described, None
    by_row, by_column = (_spread(draw.drawn, ~draw.special, axis) for axis in (1, 0))
    if by_row > _APART:
        return "whole-rows-drawn", "", None
    if by_column > _APART:
        return "same-places-in-all-rows", "", None
    if _off(share, draw.p, n):
        return _wrong_share(draw, share)
    if by_row < 0.1:
        return "same-number", "", None
    for axis, whose in ((1, "row"), (0, "column")):
        if _spread(draw.masked, draw.drawn, axis) > _APART:
            return "one-fate", f"Yours has one for each {whose}.", None
    if any(_off(fate, due, drawn) for fate, due in zip(fates, (0.8, 0.1, 0.1), strict=True)):
        near = [
            (_distance(fates, pattern), slug)
            for pattern, slug in _PATTERNS
            if _distance(fates, pattern) < _NEAR and (pattern[1] > 0) == (fates[1] > 0)
        ]
        return min(near)[1] if near else "wrong-shares", described, None
    others = draw.changed & ~draw.masked
    if len(draw.inputs[others].unique()) < 12:
        return "same-random-id", "", None
    rows, columns = others.nonzero().T
    for whose, keys in (("row", rows), ("column", columns), ("id", draw.token_ids[others])):
        pairs = torch.stack((keys, draw.inputs[others]), dim=1)
        if len(pairs.unique(dim=0)) == len(keys.unique()):
            return "same-random-id", f"Yours has one for each {whose}.", None
    ordinary = [i for i in range(draw.vocab_size) if i not in (*draw.special_ids, draw.mask_id)]
    upper = float((draw.inputs[others] >= ordinary[len(ordinary) // 2]).float().mean())
    if _off(upper, 0.5, int(others.sum())):
        words = f"Of the random ids {upper:.0%} are in the upper half of those allowed."
        return "id-never-drawn", words, None
    return None


def _spread(hit: Tensor, among: Tensor, axis: int) -> float:
    """Variance of the numbers in rows (axis 1) or columns (0), 1 where each token is drawn by itself."""
    n, share = among.sum(axis), float(hit.sum() / among.sum().clamp(min=1))
    if not 0 < share < 1:
        return 1.0
    return float(((hit.sum(axis) - share * n) ** 2 / (share * (1 - share) * n))[n > 0].mean())


def _few_ids(draw: Draw) -> Finding | None:
    """Which random ids there are; and the share of the mask id, which would be a third of them."""
    if not _off(masked := draw.fates[0], 0.8, int(draw.drawn.sum())):
        random_ids = draw.inputs[draw.changed & ~draw.masked].tolist()
        missing = set(range(draw.vocab_size)) - {*random_ids, *draw.special_ids, draw.mask_id}
        if missing:
            return "id-never-drawn", f"Of {draw.vocab_size} ids {min(missing)} is missing.", None
        allowed = draw.vocab_size - len(draw.special_ids) - 1
        least = 0.1 * (allowed - 1) / allowed  # a random id may be the token itself
        if draw.fates[1] > least or not _off(draw.fates[1], least, int(draw.drawn.sum())):
            return None
        words = f"With {allowed} ids allowed, {draw.fates[1]:.1%} of the drawn tokens became another one."
        return "not-replaced", words, None
    words = f"With {draw.vocab_size} ids, {masked:.1%} of the drawn tokens became `mask_id`."
    return "mask-id-drawn" if abs(masked - 0.8 - 0.1 / 3) < 0.015 else "wrong-shares", words, None


def _one_fate(draws: Sequence[Draw]) -> Finding | None:
    """Whether all drawn tokens of the large batch have one fate, and those of another batch another."""
    commonest = {one.fates.index(max(one.fates)) for i, one in enumerate(draws) if i != _FEW_IDS}
    return ("one-fate", "", None) if len(commonest) > 1 and max(draws[_LARGE].fates) > 0.95 else None


def _wrong_share(draw: Draw, share: float) -> Finding:
    slug = "wrong-share-drawn"
    if share in (0, 1):
        slug = "everything-drawn" if share else "nothing-drawn"
    elif abs(share - (1 - draw.p)) < 0.025:
        slug = "one-minus-p"
    elif abs(share - 0.15) < 0.025:
        slug = "p-ignored"
    elif abs(share - 1 + (1 - 0.8 * draw.p) * (1 - 0.1 * draw.p) ** 2) < 0.02:
        slug = "fates-drawn-separately"
    elif abs(share - 0.8 * draw.p) < 0.05 and torch.equal(draw.masked, draw.drawn):
        slug = "only-masked-labelled"
    words = f"With p = {draw.p}, {100 * share:.0f} % of the tokens that are not special have a label."
    return slug, words, None


def _calls(seed: int) -> Iterator[Call]:
    for shape, (mask_id, special, vocab_size), p, salt in _CASES:
        rng = generator(seed, 11)
        real = torch.tensor([i for i in range(vocab_size) if i not in (*special, mask_id)], device="cpu")
        token_ids = real[torch.randint(len(real), shape, generator=rng, device="cpu")]
        token_ids[:, 0], token_ids[:, -1] = special[-2], special[-1]
        if shape[0] > 1:
            token_ids[1, -2:] = torch.tensor([special[-1], special[0]], device="cpu")
        yield Call((token_ids, mask_id, list(special), vocab_size, p, generator(seed, salt)))


def _judge(exercise: Exercise, trials: Sequence[Trial], repeats: Sequence[Trial]) -> Verdict:
    """Rules that always hold first, shares on the largest batch, then where chance comes from."""
    drawn = (trial for trial in trials if trial.got is not None and trial.failure is None)
    draws = [_draw(trial) for trial in drawn]
    for case, trial in enumerate(trials[:-1]):
        finding, in_place = None, trial.failure is not None and trial.failure.mistake == "input-modified"
        if trial.got is not None and (trial.failure is None or in_place):
            draw = _draw(trial)
            finding = _labels_of_draw(draw)
            if not in_place:
                finding = finding or _places(draw)
                if case == _LARGE:
                    finding = finding or _one_fate(draws) or _shares(draw)
                elif case == _FEW_IDS:
                    finding = finding or _few_ids(draw)
            elif finding is not None and finding[0] == "labels-are-new-ids":
                finding = finding[0], "They were taken from an input that was changed in place.", finding[2]
            else:
                finding = None
        if finding is not None:
            return _tell(exercise, draw, finding)
        if trial.got is None or trial.failure is not None:
            return tell_failure(exercise, trial.failure, dataclasses.replace(trial, got=None))
    for trial in (trials[-1], *repeats):
        if trial.got is None or trial.failure is not None:
            return tell_failure(exercise, trial.failure, dataclasses.replace(trial, got=None))
    if (failure := _about_chance(trials, repeats)) is not None:
        return tell_failure(exercise, failure)
    if all(abs(int(one.drawn.sum()) - one.p * int((~one.special).sum())) < 1 for one in draws):
        return _tell(exercise, draws[0], ("same-number", "Yours counts them over all rows.", None))
    return tell_pass(exercise, trials[:-1])


def _draw(trial: Trial) -> Draw:
    assert trial.got is not None
    inputs, labels = trial.got.tensors
    return Draw(inputs, labels, *trial.call.arguments[:-1])


def _about_chance(trials: Sequence[Trial], repeats: Sequence[Trial]) -> Failure | None:
    """The generator, and nothing else, decides what is drawn."""
    first, again, other = trials[_DRAWN_AGAIN].got, repeats[_DRAWN_AGAIN].got, trials[-1].got
    assert first is not None and again is not None and other is not None
    if not again.agrees_with(first):
        words = "The same generator in the same state gave another result: draw with `generator=generator`."
        return Failure("generator-ignored", words)
    if other.agrees_with(first):
        words = "Another generator gave the very same result: draw from the generator that is given."
        return Failure("same-draw-every-time", words)
    return None


def _tell(exercise: Exercise, draw: Draw, finding: Finding) -> Verdict:
    slug, more, cells = finding
    mistake = next(one for one in exercise.mistakes if one.slug == slug)
    mistake = dataclasses.replace(mistake, words=f"{mistake.words} {more}".rstrip())
    parts = [] if cells is None else _first_row(draw, cells, _at_fault(slug, draw))
    return tell_failure(exercise, None, None, mistake, parts)


def _at_fault(slug: str, draw: Draw) -> tuple[str, ...]:
    """Which of the results breaks the rule."""
    if slug == "exchanged":
        return ("inputs", "labels")
    if slug == "special-drawn":
        hit = {"inputs": draw.changed & draw.special, "labels": draw.drawn & draw.special}
        return tuple(name for name, places in hit.items() if places.any())
    in_inputs = ("changed-without-label", "id-outside-vocabulary", "random-special-id")
    return ("inputs",) if slug in in_inputs else ("labels",)


def _first_row(draw: Draw, cells: Tensor, at_fault: tuple[str, ...]) -> list[Part]:
    """The first row with a cell to point at, from shortly before that cell on."""
    width = draw.token_ids.shape[1]
    row, first = cells.nonzero()[0].tolist() if cells.any() else (0, 0)
    begin = max(0, min(first - _BEFORE, width - _WINDOW))
    end = min(begin + _WINDOW, width)
    marks = frozenset((0, int(c)) for c in cells[row, begin:end].nonzero().flatten())
    name = f"[{row}]" + (f", positions {begin} to {end - 1}" if end - begin < width else "")
    grids = [
        Grid(f"{title}{name}", (tuple(str(v) for v in tensor[row, begin:end].tolist()),), marked)
        for title, tensor, marked in (
            ("token_ids", draw.token_ids, marks),
            ("inputs", draw.inputs, marks if "inputs" in at_fault else frozenset()),
            ("labels", draw.labels, marks if "labels" in at_fault else frozenset()),
        )
    ]
    wrong = " and ".join(at_fault)
    about = f"mask_id={draw.mask_id}, special ids {draw.special_ids}, p={draw.p}"
    return [f"Row {row}, {about}; wrong at the marked positions: {wrong}.", *((grid,) for grid in grids)]


def _masked_loss_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 12)
    sizes = (((1,), 2, 2), ((2,), 3, 3), ((2, 1), 3, 5), ((3, 1, 2), 5, 7), ((1, 4, 2), 7, 5))
    for n_chosen, width, vocab_size in sizes:
        ids = torch.randint(1, vocab_size, (len(n_chosen), width), generator=rng, device="cpu")
        labels = torch.full_like(ids, _IGNORED)
        for row, n in enumerate(n_chosen):
            places = torch.randperm(width, generator=rng, device="cpu")[:n]
            labels[row, places] = ids[row, places]
            if n > 1:
                labels[row, places[0]] = 0
        yield Call((2 * normal(rng, len(n_chosen), width, vocab_size), labels))


def _word_calls(seed: int) -> Iterator[Call]:
    for spaced, chosen in (
        ("▁le", [0]),
        ("▁le ▁chat", [0]),
        ("▁rom an", [1]),
        ("an ▁est ▁beau", [0]),
        ("▁rom an", [0]),
        ("▁le ▁rom an ▁noir", [2]),
        ("▁le ▁rom an ▁noir", []),
        ("▁le ▁rom an", [1, 2]),
        ("▁le ▁chat ▁le", [0]),
        ("▁b el le s ▁et ▁lon gue s", [6, 2]),
        ("an ▁est ▁be au .", [0, 3]),
    ):
        yield Call((spaced.split(), chosen))
    drawn = random.Random(seed)
    text = [drawn.choice(("▁le", "▁rom", "an", "▁lon", "gue", "s")) for _ in range(17)]
    yield Call((text, drawn.sample(range(17), 3)))


EXERCISES = (
    Exercise(name="mask_tokens", read=pair(integers, integers, "inputs, labels"), calls=_calls, judge=_judge),
    Exercise(
        name="masked_loss",
        read=number,
        calls=_masked_loss_calls,
        probe=large_logits(torch.tensor([[0, _IGNORED]])),
        hint=on_large_logits,
    ),
    Exercise(name="mask_words", read=tokens, calls=_word_calls),
)
