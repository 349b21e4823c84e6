"""Exercises on attention: from one row of weights to the whole, and many heads."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from tinytx.attention import attention, attention_weights, fused_attention
from tinytx.masks import causal_mask
from tinytx_course.exercises.comparing import floats
from tinytx_course.exercises.exercise import Exercise, chosen, generator, mistakes, normal
from tinytx_course.exercises.observation import Call, Observation

Slips = frozenset[str]
_DIVISORS: dict[str, Callable[[Tensor, Tensor], float]] = {  # from q and k to the square of the divisor
    "not-scaled": lambda q, k: 1,
    "scale-after-softmax": lambda q, k: 1,
    "scale-without-root": lambda q, k: q.shape[-1] ** 2,
    "scale-multiplied": lambda q, k: 1 / q.shape[-1],
    "scale-by-keys": lambda q, k: k.shape[-2],
    "scale-by-queries": lambda q, k: q.shape[-2],
    "scale-by-root-of-64": lambda q, k: 64,
    "scale-by-root-of-512": lambda q, k: 512,
    "scale-by-second-axis": lambda q, k: q.shape[1],
    "scale-by-first-axis": lambda q, k: q.shape[0],
}
_AXES = {"softmax-over-queries": -2, "softmax-over-second-axis": 1, "softmax-over-first-axis": 0}


_ROW_DIVISORS: dict[str, Callable[[int, int], float]] = {  # from K and S
    "not-scaled": lambda k, s: 1.0,
    "scale-without-root": lambda k, s: k,
    "scale-multiplied": lambda k, s: k**-0.5,
    "scale-by-keys": lambda k, s: s**0.5,
    "scale-always-2": lambda k, s: 2.0,
}
_ROW_WEIGHTS: dict[str, Callable[[Tensor], Tensor]] = {  # from scores
    "scores-returned": lambda scores: scores,
    "not-normalised": lambda scores: scores.exp(),
    "without-exp": lambda scores: scores / scores.sum(),
    "power-of-two": lambda scores: (scores * math.log(2)).softmax(0),
    "log-softmax": lambda scores: scores.log_softmax(0),
    "argmax": lambda scores: torch.nn.functional.one_hot(scores.argmax(), len(scores)).float(),
    "uniform": lambda scores: torch.ones_like(scores) / len(scores),
    "sign-exchanged": lambda scores: (-scores).softmax(0),
    "divided-by-largest": lambda scores: scores.exp() / scores.exp().max(),
}


def _row(query: Tensor, keys: Tensor, *, slips: Slips = frozenset()) -> Tensor:
    """One row of attention weights, with slips."""
    n_keys, width = keys.shape
    fits = (keys - query).norm(dim=1).neg() if "distances" in slips else keys @ query  # (S,)
    scores = fits / chosen(_ROW_DIVISORS, slips, lambda k, s: math.sqrt(k))(width, n_keys)
    weights = chosen(_ROW_WEIGHTS, slips, lambda scores: scores.softmax(0))(scores)
    if "scale-after-softmax" in slips:
        weights = fits.softmax(0) / math.sqrt(width)
    return weights


def _row_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 2)
    small = [
        ([2.0], [[1.0], [0.0]]),
        ([1.0, 0.0], [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]),
        ([0.0, 2.0, 0.0, 1.0], [[2.0, 0, 0, 0], [0, 2.0, 0, 0], [0, 0, 2.0, 0], [0, 2.0, 0, 1.0]]),
    ]
    for query, keys in small:
        yield Call(tuple(torch.tensor(x, dtype=torch.float32, device="cpu") for x in (query, keys)))
    for n_keys, width in ((2, 5), (5, 3), (7, 2)):
        yield Call((normal(rng, width).round(decimals=1), normal(rng, n_keys, width).round(decimals=1)))


ATTENTION_ROW = Exercise(
    name="attention_row",
    read=floats,
    solve=_row,
    calls=_row_calls,
    answers=(attention_weights,),
    mistakes=mistakes(
        "attention_row",
        {
            "extra-axes": (lambda q, k: _row(q, k)[None], lambda q, k: _row(q, k)[:, None]),
            "products-not-summed": (
                lambda q, k: (q * k / math.sqrt(len(q))).softmax(-1),
                lambda q, k: (q * k / math.sqrt(len(q))).softmax(0),
                lambda q, k: q * k / math.sqrt(len(q)),
            ),
            "mixture-returned": lambda q, k: _row(q, k) @ k,
            "all-rows": lambda q, k: (k @ k.T / math.sqrt(len(q))).softmax(-1),
        },
        _row,
        exclusive=(
            [*_ROW_DIVISORS, "scale-after-softmax", "uniform"],
            [*_ROW_WEIGHTS, "scale-after-softmax"],
        ),
        together=("not-scaled",),
    ),
)


def _scaled(q: Tensor, k: Tensor, slips: Slips) -> Tensor:
    square = chosen(_DIVISORS, slips, lambda q, k: q.shape[-1])(q, k)
    return q @ k.transpose(-2, -1) / math.sqrt(square)  # (..., T, S)


def _masked(scores: Tensor, mask: Tensor, slips: Slips) -> Tensor:
    """Scores as they go into the softmax."""
    if slips & {"mask-ignored", "mask-after-softmax", "no-softmax"}:
        return scores
    if "mask-multiplied" in slips:
        return scores * mask
    if "mask-added" in slips:
        return scores + mask.float()
    return scores.masked_fill(~mask, -torch.inf if "nan-for-blind" in slips else -1e9)


def _weights(scores: Tensor, mask: Tensor, slips: Slips) -> Tensor:
    scores = _masked(scores, mask, slips)
    if "argmax" in slips:
        return torch.nn.functional.one_hot(scores.argmax(-1), scores.shape[-1]).float()
    if "no-softmax" in slips:
        return scores.masked_fill(~mask, 0.0)
    if "log-softmax" in slips:
        return scores.log_softmax(-1)
    if "softmax-over-everything" in slips:
        return scores.flatten(-2).softmax(-1).view(scores.shape)
    weights = scores.softmax(chosen(_AXES, slips, -1))
    return weights * mask if "mask-after-softmax" in slips else weights


_NO_ZEROING = {"nan-for-blind", "uniform-for-blind", "mask-ignored", "mask-multiplied", "mask-added"}


def _attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, *, slips: Slips = frozenset()) -> Tensor:
    """Attention with slips; without any it is that of the package."""
    if "mask-reversed" in slips:
        mask = ~mask
    if "mask-transposed" in slips:
        mask = mask.transpose(-2, -1)
    if "queries-for-keys" in slips:
        k = q
    if "keys-and-queries-exchanged" in slips:
        q, k = k, q
    weights = _weights(_scaled(q, k, slips), mask, slips)
    if not slips & _NO_ZEROING:
        weights = weights.masked_fill(~mask.any(-1, keepdim=True), 0.0)
    if "scale-after-softmax" in slips:
        weights = weights / math.sqrt(q.shape[-1])
    if "returns-weights" in slips:
        return weights
    context = weights @ (k if "keys-for-values" in slips else v)
    return context.transpose(-2, -1) if "transposed" in slips else context


_EXCLUSIVE = (
    [*_DIVISORS],
    ["softmax-over-everything", "no-softmax", "log-softmax", "argmax", "returns-weights", *_AXES],
    [
        "mask-reversed",
        "mask-after-softmax",
        "mask-ignored",
        "mask-multiplied",
        "mask-added",
        "mask-transposed",
    ],
    [*_NO_ZEROING, "argmax"],
    ["uniform-for-blind", "nan-for-blind", "mask-after-softmax", "no-softmax"],
    ["keys-for-values", "queries-for-keys", "keys-and-queries-exchanged", "returns-weights", "transposed"],
)


def _attention_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 3)

    def case(*lead: int, t: int, s: int, k: int, mask: Tensor) -> Call:
        shapes = ((*lead, t, k), (*lead, s, k), (*lead, s, k))
        return Call((*(normal(rng, *shape).round(decimals=1) for shape in shapes), mask))

    yield case(t=1, s=2, k=2, mask=torch.ones(1, 2, dtype=torch.bool, device="cpu"))
    yield case(t=2, s=3, k=2, mask=torch.tensor([[True, False, True], [True, True, False]], device="cpu"))
    yield case(t=3, s=3, k=5, mask=causal_mask(3, device="cpu"))
    yield case(t=2, s=3, k=2, mask=torch.tensor([[False] * 3, [True, False, True]], device="cpu"))
    yield case(2, t=3, s=5, k=4, mask=_some(rng, 2, 3, 5))
    yield case(2, 3, t=4, s=5, k=7, mask=_some(rng, 2, 3, 4, 5))


def _some(rng: torch.Generator, *shape: int) -> Tensor:
    mask = torch.rand(shape, generator=rng, dtype=torch.float32, device="cpu") < 0.6
    mask[..., 0] |= ~mask.any(-1)
    return mask


_LARGE_SCORES = Call(
    (
        torch.full((1, 1), 100.0, dtype=torch.float32, device="cpu"),
        torch.tensor([[1.0], [0.5]], dtype=torch.float32, device="cpu"),
        torch.tensor([[1.0], [0.5]], dtype=torch.float32, device="cpu"),
        torch.ones(1, 2, dtype=torch.bool, device="cpu"),
    )
)


def _attention_hint(observation: Observation) -> str:
    """Large scores: a remark, no failure."""
    if isinstance(observation.value, Tensor) and not observation.value.isfinite().all():
        return (
            "With scores near 100 the softmax overflows: subtract the largest score of each row before exp."
        )
    return ""


ATTENTION = Exercise(
    name="attention",
    read=floats,
    solve=attention,
    calls=_attention_calls,
    answers=(fused_attention, F.scaled_dot_product_attention),
    mistakes=mistakes(
        "attention",
        with_slips=_attention,
        exclusive=_EXCLUSIVE,
        together=("not-scaled", "uniform-for-blind", "nan-for-blind"),
    ),
    probe=_LARGE_SCORES,
    hint=_attention_hint,
)


def _cut(x: Tensor, n_heads: int) -> Tensor:
    return x.view(*x.shape[:2], n_heads, -1)  # (B, T, H, K)


def _split(x: Tensor, n_heads: int) -> Tensor:
    return _cut(x, n_heads).transpose(1, 2)  # (B, H, T, K)


def _split_calls(seed: int) -> Iterator[Call]:
    for b, t, h, k in ((1, 1, 2, 1), (1, 2, 2, 3), (2, 3, 5, 2), (1, 4, 2, 2 + seed % 2), (3, 2, 3, 5)):
        numbers = torch.arange(b * t * h * k, dtype=torch.float32, device="cpu")
        yield Call((numbers.view(b, t, h * k), h))


SPLIT_HEADS = Exercise(
    name="split_heads",
    read=floats,
    solve=_split,
    calls=_split_calls,
    mistakes=mistakes(
        "split_heads",
        {
            "view-without-transpose": lambda x, h: x.reshape(len(x), h, x.shape[1], -1),
            "not-transposed": _cut,
            "interleaved": lambda x, h: x.view(*x.shape[:2], -1, h).permute(0, 3, 1, 2),
            "n-heads-taken-for-width": lambda x, h: x.view(*x.shape[:2], -1, h).transpose(1, 2),
            "heads-and-width-exchanged": lambda x, h: _cut(x, h).permute(0, 3, 1, 2),
            "tokens-last": lambda x, h: _cut(x, h).permute(0, 2, 3, 1),
            "heads-first": lambda x, h: torch.stack(x.chunk(h, -1)),
            "heads-last": lambda x, h: _cut(x, h).transpose(2, 3),
            "batch-and-heads-merged": lambda x, h: _split(x, h).flatten(0, 1),
            "every-head-gets-all": lambda x, h: x[:, None].expand(-1, h, -1, -1),
            "same-slice-for-all": lambda x, h: x[:, None, :, : x.shape[2] // h].expand(-1, h, -1, -1),
            "only-first-head": lambda x, h: x[..., : x.shape[2] // h],
            "batch-and-tokens-exchanged": lambda x, h: _cut(x, h).permute(1, 2, 0, 3),
            "tokens-split": lambda x, h: x.view(len(x), h, x.shape[1] // h, x.shape[2]),
            "heads-reversed": lambda x, h: _split(x, h).flip(1),
        },
    ),
)


def _merge(context: Tensor) -> Tensor:
    return context.transpose(1, 2).flatten(2)  # (B, H, T, K) -> (B, T, D)


def _merge_calls(seed: int) -> Iterator[Call]:
    for b, h, t, k in ((1, 2, 1, 2), (1, 2, 2, 2), (2, 3, 5, 2), (1, 2, 4, 2 + seed % 2), (3, 5, 2, 3)):
        numbers = torch.arange(b * h * t * k, dtype=torch.float32, device="cpu")
        yield Call((numbers.view(b, h, t, k),))


MERGE_HEADS = Exercise(
    name="merge_heads",
    read=floats,
    solve=_merge,
    calls=_merge_calls,
    mistakes=mistakes(
        "merge_heads",
        {
            "reshape-without-transpose": lambda c: c.reshape(len(c), c.shape[2], -1),
            "interleaved": lambda c: c.permute(0, 2, 3, 1).flatten(2),
            "not-merged": lambda c: c.transpose(1, 2),
            "heads-added": lambda c: c.sum(1),
            "heads-averaged": lambda c: c.mean(1),
            "heads-as-tokens": lambda c: c.flatten(1, 2),
            "only-first-head": lambda c: c[:, 0],
            "heads-reversed": lambda c: _merge(c.flip(1)),
            "tokens-last": lambda c: c.transpose(2, 3).flatten(1, 2),
            "batch-and-tokens-exchanged": lambda c: c.permute(2, 0, 1, 3).flatten(2),
            "batch-and-tokens-merged": lambda c: _merge(c).flatten(0, 1),
            "batch-and-heads-exchanged": lambda c: torch.cat([*c], -1),
        },
    ),
)

_CUTS: dict[str, Callable[[Tensor, int], Tensor]] = {
    "heads-ignored": lambda x, h: x[:, None],
    "view-without-transpose": lambda x, h: x.reshape(len(x), h, x.shape[1], -1),
    "attends-among-heads": _cut,
    "interleaved": lambda x, h: x.view(*x.shape[:2], -1, h).permute(0, 3, 1, 2),
    "n-heads-taken-for-width": lambda x, h: x.view(*x.shape[:2], -1, h).transpose(1, 2),
}
_WIDTHS: dict[str, Callable[[int, int], float]] = {  # from D and H to the square of the divisor
    "not-scaled": lambda d, h: 1,
    "scale-by-model-width": lambda d, h: d,
    "scale-without-root": lambda d, h: (d // h) ** 2,
    "scale-by-heads": lambda d, h: h,
}


def _merged(context: Tensor, seq_len: int, slips: Slips) -> Tensor:
    if "attends-among-heads" in slips:
        return context.flatten(2)
    if "merge-without-transpose" in slips:
        return context.reshape(len(context), seq_len, -1)
    return _merge(context)


def _multi_head(
    x: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    w_o: Tensor,
    n_heads: int,
    mask: Tensor,
    *,
    slips: Slips = frozenset(),
) -> Tensor:
    """Multi-head self-attention with slips."""
    if "weights-transposed" in slips:
        w_q, w_k, w_v, w_o = (w.T for w in (w_q, w_k, w_v, w_o))
    if "one-projection-for-all" in slips:
        w_k = w_v = w_q
    values = x if "values-not-projected" in slips else x @ w_v
    cut = chosen(_CUTS, slips, _split)
    q, k, v = (cut(each, n_heads) for each in (x @ w_q, x @ w_k, values))  # (B, H, T, K)
    if "keys-for-values" in slips:
        v = k
    square = chosen(_WIDTHS, slips, lambda d, h: q.shape[-1])(x.shape[-1], n_heads)
    mask = ~mask if "mask-reversed" in slips else mask
    weights = _weights(q @ k.transpose(-2, -1) / math.sqrt(square), mask, slips)
    context = _merged(weights @ v, x.shape[1], slips)
    out = context if "output-projection-missing" in slips else context @ w_o
    return x + out if "residual-added" in slips else out


def _multi_head_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 14)

    def case(*, b: int, t: int, h: int, k: int, mask: Tensor) -> Call:
        x, *weights = normal(rng, b, t, h * k), *(normal(rng, h * k, h * k) for _ in range(4))
        return Call((*(each.round(decimals=1) for each in (x, *weights)), h, mask))

    yield case(b=1, t=2, h=2, k=1, mask=torch.ones(2, 2, dtype=torch.bool, device="cpu"))
    yield case(b=1, t=2, h=2, k=2, mask=causal_mask(2, device="cpu"))
    yield case(b=2, t=5, h=3, k=2, mask=causal_mask(5, device="cpu"))
    yield case(b=3, t=4, h=2, k=5, mask=_some(rng, 4, 4) | torch.eye(4, dtype=torch.bool, device="cpu"))
    yield case(b=2, t=7, h=1, k=3, mask=torch.ones(7, 7, dtype=torch.bool, device="cpu"))


MULTI_HEAD_ATTENTION = Exercise(
    name="multi_head_attention",
    read=floats,
    solve=_multi_head,
    calls=_multi_head_calls,
    mistakes=mistakes(
        "multi_head_attention",
        with_slips=_multi_head,
        exclusive=([*_CUTS, "merge-without-transpose"], [*_WIDTHS]),
        together=("output-projection-missing", "scale-by-model-width", "mask-ignored"),
    ),
)
EXERCISES = (ATTENTION_ROW, ATTENTION, SPLIT_HEADS, MERGE_HEADS, MULTI_HEAD_ATTENTION)
