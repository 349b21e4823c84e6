"""Exercises on positions: the sinusoidal table, a new token with turned keys, rotary positions and ALiBi."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from tinytx.positions import rotate
from tinytx_course.exercises.comparing import floats
from tinytx_course.exercises.exercise import Exercise, generator, normal
from tinytx_course.exercises.observation import Call


def _position_calls(seed: int) -> Iterator[Call]:
    for max_len, d_model in ((1, 2), (2, 2), (2, 4), (3, 6), (4, 4), (7, 8 + 2 * (seed % 3))):
        yield Call((max_len, d_model))


def _new_token_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 43)
    q, k = torch.tensor([[1.0, 0.0], [3.0, 5.0]], device="cpu")
    yield Call((q, k, torch.empty(0, 2, device="cpu")))
    for t, width in ((1, 2), (2, 2), (3, 4), (7, 6), (11, 8 + 2 * (seed % 3))):
        keys = rotate(normal(rng, t, width), torch.arange(t, device="cpu"))
        yield Call((normal(rng, width).round(decimals=1), normal(rng, width).round(decimals=1), keys))


def _rotate_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 18)

    one = torch.tensor([[0.0, 1.0]], device="cpu")
    yield Call((one, torch.tensor([1], device="cpu")))
    yield Call((normal(rng, 2, 2).round(decimals=1), torch.tensor([0, 1], device="cpu")))
    yield Call((normal(rng, 2, 4).round(decimals=1), torch.tensor([1, 3], device="cpu")))
    yield Call((normal(rng, 3, 6).round(decimals=1), torch.tensor([2, 0, 5 + seed % 3], device="cpu")))
    yield Call((normal(rng, 2, 3, 5, 8), torch.tensor([7, 1, 4, 2, 20], device="cpu")))


EXERCISES = (
    Exercise(name="sinusoidal_positions", read=floats, calls=_position_calls),
    Exercise(name="score_new_token", read=floats, calls=_new_token_calls),
    Exercise(name="rotate", read=floats, calls=_rotate_calls),
    Exercise(
        name="alibi_bias",
        read=floats,
        calls=lambda seed: (Call(c) for c in ((2, 2), (1, 3), (4, 3), (8, 5), (16, 4 + 2 * (seed % 3)))),
    ),
)
