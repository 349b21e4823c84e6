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
from tinytx_course.exercises.observation import Call, Failure
from tinytx_course.exercises.telling import tell_failure, tell_pass
from tinytx_course.exercises.verdict import Verdict

if TYPE_CHECKING:
    from tinytx_course.exercises.judging import Trial

_IGNORED = -100
_SIGMAS = 5.6  # of a binomial share: correct code is rejected less than once in ten million
_NEAR = 0.045  # between shares and a pattern they are taken for
_VOCAB, _MASK_ID, _SPECIAL = 60, 4, [0, 1, 2, 3, 5, 58]  # on both sides of the mask id
_WINDOW, _BEFORE = 12, 2  # positions of a row that are shown, of these before the first one marked
# Shape of a batch, p, salt of the generator: growing batches, and one of them with another generator.
_CASES = (
    ((1, 8), 0.5, 100),
    ((3, 8), 0.5, 101),
    ((6, 20), 0.3, 102),
    ((30, 100), 0.8, 103),
    ((6, 20), 0.3, 177),
)
_DRAWN_AGAIN, _LARGEST = 2, 3


@dataclass(frozen=True)
class Draw:
    """What came of one call.

    Attributes
    ----------
    token_ids, inputs, labels : Tensor of shape (B, T)
    p : float
    """

    token_ids: Tensor
    inputs: Tensor
    labels: Tensor
    p: float

    @property
    def special(self) -> Tensor:
        """Where special ids are."""
        return torch.isin(self.token_ids, torch.tensor(_SPECIAL, device="cpu"))

    @property
    def drawn(self) -> Tensor:
        """Where there is a label."""
        return self.labels != _IGNORED

    @property
    def changed(self) -> Tensor:
        """Where the input differs from the original."""
        return self.inputs != self.token_ids


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
    if odd.any() and (draw.labels == _MASK_ID)[odd].all():
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
        masked = draw.inputs == _MASK_ID
        only_masked = masked.sum() > bare.sum() and torch.equal(masked, draw.drawn)
        return "only-masked-labelled" if only_masked else "changed-without-label", "", bare
    outside = (draw.inputs < 0) | (draw.inputs >= _VOCAB)
    if outside.any():
        return "id-outside-vocabulary", "", outside
    random_ids = draw.changed & (draw.inputs != _MASK_ID)
    bad = random_ids & torch.isin(draw.inputs, torch.tensor(_SPECIAL, device="cpu"))
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
    ((8 / 9, 1 / 9, 0), "kept-without-label"),
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
    n, drawn = int((~draw.special).sum()), int(draw.drawn.sum())
    share = drawn / n
    masked = int((draw.drawn & (draw.inputs == _MASK_ID)).sum())
    stays = int((draw.drawn & ~draw.changed).sum())
    fates = tuple(number / max(drawn, 1) for number in (masked, drawn - masked - stays, stays))
    described = "Of the drawn tokens {:.0%} became `mask_id`, {:.0%} another id, {:.0%} stayed.".format(
        *fates
    )
    if drawn and not draw.changed.any():
        return "input-unchanged", "", None
    if _distance([*fates, share / draw.p], [8 / 9, 1 / 9, 0.0, 0.9]) < _NEAR:
        return "kept-without-label", described, None
    if 0 < share < 1 and bool(((draw.drawn == draw.drawn[:1]) | draw.special | draw.special[:1]).all()):
        return "same-places-in-all-rows", "", None
    if _off(share, draw.p, n):
        return _wrong_share(draw, share)
    if any(_off(fate, due, drawn) for fate, due in zip(fates, (0.8, 0.1, 0.1), strict=True)):
        near = [
            (_distance(fates, pattern), slug)
            for pattern, slug in _PATTERNS
            if _distance(fates, pattern) < _NEAR and (pattern[1] > 0) == (fates[1] > 0)
        ]
        return min(near)[1] if near else "wrong-shares", described, None
    random_ids = draw.inputs[draw.changed & (draw.inputs != _MASK_ID)]
    return ("same-random-id", "", None) if len(random_ids.unique()) < 12 else None


def _wrong_share(draw: Draw, share: float) -> Finding:
    slug = "wrong-share-drawn"
    if share in (0, 1):
        slug = "everything-drawn" if share else "nothing-drawn"
    elif abs(share - (1 - draw.p)) < 0.025:
        slug = "one-minus-p"
    elif abs(share - 0.15) < 0.025:
        slug = "p-ignored"
    elif abs(share - 0.8 * draw.p) < 0.05 and not (draw.drawn & (draw.inputs != _MASK_ID)).any():
        slug = "only-masked-labelled"
    return (
        slug,
        f"With p = {draw.p}, {100 * share:.0f} % of the tokens that are not special have a label.",
        None,
    )


def _batch(seed: int, shape: tuple[int, int]) -> Tensor:
    rng = generator(seed, 11)
    real = torch.tensor([i for i in range(_VOCAB) if i not in (*_SPECIAL, _MASK_ID)], device="cpu")
    token_ids = real[torch.randint(len(real), shape, generator=rng, device="cpu")]
    token_ids[:, 0], token_ids[:, -1] = 5, 58
    if shape[0] > 1:
        token_ids[1, -2:] = torch.tensor([58, 0], device="cpu")
    return token_ids


def _calls(seed: int) -> Iterator[Call]:
    for shape, p, salt in _CASES:
        yield Call((_batch(seed, shape), _MASK_ID, list(_SPECIAL), _VOCAB, p, generator(seed, salt)))


def _judge(exercise: Exercise, trials: Sequence[Trial], repeats: Sequence[Trial]) -> Verdict:
    """Rules that always hold first, shares on the largest batch, then where chance comes from."""
    for case, trial in enumerate(trials[:-1]):
        finding, in_place = None, trial.failure is not None and trial.failure.mistake == "input-modified"
        if trial.got is not None and (trial.failure is None or in_place):
            inputs, labels = trial.got.tensors
            draw = Draw(trial.call.arguments[0], inputs, labels, trial.call.arguments[4])
            finding = _labels_of_draw(draw)
            if not in_place:
                finding = finding or _places(draw) or (_shares(draw) if case == _LARGEST else None)
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
    failure = _about_chance(trials, repeats)
    return tell_pass(exercise, trials[:-1]) if failure is None else tell_failure(exercise, failure)


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
    intro = (
        f"Row {row}, mask_id={_MASK_ID}, special ids {_SPECIAL}, p={draw.p}; wrong at the marked positions"
    )
    return [f"{intro}: {wrong}.", *((grid,) for grid in grids)]


def _masked_loss_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 12)
    for n_chosen, width, vocab_size in (
        ((1,), 2, 2),
        ((2,), 3, 3),
        ((2, 1), 3, 5),
        ((3, 1, 2), 5, 7),
        ((1, 4, 2), 7, 5),
    ):
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
        ("▁rom an", [0]),
        ("▁le ▁rom an ▁noir", [2]),
        ("▁le ▁rom an ▁noir", []),
        ("▁b el le s ▁et ▁lon gue s", [6, 2]),
        ("an ▁est ▁be au .", [0, 3]),
    ):
        yield Call((spaced.split(), chosen))
    drawn = random.Random(seed)
    text = [drawn.choice(("▁le", "▁rom", "an", "▁lon", "gue", "s")) for _ in range(17)]
    yield Call((text, drawn.sample(range(17), 3)))


EXERCISES = (
    Exercise(name="mask_tokens", read=pair(integers, integers, "inputs, labels"), calls=_calls, judge=_judge),
    Exercise(name="masked_loss", read=number, calls=_masked_loss_calls),
    Exercise(name="mask_words", read=tokens, calls=_word_calls),
)
