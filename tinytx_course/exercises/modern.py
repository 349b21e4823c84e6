"""Exercises on what replaced parts of the block of 2017: RMSNorm, grouped-query attention, a cache."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F

from tinytx_course.exercises.comparing import count, floats
from tinytx_course.exercises.exercise import Exercise, generator, normal
from tinytx_course.exercises.observation import Call


def _norm_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 31)

    def case(*shape: int, eps: float) -> Call:
        x = (3 * normal(rng, *shape) + 1).round(decimals=1)
        return Call((x, (1 + normal(rng, shape[-1]) / 2).round(decimals=1), eps))

    hand = torch.tensor([[[1.0, -1.0, 5.0, 1.0]]], device="cpu")  # the mean of the squares is 7
    yield Call((hand, torch.tensor([1.0, 1, 2, 3], device="cpu"), 2.0))
    yield case(1, 2, 3, eps=1e-5)
    yield case(2, 3, 5, eps=0.5)
    zero = case(2, 1, 4, eps=0.1)
    zero.arguments[0][0] = 0.0  # a token of zeros has no length to be divided by
    yield zero
    yield case(3, 5, 7, eps=1e-5)


def _grouped_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 33)

    def case(b: int, h: int, g: int, t: int, s: int, k: int) -> Call:
        shapes = ((b, h, t, k), (b, g, s, k), (b, g, s, k))
        mask = torch.rand(t, s, generator=rng, dtype=torch.float32, device="cpu") < 0.6
        mask[:, 0] = True  # each query may attend to something
        return Call((*(normal(rng, *shape).round(decimals=1) for shape in shapes), mask))

    numbers = torch.tensor([1.0, 2.0, 3.0, 4.0], device="cpu")
    ones, open_mask = torch.ones(1, 4, 1, 1, device="cpu"), torch.ones(1, 1, dtype=torch.bool, device="cpu")
    # One key: the weights are 1, so the result says which value each of the four heads reads.
    yield Call((ones, numbers[:2].view(1, 2, 1, 1), numbers[2:].view(1, 2, 1, 1) * 10, open_mask))
    yield case(1, 2, 1, 1, 2, 2)
    yield case(1, 4, 2, 2, 3, 2)
    yield case(2, 6, 3, 5, 5, 4)  # a product of keys and queries in the wrong order fits
    yield case(3, 3, 3, 2, 4, 5)  # as many key heads as query heads: plain attention
    yield case(2, 6, 2, 5, 7, 3)


def _cache_calls(seed: int) -> Iterator[Call]:
    yield from map(Call, ((2, 1, 1, 1, 3, 2), (3, 1, 2, 1, 5, 4), (6, 1, 2, 4, 10, 3), (7, 2, 3, 5, 4, 11)))
    yield from map(Call, ((11, 3, 5, 7, 13 + seed, 6), (5, 0, 2, 3, 7, 4), (26, 5, 4, 256, 32_768, 1_024)))


EXERCISES = (
    Exercise(name="rms_norm", read=floats, calls=_norm_calls, answers=(F.rms_norm, torch.rms_norm)),
    Exercise(name="windowed_cache", read=count, calls=_cache_calls),
    Exercise(name="grouped_query_attention", read=floats, calls=_grouped_calls),
)
