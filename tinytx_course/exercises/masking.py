"""The exercise on BERT's masking: rules that always hold, and shares, since chance is asked for."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tinytx_course.exercises.card import Grid, Part
from tinytx_course.exercises.comparing import integers, pair
from tinytx_course.exercises.exercise import Exercise, Mistake, generator
from tinytx_course.exercises.observation import Call, Failure
from tinytx_course.exercises.telling import tell_failure, tell_pass
from tinytx_course.exercises.verdict import Verdict

if TYPE_CHECKING:
    from tinytx_course.exercises.judging import Trial

_SECTION = "How BERT is trained"
_IGNORED = -100
_SIGMAS = 5.6  # of a binomial share: correct code is rejected less than once in ten million
_VOCAB, _MASK_ID, _SPECIAL = 60, 4, [0, 1, 2, 3]
_WINDOW, _BEFORE = 12, 2  # places of a row that are shown, of these before the first to look at
_SHAPES = ((1, 8), (3, 8), (6, 20), (30, 100))
_SHARES_DRAWN = (0.5, 0.5, 0.3, 0.8)


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
        """Where special ids stand."""
        return torch.isin(self.token_ids, torch.tensor(_SPECIAL, device="cpu"))

    @property
    def drawn(self) -> Tensor:
        """Where a label stands."""
        return self.labels != _IGNORED

    @property
    def changed(self) -> Tensor:
        """Where the input differs from the original."""
        return self.inputs != self.token_ids


Finding = tuple[str, str, Tensor | None]  # slug, words, cells to mark
_LABELS = "labels hold the original id where a token was drawn, and -100 everywhere else."


def _labels_of_draw(draw: Draw) -> Finding | None:
    """Rules on labels that hold whatever is drawn."""
    odd = draw.drawn & (draw.labels != draw.token_ids)
    if (draw.inputs == _IGNORED).any():
        return (
            "exchanged",
            "The two results are exchanged: inputs first, then labels.",
            draw.inputs == _IGNORED,
        )
    if not draw.drawn.any() and not draw.changed.any():
        return None  # nothing drawn: the shares will tell
    if (draw.labels == draw.token_ids).all():
        return ("labels-everywhere", f"Every place has a label: {_LABELS}", ~draw.changed)
    where = draw.labels[~draw.changed & odd]
    if (
        odd.any()
        and len(where)
        and (draw.labels[odd] == where[0]).all()
        and where[0] not in draw.token_ids[odd]
    ):
        words = (
            f"Places that are not predicted have the label {int(where[0])}: it must be -100, which the "
            f"loss skips."
        )
        return ("other-ignored-label", words, odd)
    fill = draw.labels[odd].unique()
    if odd.any() and len(fill) == 1 and (draw.labels[~draw.changed] == fill[0]).float().mean() > 0.5:
        words = (
            f"Places that are not predicted have the label {int(fill[0])}: it must be -100, which the "
            f"loss skips."
        )
        return ("other-ignored-label", words, odd)
    if draw.changed.any() and not (draw.drawn & draw.changed).any():
        words = f"Labels stand where nothing was drawn, and -100 where something was: {_LABELS}"
        return ("labels-reversed", words, draw.drawn)
    if odd.any() and (draw.labels == draw.inputs)[draw.drawn].all():
        return ("labels-are-new-ids", f"The labels hold what the input was changed to: {_LABELS}", odd)
    if odd.any() and (draw.labels == _MASK_ID)[odd].all():
        return ("labels-are-new-ids", f"The labels hold the mask id: {_LABELS}", odd)
    if odd.any():
        return ("wrong-labels", f"Some labels are neither the original id nor -100: {_LABELS}", odd)
    return None


def _places(draw: Draw) -> Finding | None:
    """Rules on which tokens may be drawn and changed."""
    hit = draw.special & (draw.drawn | draw.changed)
    if hit.any():
        return ("special-drawn", "Special tokens are drawn too: they are never predicted nor changed.", hit)
    bare = draw.changed & ~draw.drawn
    if bare.any():
        if draw.drawn.any() and (draw.inputs[draw.drawn] == _MASK_ID).all() and draw.drawn.sum() > bare.sum():
            words = (
                "Only tokens that became `mask_id` have a label: all drawn ones do, also those that "
                "got another id or stay."
            )
            return ("only-masked-labelled", words, bare)
        words = (
            "Inputs are changed at places without a label: only drawn tokens change, and each of them "
            "has a label."
        )
        return ("changed-without-label", words, bare)
    outside = (draw.inputs < 0) | (draw.inputs >= _VOCAB)
    if outside.any():
        return ("id-outside-vocabulary", "A random id lies outside the vocabulary, 0 to V - 1.", outside)
    random_ids = draw.changed & (draw.inputs != _MASK_ID)
    bad = random_ids & torch.isin(draw.inputs, torch.tensor(_SPECIAL, device="cpu"))
    if bad.any():
        return (
            "random-special-id",
            "A token was replaced by a special id: random ids are neither special nor `mask_id`.",
            bad,
        )
    return None


def _off(observed: float, expected: float, n: int) -> bool:
    """Whether a share of n lies too far from what it should be."""
    return abs(observed - expected) > _SIGMAS * math.sqrt(expected * (1 - expected) / n)


def _near(shares: Sequence[float], pattern: Sequence[float]) -> bool:
    return all(abs(share - due) < 0.045 for share, due in zip(shares, pattern, strict=True))


_PATTERNS = (
    (
        (1, 0, 0),
        "always-mask-id",
        "Every drawn token becomes `mask_id`: 80 % do, 10 % become a random id, 10 % stay.",
    ),
    (
        (0.9, 0.1, 0),
        "nothing-stays",
        "No drawn token stays as it is: 10 % of them do, and are predicted all the same.",
    ),
    (
        (0.8, 0.2, 0),
        "nothing-stays",
        "No drawn token stays as it is: 10 % of them do, and are predicted all the same.",
    ),
    (
        (0.889, 0.111, 0),
        "kept-without-label",
        "Drawn tokens that stay have no label: they are predicted too.",
    ),
    ((0.8, 0, 0.2), "no-random-ids", "No drawn token becomes a random id: 10 % of them do."),
    ((0.9, 0, 0.1), "no-random-ids", "No drawn token becomes a random id: 10 % of them do."),
    (
        (0.8, 0.02, 0.18),
        "tenth-of-the-rest",
        "Random ids are a tenth of what `mask_id` left, 2 %: it is half of that rest, 10 % of the "
        "drawn tokens.",
    ),
    (
        (0.72, 0.1, 0.18),
        "overlapping-draws",
        "Two separate draws overlap, so random ids overwrite `mask_id`: draw one number, and cut "
        "it at 0.8 and 0.9.",
    ),
    (
        (0.4, 0.5, 0.1),
        "half-overwritten",
        "Random ids overwrite half of all: they are for half of the tokens that `mask_id` left.",
    ),
    (
        (0.1, 0.8, 0.1),
        "shares-exchanged",
        "80 % become random ids and 10 % `mask_id`: it is the other way round.",
    ),
    ((0.1, 0.1, 0.8), "shares-exchanged", "80 % stay and 10 % become `mask_id`: 80 % become `mask_id`."),
    ((0.333, 0.333, 0.333), "equal-shares", "The three fates are equally likely: they are 80, 10 and 10 %."),
    ((0.15, 0.1, 0.75), "p-used-twice", "The share of `mask_id` is not 80 %."),
)


def _shares(draw: Draw) -> Finding | None:
    """Shares on a large input."""
    n, drawn = int((~draw.special).sum()), int(draw.drawn.sum())
    share = drawn / n
    masked = int((draw.drawn & (draw.inputs == _MASK_ID)).sum())
    stays = int((draw.drawn & ~draw.changed).sum())
    fates = tuple(number / max(drawn, 1) for number in (masked, drawn - masked - stays, stays))
    if drawn and not (draw.changed.any()):
        return ("input-unchanged", "Labels are given, but the inputs are not changed at all.", None)
    if _near([*fates, share / draw.p], [8 / 9, 1 / 9, 0.0, 0.9]):
        return _PATTERNS[3][1], f"{_PATTERNS[3][2]} {_describe_shares(fates)}", None
    same_rows = draw.drawn == draw.drawn[:1]
    if drawn and bool((same_rows | draw.special | draw.special[:1]).all()):
        return (
            "same-places-in-all-rows",
            "All rows are drawn at the same places: every token has its own draw.",
            None,
        )
    if _off(share, draw.p, n):
        return _wrong_share(draw, share)
    if any(_off(fate, due, drawn) for fate, due in zip(fates, (0.8, 0.1, 0.1), strict=True)):
        known = [row for row in _PATTERNS if _near(fates, row[0]) and (row[0][1] > 0) == (fates[1] > 0)]
        if known:
            _, slug, words = min(
                known, key=lambda row: sum(abs(a - b) for a, b in zip(fates, row[0], strict=True))
            )
            return slug, f"{words} {_describe_shares(fates)}", None
        return ("wrong-shares", f"The shares are not 80, 10 and 10 %. {_describe_shares(fates)}", None)
    new = draw.inputs[draw.changed & (draw.inputs != _MASK_ID)]
    if len(new.unique()) < 12:
        words = (
            "All random ids are alike or nearly: each token gets a random id of its own from the vocabulary."
        )
        return ("same-random-id", words, None)
    return None


def _describe_shares(fates: Sequence[float]) -> str:
    masked, random_id, stays = (f"{100 * fate:.0f} %" for fate in fates)
    return f"Of the drawn tokens {masked} became `mask_id`, {random_id} another id, {stays} stayed."


def _wrong_share(draw: Draw, share: float) -> Finding:
    measured = f"With p = {draw.p}, {100 * share:.0f} % of the tokens that are not special have a label."
    if share == 0:
        return ("nothing-drawn", f"Nothing was drawn. {measured}", None)
    if share == 1:
        return ("everything-drawn", f"Every token was drawn. {measured}", None)
    if abs(share - (1 - draw.p)) < 0.025:
        return (
            "one-minus-p",
            f"Tokens are drawn with probability 1 - p: check the side of `<`. {measured}",
            None,
        )
    if abs(share - 0.15) < 0.025:
        return ("p-ignored", f"15 % are drawn whatever p is. {measured}", None)
    if abs(share - 0.8 * draw.p) < 0.05 and not (draw.drawn & (draw.inputs != _MASK_ID)).any():
        return (
            "only-masked-labelled",
            f"Only tokens that became `mask_id` have a label: all drawn ones do. {measured}",
            None,
        )
    return (
        "wrong-share-drawn",
        f"Each token that is not special is drawn with probability p. {measured}",
        None,
    )


def _batch(seed: int, shape: tuple[int, int]) -> Tensor:
    rng = generator(seed, 11)
    token_ids = torch.randint(len(_SPECIAL) + 1, _VOCAB, shape, generator=rng, device="cpu")
    token_ids[:, 0], token_ids[:, -1] = 1, 2
    if shape[0] > 1:
        token_ids[1, -2:] = torch.tensor([2, 0], device="cpu")
    return token_ids


def _calls(seed: int) -> Iterator[Call]:
    """Growing batches, and the last but one again with another generator."""
    salts = (100, 101, 102, 103, 177)
    for salt, shape, p in zip(
        salts, (*_SHAPES, _SHAPES[-2]), (*_SHARES_DRAWN, _SHARES_DRAWN[-2]), strict=True
    ):
        yield Call((_batch(seed, shape), _MASK_ID, list(_SPECIAL), _VOCAB, p, generator(seed, salt)))


def _judge(exercise: Exercise, trials: Sequence[Trial], repeats: Sequence[Trial]) -> Verdict:
    """Rules that always hold first, shares on the largest batch, then where chance comes from."""
    for number, trial in enumerate(trials[: len(_SHAPES)]):
        if trial.failure is not None:
            return tell_failure(exercise, trial.failure, dataclasses.replace(trial, got=None))
        draw = _draw(trial)
        rules: tuple[Callable[[Draw], Finding | None], ...] = (_labels_of_draw, _places)
        if number == len(_SHAPES) - 1:
            rules = (_labels_of_draw, _places, _shares)
        for rule in rules:
            finding = rule(draw)
            if finding is not None:
                return _tell(exercise, draw, finding)
    failure = _about_chance(trials, repeats)
    return tell_pass(exercise, trials[: len(_SHAPES)]) if failure is None else tell_failure(exercise, failure)


def _draw(trial: Trial) -> Draw:
    assert trial.got is not None
    token_ids, p = trial.call.arguments[0], trial.call.arguments[4]
    return Draw(token_ids, trial.got.tensors[0], trial.got.tensors[1], p)


def _about_chance(trials: Sequence[Trial], repeats: Sequence[Trial]) -> Failure | None:
    """The generator, and nothing else, decides what is drawn."""
    number = len(_SHAPES) - 2
    first, again, other = trials[number].got, repeats[number].got, trials[-1].got
    assert first is not None
    if again is not None and not again.agrees_with(first):
        words = (
            "The same generator in the same state gave another result: draw all random numbers with "
            "`generator=generator`."
        )
        return Failure("generator-ignored", words)
    if other is not None and other.agrees_with(first):
        words = (
            "Another generator gave the very same result: the draw must come from the generator handed over."
        )
        return Failure("same-draw-every-time", words)
    return None


def _tell(exercise: Exercise, draw: Draw, finding: Finding) -> Verdict:
    slug, words, cells = finding
    mistake = Mistake(slug, words, lambda *arguments: None, _SECTION)
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
    name = f"[{row}]" + (f", places {begin} to {end - 1}" if end - begin < width else "")
    grids = [
        Grid(f"{title}{name}", (tuple(str(v) for v in tensor[row, begin:end].tolist()),), marked)
        for title, tensor, marked in (
            ("token_ids", draw.token_ids, marks),
            ("inputs", draw.inputs, marks if "inputs" in at_fault else frozenset()),
            ("labels", draw.labels, marks if "labels" in at_fault else frozenset()),
        )
    ]
    wrong = " and ".join(at_fault)
    intro = f"Row {row}, mask_id={_MASK_ID}, special ids {_SPECIAL}, p={draw.p}; wrong at the marked places"
    return [f"{intro}: {wrong}.", *((grid,) for grid in grids)]


def _nothing_drawn(*arguments: Any) -> tuple[Tensor, Tensor]:
    token_ids = arguments[0]
    return token_ids.clone(), torch.full_like(token_ids, _IGNORED)


MASK_TOKENS = Exercise(
    name="mask_tokens",
    signature="mask_tokens(token_ids, mask_id, special_ids, vocab_size, p, generator)",
    lesson=10,
    section=_SECTION,
    rule=(
        "(inputs, labels), both (B, T). Each token that is not special is drawn with probability "
        "p; of those 80 % "
        "become mask_id, 10 % a random id that is neither special nor mask_id, 10 % stay. labels "
        "hold the original id "
        "where drawn, -100 elsewhere; token_ids itself is left as it was."
    ),
    read=pair(integers, integers, "inputs, labels"),
    solve=_nothing_drawn,
    calls=_calls,
    judge=_judge,
)
EXERCISES = (MASK_TOKENS,)
