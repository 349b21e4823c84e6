"""Exercises on positions: the sinusoidal table, the matrix that shifts it, rotary positions and ALiBi."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from tinytx.positions import sinusoidal_positions
from tinytx_course.exercises.comparing import floats
from tinytx_course.exercises.exercise import Exercise, generator, normal
from tinytx_course.exercises.observation import Call


def _position_calls(seed: int) -> Iterator[Call]:
    for max_len, d_model in ((1, 2), (2, 2), (2, 4), (3, 6), (4, 4), (7, 8 + 2 * (seed % 3))):
        yield Call((max_len, d_model))


def _moved(arguments: tuple[Any, ...], matrix: Tensor) -> Tensor:
    """What a matrix makes of the first positions; row pos should be PE(pos + k)."""
    k, d_model = arguments
    if matrix.shape != (d_model, d_model):
        return matrix
    return sinusoidal_positions(9, d_model, dtype=torch.float64) @ matrix.double().T


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
    Exercise(
        name="shift_matrix",
        read=floats,
        calls=lambda seed: (Call(c) for c in ((1, 2), (2, 2), (1, 4), (3, 4), (2, 6), (3 + seed % 4, 8))),
        view=_moved,
    ),
    Exercise(name="rotate", read=floats, calls=_rotate_calls),
    Exercise(
        name="alibi_bias",
        read=floats,
        calls=lambda seed: (Call(c) for c in ((2, 2), (1, 3), (4, 3), (8, 5), (16, 4 + 2 * (seed % 3)))),
    ),
)
