"""Exercises on turning the vectors of a text into one: the mean, the last token."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from tinytx_course.exercises.comparing import floats
from tinytx_course.exercises.exercise import Exercise, generator, mistakes, normal
from tinytx_course.exercises.observation import Call


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


MEAN_POOL = Exercise(
    name="mean_pool",
    read=floats,
    solve=_mean,
    calls=_calls,
    mistakes=mistakes(
        "mean_pool",
        {
            "padding-counted": lambda hidden, mask: hidden.mean(1),
            "divided-by-all": lambda hidden, mask: _sum(hidden, mask) / hidden.shape[1],
            "not-divided": _sum,
            "divided-by-batch-total": lambda hidden, mask: _sum(hidden, mask) / mask.sum(),
            "reversed": (
                lambda hidden, mask: _mean(hidden, ~mask),
                lambda hidden, mask: _sum(hidden, ~mask) / _lengths(~mask).clamp(min=1)[:, None],
            ),
            "one-length-for-all": lambda hidden, mask: _sum(hidden, mask) / _lengths(mask).max(),
            "rows-mixed": lambda hidden, mask: hidden[mask].mean(0),
            "features-averaged": (
                lambda hidden, mask: hidden.mean(2),
                lambda hidden, mask: (hidden * mask[..., None]).mean(2),
            ),
            "batch-averaged": lambda hidden, mask: hidden.mean(0),
            "maximum": (
                lambda hidden, mask: hidden.masked_fill(~mask[..., None], -torch.inf).amax(1),
                lambda hidden, mask: hidden.amax(1),
            ),
            "first-token": lambda hidden, mask: hidden[:, 0],
            "last-token": lambda hidden, mask: _at(hidden, _lengths(mask) - 1),
            "one-added-to-length": lambda hidden, mask: _sum(hidden, mask) / (_lengths(mask) + 1)[:, None],
            "divided-by-width": lambda hidden, mask: _sum(hidden, mask) / hidden.shape[2],
            "divided-by-padding": lambda hidden, mask: _sum(hidden, mask) / _lengths(~mask)[:, None],
            "first-row-for-all": lambda hidden, mask: _mean(hidden, mask[:1].expand(mask.shape)),
            "axis-kept": lambda hidden, mask: _mean(hidden, mask)[:, None],
        },
    ),
)
LAST_TOKEN = Exercise(
    name="last_token",
    read=floats,
    solve=lambda hidden, mask: _at(hidden, _lengths(mask) - 1),
    calls=_calls,
    mistakes=mistakes(
        "last_token",
        {
            "last-place": lambda hidden, mask: hidden[:, -1],
            "one-too-far": (
                lambda hidden, mask: _at(hidden, _lengths(mask)),
                lambda hidden, mask: _at(hidden, _lengths(mask).clamp(max=hidden.shape[1] - 1)),
            ),
            "first-padding": lambda hidden, mask: _at(hidden, mask.int().argmin(1)),
            "one-too-early": (
                lambda hidden, mask: _at(hidden, _lengths(mask) - 2),
                lambda hidden, mask: _at(hidden, (_lengths(mask) - 2).clamp(min=0)),
            ),
            "first-token": lambda hidden, mask: hidden[:, 0],
            "one-length-for-all": (
                lambda hidden, mask: hidden[:, int(_lengths(mask).max()) - 1],
                lambda hidden, mask: hidden[:, int(_lengths(mask)[0]) - 1],
            ),
            "padding-zeroed": lambda hidden, mask: (hidden * mask[..., None])[:, -1],
            "mean": _mean,
            "sum": _sum,
            "padding-counted": lambda hidden, mask: hidden.mean(1),
            "every-length-for-every-row": lambda hidden, mask: hidden[:, _lengths(mask) - 1],
            "axis-kept": lambda hidden, mask: _at(hidden, _lengths(mask) - 1)[:, None],
            "rows-mixed": lambda hidden, mask: hidden[mask][-1],
            "batch-taken-for-tokens": lambda hidden, mask: hidden[-1],
            "maximum": lambda hidden, mask: hidden.amax(1),
        },
    ),
)
EXERCISES = (MEAN_POOL, LAST_TOKEN)
