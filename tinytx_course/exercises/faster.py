"""Exercises on speed: the cost of padding, and the batch at which a layer meets the ridge."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tinytx_course.exercises.comparing import count
from tinytx_course.exercises.exercise import Exercise
from tinytx_course.exercises.observation import Call


def _padded_calls(seed: int) -> Iterator[Call]:
    rng = random.Random(seed)
    for lengths, batch_size in (
        ([3], 1),
        ([2, 5], 2),
        ([2, 5, 3, 4], 2),
        ([2, 5, 3, 4, 9], 2),
        ([4, 2, 7, 1, 1, 3, 8, 5], 3),
        ([6, 2], 7),
        ([rng.randint(1, 90) for _ in range(23)], 5),
        ([], 3),
    ):
        yield Call((lengths, batch_size))


PADDED_COST = Exercise(
    name="padded_cost",
    read=count,
    calls=_padded_calls,
)


BATCH_AT_RIDGE = Exercise(
    name="batch_at_ridge",
    read=count,
    calls=lambda seed: (
        Call(sizes)
        for sizes in (
            (6, 6, 1, 2),
            (12, 12, 1, 4),  # met exactly, at 3
            (5, 7, 2, 1),
            (16, 24, 2, 3),
            (48, 35 + seed, 4, 4),
            (64, 257, 1, 41),
            (4_096, 14_336, 2, 295),
        )
    ),
)
EXERCISES = (PADDED_COST, BATCH_AT_RIDGE)
