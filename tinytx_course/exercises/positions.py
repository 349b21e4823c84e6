"""Exercises on sinusoidal positions and the map that shifts them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from tinytx.model.positions import shift_matrix
from tinytx_course.exercises.comparing import floats
from tinytx_course.exercises.exercise import Exercise, Mistake, family
from tinytx_course.exercises.observation import Call

_BY_HAND, _AT_ONCE, _ROTATION = "By hand: clocks", "All at once", "One step is one rotation"
Slips = frozenset[str]


def _arange(n: int) -> Tensor:
    return torch.arange(n, dtype=torch.float64, device="cpu")


def _speeds(d_model: int, slips: Slips) -> tuple[Tensor, Tensor]:
    """Speeds of the sines and of the cosines, each of length D / 2."""
    i = _arange(d_model // 2)
    exponent = 2 * i / d_model
    if "exponent-without-2" in slips:
        exponent = i / d_model
    if "exponent-doubled" in slips:
        exponent = 4 * i / d_model
    if "last-frequency-off-by-one" in slips:
        exponent = 2 * i / max(d_model - 2, 1)
    if "one-speed" in slips:
        exponent = 0 * i
    if "exponent-not-divided" in slips:
        exponent = 2 * i
    of_cosine = exponent + 1 / d_model if "cosine-has-own-speed" in slips else exponent
    bases = {"base-1000": 1_000.0, "base-100000": 100_000.0}
    base = next((value for slug, value in bases.items() if slug in slips), 10_000.0)
    sign = 1.0 if "speeds-inverted" in slips else -1.0
    return base ** (sign * exponent), base ** (sign * of_cosine)


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


_EXPONENT = "The exponent is 2i / D, i counting the pairs from 0"
_BASE = "The base is 10,000."
_SLIPS = {
    "halves": (
        "All sines come first, then all cosines: they should take turns, sine in even columns, "
        "cosine in odd ones.",
        _AT_ONCE,
    ),
    "sine-and-cosine-exchanged": (
        "Sine and cosine are exchanged: sine stands in the even columns.",
        _BY_HAND,
    ),
    "exponent-without-2": (
        f"{_EXPONENT}; here it is i / D, half of it (or the base is 100, which comes to the same).",
        _BY_HAND,
    ),
    "exponent-doubled": (
        f"{_EXPONENT}, so that it is the column itself, 0, 2, 4 ..., over D; here the column was "
        f"doubled once more.",
        _BY_HAND,
    ),
    "cosine-has-own-speed": (
        f"{_EXPONENT}; here each column has its own. A sine and the cosine beside it turn at one "
        f"speed: both use "
        "the exponent of the even column.",
        _BY_HAND,
    ),
    "last-frequency-off-by-one": (
        f"{_EXPONENT} to D/2 - 1; here it is stretched so that the last one reaches 1: divide by "
        f"D, not D - 2.",
        _BY_HAND,
    ),
    "one-speed": ("All columns turn at one speed: the angle is pos / 10000^(2i/D).", _BY_HAND),
    "exponent-not-divided": (f"{_EXPONENT}; here it is 2i, not divided by D.", _BY_HAND),
    "speeds-inverted": ("Positions are multiplied by 10000^(2i/D): they are to be divided by it.", _BY_HAND),
    "positions-from-one": ("Positions start at 1: the first is 0, whose row is 0, 1, 0, 1 ...", _BY_HAND),
    "positions-divided-by-length": (
        "Positions are divided by the length: a place should look the same whatever the length.",
        "Another tempting way: one number between 0 and 1",
    ),
    "full-turns": ("Angles are multiplied by 2π: they are taken in radians as they are.", _BY_HAND),
    "sine-everywhere": (
        "There is no cosine: odd columns hold the cosine of the same angle.",
        "Break it: sine alone",
    ),
    "cosine-everywhere": ("There is no sine: even columns hold the sine.", _BY_HAND),
    "base-1000": (f"{_BASE} Yours is 1,000.", "How to choose the base"),
    "base-100000": (f"{_BASE} Yours is 100,000.", "How to choose the base"),
    "transposed": ("The axes are exchanged: one row for each position, (T, D).", _AT_ONCE),
}
_ROUGH = ("speeds-inverted", "exponent-not-divided", "full-turns")  # large angles: float32 rounds visibly
_EXCLUSIVE = (
    [slug for slug in _SLIPS if slug.startswith(("exponent", "last", "one-speed", "speeds"))],
    ["one-speed", "base-1000", "base-100000"],
    ["one-speed", "cosine-has-own-speed"],
    ["sine-and-cosine-exchanged", "sine-everywhere", "cosine-everywhere"],
    ["positions-from-one", "positions-divided-by-length"],
)


def _with_rounding(mistakes: tuple[Mistake, ...]) -> tuple[Mistake, ...]:
    return tuple(
        replace(mistake, tolerance=1e-2) if set(mistake.slug.split("+")) & set(_ROUGH) else mistake
        for mistake in mistakes
    )


def _position_calls(seed: int) -> Iterator[Call]:
    for max_len, d_model in ((1, 2), (2, 2), (2, 4), (3, 6), (4, 4), (7, 8 + 2 * (seed % 3))):
        yield Call((max_len, d_model))


SINUSOIDAL_POSITIONS = Exercise(
    name="sinusoidal_positions",
    signature="sinusoidal_positions(max_len, d_model)",
    lesson=3,
    section=_BY_HAND,
    rule=(
        "a tensor of shape (T, D): column 2i holds sin(pos / 10000^(2i/D)), column 2i + 1 the "
        "cosine of the same "
        "angle."
    ),
    read=floats,
    solve=_positions,
    calls=_position_calls,
    mistakes=_with_rounding(
        (
            *family(
                _positions, _SLIPS, _EXCLUSIVE, ("halves", "exponent-without-2", "sine-and-cosine-exchanged")
            ),
            Mistake(
                "even-tokens",
                "Even tokens got sines, odd tokens cosines: it is the even and odd columns "
                "(features) that differ.",
                _even_rows,
                _BY_HAND,
            ),
            Mistake(
                "extra-axes",
                "The values are right, but there is an axis for the batch: return (T, D).",
                (
                    lambda max_len, d_model: _positions(max_len, d_model)[None],
                    lambda max_len, d_model: _positions(max_len, d_model)[:, None],
                ),
            ),
            Mistake(
                "plain-numbers",
                "These are the positions themselves: each goes through a sine and a cosine.",
                lambda max_len, d_model: _arange(max_len)[:, None].expand(-1, d_model),
            ),
            Mistake(
                "angles",
                "These are the angles: sine and cosine are missing.",
                lambda max_len, d_model: torch.outer(
                    _arange(max_len), _speeds(d_model, frozenset())[0].repeat_interleave(2)
                ),
            ),
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


_TURNS = {
    "turned-backwards": (
        "This is the way back: M @ PE(pos + k) = PE(pos). Exchange the signs of the two sines (or "
        "transpose).",
        _ROTATION,
    ),
    "minus-forgotten": (
        "One of the two sines has a minus: cos(a + b) = cos a cos b - sin a sin b. Here both have "
        "the same sign.",
        _ROTATION,
    ),
    "sine-and-cosine-exchanged": ("Sine and cosine are exchanged: the diagonal holds cosines.", _ROTATION),
    "halves": (
        "This is for a layout with all sines first. Here sine and cosine take turns, so blocks of "
        "2 × 2 stand on "
        "the diagonal.",
        _ROTATION,
    ),
    "one-step": ("This moves one step, whatever k: the angle of a pair is k times its speed.", _ROTATION),
    "one-step-too-many": ("This moves k + 1 steps.", _ROTATION),
    "one-speed": ("All pairs are turned by the angle k: pair i turns at its own speed.", _ROTATION),
    "exponent-without-2": (
        f"{_EXPONENT}; here it is i / D, half of it (or the base is 100, which comes to the same).",
        _BY_HAND,
    ),
    "exponent-doubled": (f"{_EXPONENT}; here it is 4i / D, twice that.", _BY_HAND),
    "speeds-inverted": ("Speeds are 10000^(2i/D): they are one over that.", _BY_HAND),
    "last-frequency-off-by-one": (
        f"{_EXPONENT} to D/2 - 1; here it is stretched so that the last one reaches 1: divide by "
        f"D, not D - 2.",
        _BY_HAND,
    ),
    "only-first-pair": ("Only the first pair is turned, the rest is 0: every pair has its block.", _ROTATION),
    "only-first-pair-turned": (
        "Only the first pair is turned, the rest stays: every pair has its block.",
        _ROTATION,
    ),
    "base-1000": (f"{_BASE} Yours is 1,000.", "How to choose the base"),
}
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


_K_TIMES = (
    "This multiplies numbers where steps should be composed: k steps are the matrix of one step to "
    "the power k."
)
SHIFT_MATRIX = Exercise(
    name="shift_matrix",
    signature="shift_matrix(k, d_model)",
    lesson=3,
    section=_ROTATION,
    rule=(
        "a tensor M of shape (D, D), the same for all positions, with M @ PE(pos) = PE(pos + k). "
        "The grids show "
        "M @ PE(pos), one row for each pos."
    ),
    read=floats,
    solve=shift_matrix,
    calls=lambda seed: (Call(c) for c in ((1, 2), (2, 2), (1, 4), (3, 4), (2, 6), (3 + seed % 4, 8))),
    mistakes=_with_rounding(
        (
            *family(_rotation, _TURNS, _TURNS_APART, ("turned-backwards", "halves")),
            Mistake(
                "rows-rolled",
                "This shifts the entries of a vector. Nothing is moved along the vector: each "
                "pair is turned.",
                (_by_roll, lambda k, d_model: _by_roll(-k, d_model)),
            ),
            Mistake(
                "identity",
                "This is the identity, which moves nothing.",
                lambda k, d_model: torch.eye(d_model, dtype=torch.float64, device="cpu"),
            ),
            Mistake("k-times-one-step", _K_TIMES, lambda k, d_model: k * _rotation(1, d_model)),
            Mistake("power-of-entries", _K_TIMES, lambda k, d_model: _rotation(1, d_model) ** k),
            Mistake(
                "one-block",
                "This is the block of one pair: there is one for each of the D / 2 pairs.",
                lambda k, d_model: _rotation(k, 2),
            ),
            Mistake(
                "only-cosines",
                "Only the diagonal is filled: a pair is turned, so sines stand beside the cosines.",
                lambda k, d_model: _rotation(k, d_model).diagonal().diag(),
            ),
            Mistake(
                "positions-instead",
                "These are positions: a (D, D) matrix that maps PE(pos) to PE(pos + k) is asked.",
                lambda k, d_model: _positions(k, d_model),
            ),
        )
    ),
    view=_moved,
)
EXERCISES = (SINUSOIDAL_POSITIONS, SHIFT_MATRIX)
