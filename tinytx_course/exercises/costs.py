"""Exercises on what a layer costs: its operations, and the longest chain of those that wait."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tinytx_course.exercises.comparing import count
from tinytx_course.exercises.exercise import Exercise
from tinytx_course.exercises.observation import Call

ATTENTION_FLOPS = Exercise(
    name="attention_flops",
    read=count,
    calls=lambda seed: (
        Call(sizes) for sizes in ((2, 3, 1), (3, 5, 1), (5, 6, 3), (50, 24, 2), (7 + seed, 10, 5))
    ),
)


def _graphs(seed: int) -> Iterator[Call]:
    rng = random.Random(seed)
    yield Call(([()],))
    yield Call(([(), (0,)],))
    yield Call(([(), (0,), (0,)],))
    yield Call(([(), (), (0,), (2, 1)],))
    yield Call(([(), (), (1,), (0, 2), (0,)],))
    yield Call(([(), (0,), (1,), (), (3, 2), (2, 3), (0,)],))
    yield Call(([(), (), ()],))
    yield Call(([()] + [(i,) for i in range(6)],))
    n = 12
    drawn = [tuple(rng.sample(range(i), rng.randint(0, min(i, 3)))) for i in range(n)]
    yield Call(([*drawn, (3, 5), (3,)],))
    yield Call(([(), ()] + [(i, i + 1) for i in range(60)],))  # as many chains as the 60th Fibonacci number
    yield Call(([],))


LONGEST_CHAIN = Exercise(
    name="longest_chain",
    read=count,
    calls=_graphs,
)
EXERCISES = (ATTENTION_FLOPS, LONGEST_CHAIN)
