"""Exercises on what replaced parts of the block of 2017: RMSNorm, SwiGLU, grouped-query attention."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from tinytx_course.exercises.comparing import floats
from tinytx_course.exercises.exercise import Exercise, chosen, generator, mistakes, normal
from tinytx_course.exercises.observation import Call

Slips = frozenset[str]

_AXES: dict[str, tuple[int, ...]] = {
    "over-tokens": (1,),
    "over-batch": (0,),
    "over-tokens-and-features": (1, 2),
    "over-everything": (0, 1, 2),
}
_SIZES: dict[str, Callable[[Tensor, Tensor, float], Tensor]] = {
    # from x, the mean of its squares and eps to what x is divided by
    "eps-outside-root": lambda x, square, eps: square.sqrt() + eps,
    "eps-missing": lambda x, square, eps: square.sqrt(),
    "no-root": lambda x, square, eps: square + eps,
    "not-divided": lambda x, square, eps: torch.ones_like(square),
    "multiplied": lambda x, square, eps: 1 / (square + eps).sqrt(),
    "unit-length": lambda x, square, eps: (x.square().sum(-1, keepdim=True) + eps).sqrt(),
    "divided-by-d-minus-1": lambda x, square, eps: (square * x.shape[-1] / (x.shape[-1] - 1) + eps).sqrt(),
    "standard-deviation": lambda x, square, eps: (x.var(-1, correction=0, keepdim=True) + eps).sqrt(),
    "unbiased-deviation": lambda x, square, eps: (x.var(-1, keepdim=True) + eps).sqrt(),
    "mean-absolute": lambda x, square, eps: x.abs().mean(-1, keepdim=True) + eps,
    "square-of-the-mean": lambda x, square, eps: (x.mean(-1, keepdim=True).square() + eps).sqrt(),
    "largest": lambda x, square, eps: x.abs().amax(-1, keepdim=True) + eps,
}


def _rms_norm(x: Tensor, gamma: Tensor, eps: float, *, slips: Slips = frozenset()) -> Tensor:
    """RMSNorm with slips; without any it is that of torch."""
    if "gamma-before-the-norm" in slips:
        x, gamma = x * gamma, torch.ones_like(gamma)
    if "centred" in slips:
        x = x - x.mean(-1, keepdim=True)
    square = x.square().mean(chosen(_AXES, slips, (-1,)), keepdim=True)
    normed = x / chosen(_SIZES, slips, lambda x, square, eps: (square + eps).sqrt())(x, square, eps)
    if "gamma-added" in slips:
        return normed + gamma
    return normed * (1 if "gamma-missing" in slips else gamma + ("gamma-plus-one" in slips))


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


RMS_NORM = Exercise(
    name="rms_norm",
    read=floats,
    solve=_rms_norm,
    calls=_norm_calls,
    answers=(F.rms_norm, torch.rms_norm),
    mistakes=mistakes(
        "rms_norm",
        with_slips=_rms_norm,
        exclusive=([*_AXES, *_SIZES], ["gamma-missing", "gamma-plus-one", "gamma-added"]),
        together=("centred", "eps-missing", "gamma-missing"),
    ),
)

_GATES: dict[str, Callable[[Tensor], Tensor]] = {
    "no-activation": lambda h: h,
    "activation-on-product": lambda h: h,
    "activation-on-input": lambda h: h,
    "activation-at-the-end": lambda h: h,
    "sigmoid": torch.sigmoid,
    "relu": torch.relu,
    "gelu": F.gelu,
    "tanh": torch.tanh,
    "softmax": lambda h: h.softmax(-1),
}


def _swiglu(x: Tensor, w_gate: Tensor, w_up: Tensor, w_down: Tensor, *, slips: Slips = frozenset()) -> Tensor:
    """SwiGLU with slips."""
    if "gate-and-up-exchanged" in slips:
        w_gate, w_up = w_up, w_gate
    read = F.silu(x) if "activation-on-input" in slips else x
    gate = chosen(_GATES, slips, F.silu)(read @ w_gate)  # (B, T, F)
    up = read @ (w_gate if "one-matrix-for-both" in slips else w_up)
    up = F.silu(up) if slips & {"activation-on-both", "gate-missing"} else up
    hidden = chosen({"added": gate + up, "up-missing": gate, "gate-missing": up}, slips, gate * up)
    hidden = F.silu(hidden) if "activation-on-product" in slips else hidden
    if "only-hidden" in slips:
        return hidden
    out = hidden @ w_down
    out = F.silu(out) if "activation-at-the-end" in slips else out
    return x + out if "residual-added" in slips else out


def _swiglu_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 32)
    for b, t, d, f in ((1, 1, 2, 3), (1, 2, 2, 3), (2, 3, 5, 7), (1, 4, 3, 11), (3, 2, 7, 5)):
        shapes = ((b, t, d), (d, f), (d, f), (f, d))
        yield Call(tuple(normal(rng, *shape).round(decimals=1) for shape in shapes))


SWIGLU = Exercise(
    name="swiglu",
    read=floats,
    solve=_swiglu,
    calls=_swiglu_calls,
    mistakes=mistakes(
        "swiglu",
        with_slips=_swiglu,
        exclusive=(
            [*_GATES, "activation-on-both", "gate-missing"],
            ["added", "up-missing", "gate-missing", "one-matrix-for-both"],
            ["only-hidden", "activation-at-the-end", "residual-added"],
        ),
        together=("gate-and-up-exchanged", "residual-added"),
    ),
)

_SHARED: dict[str, Callable[[Tensor, int], Tensor]] = {  # from (B, G, S, K) and H to (B, H, S, K)
    "interleaved": lambda x, h: x.repeat(1, h // x.shape[1], 1, 1),
    "only-first": lambda x, h: x[:, :1].expand(-1, h, -1, -1),
    "averaged": lambda x, h: x.mean(1, keepdim=True).expand(-1, h, -1, -1),
    "groups-reversed": lambda x, h: _shared(x, h).flip(1),
    "not-shared": lambda x, h: x,
}
_DIVISORS: dict[str, Callable[[Tensor, Tensor], float]] = {  # from q and k to the square of the divisor
    "not-scaled": lambda q, k: 1,
    "scale-without-root": lambda q, k: q.shape[-1] ** 2,
    "scale-by-model-width": lambda q, k: q.shape[1] * q.shape[-1],
    "scale-by-group-size": lambda q, k: q.shape[-1] * q.shape[1] / k.shape[1],
}


def _shared(x: Tensor, n_heads: int) -> Tensor:
    """Give each key or value head to a run of neighbouring query heads: (B, G, S, K) -> (B, H, S, K)."""
    return x.repeat_interleave(n_heads // x.shape[1], dim=1)


def _grouped(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, *, slips: Slips = frozenset()) -> Tensor:
    """Grouped-query attention with slips."""
    square = chosen(_DIVISORS, slips, lambda q, k: q.shape[-1])(q, k)
    if "queries-averaged" in slips:
        q = q.unflatten(1, (k.shape[1], -1)).mean(2)  # (B, G, T, K)
    share, turns = chosen(_SHARED, slips, _shared), _SHARED["interleaved"]
    keys = (turns if "keys-interleaved" in slips else share)(k, q.shape[1])
    values = (turns if "values-interleaved" in slips else share)(v, q.shape[1])  # (B, H, S, K)
    scores = q @ keys.transpose(-2, -1) / math.sqrt(square)  # (B, H, T, S)
    allowed = ~mask if "mask-reversed" in slips else mask
    if not slips & {"mask-ignored", "mask-after-softmax"}:
        scores = scores.masked_fill(~allowed, -torch.inf)
    weights = scores.softmax(-2 if "softmax-over-queries" in slips else -1)
    if "mask-after-softmax" in slips:
        weights = weights * allowed
    if "weights-returned" in slips:
        return weights
    context = weights @ (keys if "keys-for-values" in slips else values)  # (B, H, T, K)
    return context.transpose(1, 2).flatten(2) if "heads-merged" in slips else context


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
    yield case(2, 6, 3, 3, 5, 4)
    yield case(3, 3, 3, 2, 4, 5)  # as many key heads as query heads: plain attention
    yield case(2, 6, 2, 5, 7, 3)


GROUPED_QUERY_ATTENTION = Exercise(
    name="grouped_query_attention",
    read=floats,
    solve=_grouped,
    calls=_grouped_calls,
    mistakes=mistakes(
        "grouped_query_attention",
        with_slips=_grouped,
        exclusive=(
            [*_SHARED, "keys-interleaved", "values-interleaved", "queries-averaged"],
            [*_DIVISORS],
            ["mask-ignored", "mask-reversed", "mask-after-softmax"],
            ["weights-returned", "keys-for-values", "heads-merged"],
        ),
        together=("interleaved", "not-scaled", "mask-ignored"),
    ),
)
EXERCISES = (RMS_NORM, SWIGLU, GROUPED_QUERY_ATTENTION)
