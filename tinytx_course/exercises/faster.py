"""Exercises on faster training: the cost of padding, and a batch in parts."""

from __future__ import annotations

import random
from collections.abc import Iterator

import torch

from tinytx_course.exercises.comparing import count, floats
from tinytx_course.exercises.exercise import Exercise, generator, normal
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


def _accumulate_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 13)
    yield Call((torch.tensor([[1.0], [4.0]], device="cpu"), torch.tensor([2, 1], device="cpu")))
    for n_tokens, width in (((1,), 2), ((1, 3), 2), ((5, 2, 2), 3), ((7, 1, 4), 3), ((64, 3, 11, 2, 30), 7)):
        yield Call((normal(rng, len(n_tokens), width), torch.tensor(n_tokens, device="cpu")))


ACCUMULATE = Exercise(
    name="accumulate",
    read=floats,
    calls=_accumulate_calls,
)
EXERCISES = (PADDED_COST, ACCUMULATE)
