"""Exercises on turning the vectors of a text into one: the mean, the last token."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from tinytx_course.exercises.comparing import floats
from tinytx_course.exercises.exercise import Exercise, Mistake, generator, normal
from tinytx_course.exercises.observation import Call

_SECTION = "By hand: which vector does the head read?"
_PADDING = "Reading the padding"


def _calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 7)
    for width, lengths, d_model in (
        (2, (1,), 1),
        (3, (3,), 2),
        (3, (2, 3), 2),
        (4, (3, 1, 4), 3),
        (5, (2, 3, 4), 2),
        (7, (5, 2), 5),
    ):
        mask = torch.arange(width, device="cpu") < torch.tensor(lengths, device="cpu")[:, None]
        yield Call((_far_apart(rng, len(lengths), width, d_model), mask))


def _far_apart(rng: torch.Generator, *shape: int) -> Tensor:
    # Rounded, so that a reader can follow; never 0 or equal by accident.
    return (normal(rng, *shape) * 4).round() / 2 + normal(rng, *shape).round(decimals=1) / 4 + 0.05


def _mean(hidden: Tensor, mask: Tensor) -> Tensor:
    weight = mask.unsqueeze(-1).to(hidden.dtype)
    return (hidden * weight).sum(1) / weight.sum(1)


def _sum(hidden: Tensor, mask: Tensor) -> Tensor:
    return (hidden * mask[..., None]).sum(1)


def _at(hidden: Tensor, index: Tensor) -> Tensor:
    return hidden[torch.arange(len(hidden), device="cpu"), index]


def _lengths(mask: Tensor) -> Tensor:
    return mask.sum(1)


_REVERSED = "This reads the padding: True marks the real tokens."
MEAN_POOL = Exercise(
    name="mean_pool",
    signature="mean_pool(hidden, mask)",
    lesson=9,
    section=_SECTION,
    rule="a tensor of shape (B, D): for each row, the mean of the vectors of its real tokens (mask True).",
    read=floats,
    solve=_mean,
    calls=_calls,
    mistakes=(
        Mistake(
            "padding-counted",
            "The padding is averaged too: only vectors where the mask is True count.",
            lambda hidden, mask: hidden.mean(1),
            _PADDING,
        ),
        Mistake(
            "divided-by-all",
            "The padding is left out of the sum, but the sum is divided by the number of "
            "places: divide each row by its own number of real tokens.",
            lambda hidden, mask: _sum(hidden, mask) / hidden.shape[1],
            _PADDING,
        ),
        Mistake("not-divided", "This is the sum: divide by the number of real tokens.", _sum),
        Mistake(
            "divided-by-batch-total",
            "The sum is divided by the real tokens of the whole batch: each row has its own "
            "number, `mask.sum(1)`.",
            lambda hidden, mask: _sum(hidden, mask) / mask.sum(),
        ),
        Mistake(
            "reversed",
            _REVERSED,
            (
                lambda hidden, mask: _mean(hidden, ~mask),
                lambda hidden, mask: _sum(hidden, ~mask) / _lengths(~mask).clamp(min=1)[:, None],
            ),
        ),
        Mistake(
            "one-length-for-all",
            "All rows are divided by the longest length: each row has its own.",
            lambda hidden, mask: _sum(hidden, mask) / _lengths(mask).max(),
        ),
        Mistake(
            "rows-mixed",
            "All rows are averaged together: one vector for each row, (B, D).",
            lambda hidden, mask: hidden[mask].mean(0),
        ),
        Mistake(
            "features-averaged",
            "The mean runs over the features: it runs over tokens, (B, D).",
            (lambda hidden, mask: hidden.mean(2), lambda hidden, mask: (hidden * mask[..., None]).mean(2)),
        ),
        Mistake(
            "batch-averaged",
            "The mean runs over the batch: it runs over tokens, (B, D).",
            lambda hidden, mask: hidden.mean(0),
        ),
        Mistake(
            "maximum",
            "This is the largest value of each feature: the mean is asked.",
            lambda hidden, mask: hidden.masked_fill(~mask[..., None], -torch.inf).amax(1),
        ),
        Mistake(
            "maximum",
            "This is the largest value of each feature: the mean is asked.",
            lambda hidden, mask: hidden.amax(1),
            _PADDING,
        ),
        Mistake(
            "first-token",
            "This is the first token: the mean of all real ones is asked.",
            lambda hidden, mask: hidden[:, 0],
        ),
        Mistake(
            "last-token",
            "This is the last real token: the mean of all real ones is asked.",
            lambda hidden, mask: _at(hidden, _lengths(mask) - 1),
        ),
        Mistake(
            "one-added-to-length",
            "The sum is divided by one more than the number of real tokens.",
            lambda hidden, mask: _sum(hidden, mask) / (_lengths(mask) + 1)[:, None],
        ),
        Mistake(
            "divided-by-width",
            "The sum is divided by D, the number of features: divide by the number of real tokens.",
            lambda hidden, mask: _sum(hidden, mask) / hidden.shape[2],
        ),
        Mistake(
            "divided-by-padding",
            "The sum is divided by the number of padding places.",
            lambda hidden, mask: _sum(hidden, mask) / _lengths(~mask)[:, None],
        ),
        Mistake(
            "first-row-for-all",
            "All rows are averaged with the mask of the first: each row has its own.",
            lambda hidden, mask: _mean(hidden, mask[:1].expand(mask.shape)),
        ),
        Mistake(
            "axis-kept",
            "The values are right, but the axis of tokens is still there with length 1: return (B, D).",
            lambda hidden, mask: _mean(hidden, mask)[:, None],
        ),
    ),
)

LAST_TOKEN = Exercise(
    name="last_token",
    signature="last_token(hidden, mask)",
    lesson=9,
    section=_SECTION,
    rule="a tensor of shape (B, D): for each row, the vector of its last real token (mask True).",
    read=floats,
    solve=lambda hidden, mask: _at(hidden, _lengths(mask) - 1),
    calls=_calls,
    mistakes=(
        Mistake(
            "last-place",
            "This reads the last place, `[:, -1]`, which is padding in all rows but the longest.",
            lambda hidden, mask: hidden[:, -1],
            _PADDING,
        ),
        Mistake(
            "one-too-far",
            "This reads one place too far, the first padding: the last of n tokens has index n - 1.",
            (
                lambda hidden, mask: _at(hidden, _lengths(mask)),
                lambda hidden, mask: _at(hidden, _lengths(mask).clamp(max=hidden.shape[1] - 1)),
            ),
            _PADDING,
        ),
        Mistake(
            "first-padding",
            "This reads the first place where the mask is False: the token before it is asked.",
            lambda hidden, mask: _at(hidden, mask.int().argmin(1)),
            _PADDING,
        ),
        Mistake(
            "one-too-early",
            "This reads the token before the last: the last of n tokens has index n - 1.",
            (
                lambda hidden, mask: _at(hidden, _lengths(mask) - 2),
                lambda hidden, mask: _at(hidden, (_lengths(mask) - 2).clamp(min=0)),
            ),
        ),
        Mistake(
            "first-token",
            "This reads the first token. (`argmax` of a mask gives the first True, not the last.)",
            lambda hidden, mask: hidden[:, 0],
        ),
        Mistake(
            "one-length-for-all",
            "All rows are read at the place of the longest: each row has its own length.",
            lambda hidden, mask: hidden[:, int(_lengths(mask).max()) - 1],
        ),
        Mistake(
            "one-length-for-all",
            "All rows are read at the place of the first row: each row has its own length.",
            lambda hidden, mask: hidden[:, int(_lengths(mask)[0]) - 1],
        ),
        Mistake(
            "padding-zeroed",
            "The padding is set to 0 and then the last place is read: read the last place that is real.",
            lambda hidden, mask: (hidden * mask[..., None])[:, -1],
            _PADDING,
        ),
        Mistake("mean", "This is the mean of the real tokens: only the last one is asked.", _mean),
        Mistake("sum", "This is the sum of the real tokens: only the last one is asked.", _sum),
        Mistake(
            "padding-counted",
            "This is the mean of all places.",
            lambda hidden, mask: hidden.mean(1),
            _PADDING,
        ),
        Mistake(
            "every-length-for-every-row",
            "Each row is read at the places of all rows, (B, B, D): pair them, "
            "`hidden[torch.arange(B), last]`.",
            lambda hidden, mask: hidden[:, _lengths(mask) - 1],
        ),
        Mistake(
            "axis-kept",
            "The values are right, but the axis of tokens is still there with length 1: return (B, D).",
            lambda hidden, mask: _at(hidden, _lengths(mask) - 1)[:, None],
        ),
        Mistake(
            "rows-mixed",
            "This is the last real token of the whole batch: one for each row, (B, D).",
            lambda hidden, mask: hidden[mask][-1],
        ),
        Mistake(
            "batch-taken-for-tokens",
            "This reads the last row of the batch: the batch is the first axis, tokens the second.",
            lambda hidden, mask: hidden[-1],
        ),
        Mistake(
            "maximum",
            "This is the largest value of each feature: the last real token is asked.",
            lambda hidden, mask: hidden.amax(1),
        ),
    ),
)
EXERCISES = (MEAN_POOL, LAST_TOKEN)
