"""Exercises on turning the vectors of a text into one: the mean, the last token."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from tinytx_course.exercises.comparing import floats
from tinytx_course.exercises.exercise import Exercise, generator, normal
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


MEAN_POOL = Exercise(
    name="mean_pool",
    read=floats,
    calls=_calls,
)
LAST_TOKEN = Exercise(
    name="last_token",
    read=floats,
    calls=_calls,
)
EXERCISES = (MEAN_POOL, LAST_TOKEN)
