"""Exercises on positions: the sinusoidal table, the matrix that shifts it, rotary positions and ALiBi."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from tinytx.positions import alibi_bias, rotate, shift_matrix
from tinytx_course.exercises.catalogue import Mistake
from tinytx_course.exercises.comparing import floats
from tinytx_course.exercises.exercise import Exercise, chosen, generator, mistakes, normal
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


def _in_pairs(x: Tensor, slips: Slips) -> tuple[Tensor, Tensor]:
    """First and second numbers of all pairs of x, (..., T, K/2) each."""
    if "halves" in slips:
        first, second = x.chunk(2, dim=-1)
        return first, second
    return x[..., 0::2], x[..., 1::2]


def _rotated(x: Tensor, positions: Tensor, *, slips: Slips = frozenset()) -> Tensor:
    """Rotary positions with slips; without any they are those of the package."""
    places = _arange(x.shape[-2]) if "positions-ignored" in slips else positions.double()
    if "positions-from-one" in slips:
        places = places + 1
    angles = torch.outer(places, _speeds(x.shape[-1], slips)[0])  # (T, K/2)
    if "only-first-pair-turned" in slips:
        angles[:, 1:] = 0
    cos, sin = angles.cos(), angles.sin()
    if "sine-and-cosine-exchanged" in slips:
        cos, sin = sin, cos
    if "turned-backwards" in slips:
        sin = -sin
    first, second = _in_pairs(x.double(), slips)
    new_first = cos * first + sin * second
    old_first = new_first if "first-overwritten" in slips else first
    new_second = cos * second + (sin if "minus-forgotten" in slips else -sin) * old_first
    if "only-cosines" in slips:
        new_first, new_second = cos * first, cos * second
    if slips & {"halves", "not-interleaved"}:
        return torch.cat((new_first, new_second), dim=-1)
    return torch.stack((new_first, new_second), dim=-1).flatten(-2)  # (..., T, K)


def _sinusoids_at(positions: Tensor, d_model: int) -> Tensor:
    return _positions(int(positions.max()) + 1, d_model)[positions]


def _rotate_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 18)

    one = torch.tensor([[0.0, 1.0]], device="cpu")
    yield Call((one, torch.tensor([1], device="cpu")))
    yield Call((normal(rng, 2, 2).round(decimals=1), torch.tensor([0, 1], device="cpu")))
    yield Call((normal(rng, 2, 4).round(decimals=1), torch.tensor([1, 3], device="cpu")))
    yield Call((normal(rng, 3, 6).round(decimals=1), torch.tensor([2, 0, 5 + seed % 3], device="cpu")))
    yield Call((normal(rng, 2, 3, 5, 8), torch.tensor([7, 1, 4, 2, 20], device="cpu")))


_ROTATE_APART = (
    *_EXCLUSIVE,
    ["halves", "not-interleaved", "only-first-pair-turned", "only-cosines"],
    ["turned-backwards", "minus-forgotten", "only-cosines", "sine-and-cosine-exchanged", "first-overwritten"],
    ["positions-ignored", "positions-from-one"],
)
ROTATE = Exercise(
    name="rotate",
    read=floats,
    solve=rotate,
    calls=_rotate_calls,
    mistakes=_with_rounding(
        mistakes(
            "rotate",
            {
                "sinusoids-added": lambda x, places: x + _sinusoids_at(places, x.shape[-1]),
                "sinusoids-multiplied": lambda x, places: x * _sinusoids_at(places, x.shape[-1]),
                "nothing-turned": lambda x, places: x,
            },
            _rotated,
            _ROTATE_APART,
            together=("turned-backwards", "halves"),
        )
    ),
)


_SLOPES: dict[str, Callable[[Tensor, int], Tensor]] = {  # from the number h of a head, counted from 1, and H
    "slopes-from-zero": lambda h, n_heads: 2.0 ** (-8 * (h - 1) / n_heads),
    "eight-heads-assumed": lambda h, n_heads: 2.0**-h,
    "exponent-not-divided": lambda h, n_heads: 2.0 ** (-8 * h),
    "slopes-inverted": lambda h, n_heads: 2.0 ** (8 * h / n_heads),
    "slopes-reversed": lambda h, n_heads: 2.0 ** (-8 * h.flip(0) / n_heads),
    "slope-missing": lambda h, n_heads: 0 * h + 1,
    "slopes-linear": lambda h, n_heads: h / n_heads,
    "base-e": lambda h, n_heads: torch.exp(-8 * h / n_heads),
}
_DISTANCES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {  # from query t down and key s across
    "distance-squared": lambda t, s: (t - s) ** 2,
    "key-position-only": lambda t, s: s + 0 * t,
}


def _alibi(n_heads: int, seq_len: int, *, slips: Slips = frozenset()) -> Tensor:
    """ALiBi with slips; without any it is that of the package."""
    h, places = _arange(n_heads) + 1, _arange(seq_len)
    slopes = chosen(_SLOPES, slips, lambda h, n_heads: 2.0 ** (-8 * h / n_heads))(h, n_heads)
    distance = chosen(_DISTANCES, slips, lambda t, s: (t - s).abs())(places[:, None], places)
    if "slope-to-the-distance" in slips:
        return -(slopes[:, None, None] ** distance)
    if "one-slope-for-all" in slips:
        slopes = slopes[:1].expand(n_heads)
    bias = slopes[:, None, None] * (distance if "sign-forgotten" in slips else -distance)
    if "future-zero" in slips:
        bias = bias.tril()
    if "future-blocked" in slips:
        bias = bias + torch.full_like(bias, -torch.inf).triu(1)
    return bias


def _signed(sign: int) -> Callable[[int, int], Tensor]:
    def bias(n_heads: int, seq_len: int) -> Tensor:
        places = _arange(seq_len)
        return sign * alibi_bias(n_heads, 2)[:, :1, 1:].double() * (places[:, None] - places)

    return bias


ALIBI_BIAS = Exercise(
    name="alibi_bias",
    read=floats,
    solve=alibi_bias,
    calls=lambda seed: (Call(c) for c in ((2, 2), (1, 3), (4, 3), (8, 5), (16, 4 + 2 * (seed % 3)))),
    mistakes=mistakes(
        "alibi_bias",
        {
            "distance-signed": (_signed(1), _signed(-1)),
            "heads-last": lambda h, t: _alibi(h, t).permute(1, 2, 0),
            "heads-second": lambda h, t: _alibi(h, t).transpose(0, 1),
            "one-head-only": lambda h, t: _alibi(h, t)[0],
            "extra-axes": (lambda h, t: _alibi(h, t)[None], lambda h, t: _alibi(h, t)[:, None]),
            "slopes-instead": lambda h, t: _alibi(h, 2)[:, 0, 1].abs(),
        },
        _alibi,
        (
            [*_SLOPES, "one-slope-for-all"],
            [*_DISTANCES, "slope-to-the-distance"],
            ["future-zero", "future-blocked"],
            ["slope-to-the-distance", "sign-forgotten"],
        ),
        together=("sign-forgotten", "slopes-from-zero"),
    ),
)
EXERCISES = (SINUSOIDAL_POSITIONS, SHIFT_MATRIX, ROTATE, ALIBI_BIAS)
