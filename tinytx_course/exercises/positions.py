"""Exercises on sinusoidal positions and the map that shifts them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from tinytx.model.positions import shift_matrix
from tinytx_course.exercises.comparing import floats
from tinytx_course.exercises.exercise import Exercise, Mistake, chosen, mistakes
from tinytx_course.exercises.observation import Call

Slips = frozenset[str]


def _arange(n: int) -> Tensor:
    return torch.arange(n, dtype=torch.float64, device="cpu")


_EXPONENTS: dict[str, Callable[[Tensor, int], Tensor]] = {  # from the number i of a pair and D
    "exponent-without-2": lambda i, d_model: i / d_model,
    "exponent-doubled": lambda i, d_model: 4 * i / d_model,
    "last-frequency-off-by-one": lambda i, d_model: 2 * i / max(d_model - 2, 1),
    "one-speed": lambda i, d_model: 0 * i,
    "exponent-not-divided": lambda i, d_model: 2 * i,
    "speeds-inverted": lambda i, d_model: -2 * i / d_model,
}
_BASES = {"base-1000": 1_000.0, "base-100000": 100_000.0}


def _speeds(d_model: int, slips: Slips = frozenset()) -> tuple[Tensor, Tensor]:
    """Speeds of the sines and of the cosines, each of length D / 2."""
    exponent = chosen(_EXPONENTS, slips, lambda i, d_model: 2 * i / d_model)(_arange(d_model // 2), d_model)
    of_cosine = exponent + 1 / d_model if "cosine-has-own-speed" in slips else exponent
    base = chosen(_BASES, slips, 10_000.0)
    return base**-exponent, base**-of_cosine


def _positions(max_len: int, d_model: int, *, slips: Slips = frozenset()) -> Tensor:
    """Sinusoidal positions with slips; without any they are those of the package."""
    places = _arange(max_len)
    if "positions-from-one" in slips:
        places = places + 1
    if "positions-divided-by-length" in slips:
        places = places / max_len
    turn = 2 * torch.pi if "full-turns" in slips else 1.0
    of_sine, of_cosine = (turn * torch.outer(places, speeds) for speeds in _speeds(d_model, slips))
    sines, cosines = of_sine.sin(), of_cosine.cos()
    if "sine-and-cosine-exchanged" in slips:
        sines, cosines = of_sine.cos(), of_cosine.sin()
    if "sine-everywhere" in slips:
        cosines = of_cosine.sin()
    if "cosine-everywhere" in slips:
        sines = of_sine.cos()
    if "halves" in slips:
        table = torch.cat((sines, cosines), dim=1)
    else:
        table = torch.stack((sines, cosines), dim=-1).flatten(1)  # (max_len, D)
    return table.T if "transposed" in slips else table


def _even_rows(max_len: int, d_model: int) -> Tensor:
    """Sine for even tokens, cosine for odd ones."""
    angles = torch.outer(_arange(max_len), 10_000.0 ** -(2 * (_arange(d_model) // 2) / d_model))
    return torch.where((_arange(max_len) % 2 == 0)[:, None], angles.sin(), angles.cos())


_ROUGH = {"speeds-inverted", "exponent-not-divided", "full-turns"}  # large angles: float32 rounds visibly
_EXCLUSIVE = (
    [*_EXPONENTS],
    ["one-speed", *_BASES],
    ["one-speed", "cosine-has-own-speed"],
    ["sine-and-cosine-exchanged", "sine-everywhere", "cosine-everywhere"],
    ["positions-from-one", "positions-divided-by-length"],
)


def _with_rounding(known: tuple[Mistake, ...]) -> tuple[Mistake, ...]:
    return tuple(replace(m, tolerance=1e-2) if _ROUGH & {*m.slug.split("+")} else m for m in known)


def _position_calls(seed: int) -> Iterator[Call]:
    for max_len, d_model in ((1, 2), (2, 2), (2, 4), (3, 6), (4, 4), (7, 8 + 2 * (seed % 3))):
        yield Call((max_len, d_model))


SINUSOIDAL_POSITIONS = Exercise(
    name="sinusoidal_positions",
    read=floats,
    solve=_positions,
    calls=_position_calls,
    mistakes=_with_rounding(
        mistakes(
            "sinusoidal_positions",
            {
                "even-tokens": _even_rows,
                "extra-axes": (lambda t, d: _positions(t, d)[None], lambda t, d: _positions(t, d)[:, None]),
                "plain-numbers": lambda t, d: _arange(t)[:, None].expand(-1, d),
                "angles": lambda t, d: torch.outer(_arange(t), _speeds(d)[0].repeat_interleave(2)),
            },
            _positions,
            _EXCLUSIVE,
            together=("halves", "exponent-without-2", "sine-and-cosine-exchanged"),
        )
    ),
)


def _rotation(k: float, d_model: int, *, slips: Slips = frozenset()) -> Tensor:
    """The shift matrix with slips; without any it is that of the package."""
    if "one-step" in slips:
        k = 1
    if "one-step-too-many" in slips:
        k = k + 1
    angles = k * _speeds(d_model, slips)[0]
    sines, cosines = angles.sin(), angles.cos()
    if "sine-and-cosine-exchanged" in slips:
        sines, cosines = cosines, sines
    if "turned-backwards" in slips:
        sines = -sines
    matrix = torch.zeros(d_model, d_model, dtype=torch.float64, device="cpu")
    pair = torch.arange(d_model // 2, device="cpu")
    row, other = (pair, pair + d_model // 2) if "halves" in slips else (2 * pair, 2 * pair + 1)
    matrix[row, row], matrix[other, other] = cosines, cosines
    matrix[row, other] = sines
    matrix[other, row] = sines if "minus-forgotten" in slips else -sines
    if "only-first-pair" in slips:
        matrix[2:] = 0
    if "only-first-pair-turned" in slips:
        matrix[2:] = torch.eye(d_model, dtype=torch.float64, device="cpu")[2:]
    return matrix


_TURNS_APART = (
    *_EXCLUSIVE,
    ["one-step", "one-step-too-many"],
    ["halves", "only-first-pair", "only-first-pair-turned"],
)


def _moved(arguments: tuple[Any, ...], matrix: Tensor) -> Tensor:
    """What a matrix makes of the first positions; row pos should be PE(pos + k)."""
    k, d_model = arguments
    if matrix.shape != (d_model, d_model):
        return matrix
    return _positions(9, d_model) @ matrix.double().T


def _by_roll(k: int, d_model: int) -> Tensor:
    return torch.roll(torch.eye(d_model, dtype=torch.float64, device="cpu"), int(k), 0)


SHIFT_MATRIX = Exercise(
    name="shift_matrix",
    read=floats,
    solve=shift_matrix,
    calls=lambda seed: (Call(c) for c in ((1, 2), (2, 2), (1, 4), (3, 4), (2, 6), (3 + seed % 4, 8))),
    mistakes=_with_rounding(
        mistakes(
            "shift_matrix",
            {
                "rows-rolled": (_by_roll, lambda k, d: _by_roll(-k, d)),
                "identity": lambda k, d: _by_roll(0, d),
                "k-times-one-step": lambda k, d: k * _rotation(1, d),
                "power-of-entries": lambda k, d: _rotation(1, d) ** k,
                "one-block": lambda k, d: _rotation(k, 2),
                "only-cosines": lambda k, d: _rotation(k, d).diagonal().diag(),
                "positions-instead": lambda k, d: _positions(k, d),
            },
            _rotation,
            _TURNS_APART,
            together=("turned-backwards", "halves"),
        )
    ),
    view=_moved,
)
EXERCISES = (SINUSOIDAL_POSITIONS, SHIFT_MATRIX)
