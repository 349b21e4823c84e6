"""Exercises on attention itself and on splitting vectors among heads."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from tinytx.model.attention import attention
from tinytx.model.masks import causal_mask
from tinytx_course.exercises.comparing import floats
from tinytx_course.exercises.exercise import Exercise, Mistake, family, generator, normal
from tinytx_course.exercises.observation import Call, Observation

_ALL, _SCALE = "All at once: attention of y over x", "Break it: attention without the scale"
_MASKS, _BLIND = "Break it: ways to get the mask wrong", "A query that may see nothing"
Slips = frozenset[str]


def _scaled(q: Tensor, k: Tensor, slips: Slips) -> Tensor:
    scores, width = q @ k.transpose(-2, -1), q.shape[-1]  # (..., T, S)
    divisors = {
        "not-scaled": 1.0,
        "scale-after-softmax": 1.0,
        "scale-without-root": float(width),
        "scale-multiplied": width**-0.5,
        "scale-by-keys": math.sqrt(k.shape[-2]),
        "scale-by-queries": math.sqrt(q.shape[-2]),
        "scale-by-root-of-64": 8.0,
        "scale-by-root-of-512": math.sqrt(512),
        "scale-by-second-axis": math.sqrt(q.shape[1]),
        "scale-by-first-axis": math.sqrt(q.shape[0]),
    }
    chosen = [divisor for slug, divisor in divisors.items() if slug in slips]
    return scores / (chosen[0] if chosen else math.sqrt(width))


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
    axis = {"softmax-over-queries": -2, "softmax-over-second-axis": 1, "softmax-over-first-axis": 0}
    chosen = [dim for slug, dim in axis.items() if slug in slips]
    weights = scores.softmax(chosen[0] if chosen else -1)
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


_ANOTHER_SCALE = (
    "The scores are divided by the root of another length: it is the width K of a query, `q.shape[-1]`."
)
_ANOTHER_AXIS = (
    "The softmax runs over the wrong axis: for each query, the weights of all keys must sum to 1 (`dim=-1`)."
)
_SLIPS = {
    "not-scaled": ("The scores are not divided by sqrt(K), K the width of a query.", _SCALE),
    "scale-without-root": (
        "The scores are divided by K instead of sqrt(K) (or by sqrt(K) twice).",
        _SCALE,
    ),
    "scale-multiplied": ("The scores are multiplied by sqrt(K): they are to be divided by it.", _SCALE),
    "scale-by-keys": (_ANOTHER_SCALE, _SCALE),
    "scale-by-queries": (_ANOTHER_SCALE, _SCALE),
    "scale-by-second-axis": (_ANOTHER_SCALE, _SCALE),
    "scale-by-root-of-64": ("The scores are always divided by 8: divide by sqrt(K), whatever K is.", _SCALE),
    "scale-by-root-of-512": (
        "The scores are always divided by sqrt(512): it is the width K of a query.",
        _SCALE,
    ),
    "scale-by-first-axis": (_ANOTHER_SCALE, _SCALE),
    "scale-after-softmax": (
        "The division by sqrt(K) comes after the softmax: it belongs to the scores, before it.",
        _SCALE,
    ),
    "mask-reversed": (
        'The mask is read the wrong way round: True means "may attend"; the places with False are blocked.',
        "Two signs for one rule",
    ),
    "mask-after-softmax": (
        "The mask comes after the softmax, so what is left no longer sums to 1: block the scores before it.",
        _MASKS,
    ),
    "mask-ignored": ("The mask has no effect.", _MASKS),
    "mask-multiplied": (
        "Blocked scores become 0 (or 1e-9), and exp(0) = 1: they keep their weight. They should "
        "be so negative "
        "that the softmax gives them 0.",
        _MASKS,
    ),
    "mask-added": ("True and False are added to the scores as 1 and 0, which blocks nothing.", _MASKS),
    "softmax-over-queries": (_ANOTHER_AXIS, _ALL),
    "softmax-over-second-axis": (_ANOTHER_AXIS, _ALL),
    "softmax-over-first-axis": (_ANOTHER_AXIS, _ALL),
    "softmax-over-everything": (_ANOTHER_AXIS, _ALL),
    "argmax": ("Each query takes the one best value: softmax weighs all of them instead.", _ALL),
    "no-softmax": ("The raw scores weigh the values: the softmax is missing.", _ALL),
    "log-softmax": ("The weights are log-probabilities: softmax, not log_softmax.", _ALL),
    "keys-for-values": ("The weights are applied to the keys: it is the values that are averaged.", _ALL),
    "queries-for-keys": ("The queries are compared with themselves: compare them with the keys.", _ALL),
    "keys-and-queries-exchanged": ("Keys and queries are exchanged: the scores are q kᵀ, (T, S).", _ALL),
    "returns-weights": ("These are the weights: multiply them by the values, and return that.", _ALL),
    "mask-transposed": ("The mask is transposed: its rows are queries, its columns keys.", _MASKS),
    "transposed": ("The last two axes of the result are exchanged: (..., T, K).", _ALL),
    "uniform-for-blind": (
        "A query that may see nothing gets the plain mean of all values. With a large negative fill all its "
        "scores are equal, so softmax spreads evenly: set the result of such a query to zeros afterwards.",
        _BLIND,
    ),
    "nan-for-blind": (
        "A query that may see nothing gives NaN: softmax over -inf alone is 0/0. Its result should be zeros.",
        _BLIND,
    ),
}
_EXCLUSIVE = (
    [slug for slug in _SLIPS if slug.startswith(("scale", "not-scaled"))],
    [
        "mask-reversed",
        "mask-after-softmax",
        "mask-ignored",
        "mask-multiplied",
        "mask-added",
        "mask-transposed",
    ],
    [slug for slug in _SLIPS if "softmax" in slug and not slug.startswith(("mask", "scale"))]
    + ["argmax", "returns-weights"],
    ["uniform-for-blind", "nan-for-blind", "mask-ignored", "mask-multiplied", "mask-added", "argmax"],
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
    signature="attention(q, k, v, mask)",
    lesson=2,
    section=_ALL,
    rule=(
        "softmax(q kᵀ / sqrt(K)) v of shape (..., T, K), the softmax over the keys that the mask (..., T, S) "
        "allows; zeros for a query that may see nothing."
    ),
    read=floats,
    solve=attention,
    calls=_attention_calls,
    mistakes=family(_attention, _SLIPS, _EXCLUSIVE, ("not-scaled", "uniform-for-blind", "nan-for-blind")),
    probe=_LARGE_SCORES,
    hint=_attention_hint,
)


def _split(x: Tensor, n_heads: int) -> Tensor:
    batch_size, seq_len, d_model = x.shape
    return x.view(batch_size, seq_len, n_heads, d_model // n_heads).transpose(1, 2)  # (B, H, T, K)


def _split_calls(seed: int) -> Iterator[Call]:
    for b, t, h, k in ((1, 1, 2, 1), (1, 2, 2, 3), (2, 3, 5, 2), (1, 4, 2, 2 + seed % 2), (3, 2, 3, 5)):
        numbers = torch.arange(b * t * h * k, dtype=torch.float32, device="cpu")
        yield Call((numbers.view(b, t, h * k), h))


def _cut(x: Tensor, n_heads: int) -> Tensor:
    return x.view(*x.shape[:2], n_heads, -1)  # (B, T, H, K)


_SCRAMBLED = (
    "The numbers are only laid out anew, so heads hold pieces of different tokens. Split the last "
    "axis first, "
    "(B, T, H, K), then exchange T and H with `transpose(1, 2)`."
)
SPLIT_HEADS = Exercise(
    name="split_heads",
    signature="split_heads(x, n_heads)",
    lesson=4,
    section="Vectorised: many heads are one reshape",
    rule=(
        "a tensor of shape (B, H, T, K), K = D / H: head h holds, for every token, the features h·K to "
        "(h + 1)·K - 1."
    ),
    read=floats,
    solve=_split,
    calls=_split_calls,
    mistakes=(
        Mistake("view-without-transpose", _SCRAMBLED, lambda x, h: x.reshape(len(x), h, x.shape[1], -1)),
        Mistake(
            "not-transposed",
            "The axes stand as (B, T, H, K): exchange T and H, so that each head is a batch of its own.",
            _cut,
        ),
        Mistake(
            "interleaved",
            "A head takes every H-th feature: it should take K neighbouring ones. View as (H, K), "
            "not (K, H).",
            lambda x, h: x.view(*x.shape[:2], -1, h).permute(0, 3, 1, 2),
        ),
        Mistake(
            "n-heads-taken-for-width",
            "`n_heads` was used as the width of a head: there are `n_heads` heads of width D // n_heads.",
            lambda x, h: x.view(*x.shape[:2], -1, h).transpose(1, 2),
        ),
        Mistake(
            "heads-and-width-exchanged",
            "Heads and width are exchanged: the second axis is H, the last one K.",
            lambda x, h: _cut(x, h).permute(0, 3, 1, 2),
        ),
        Mistake(
            "tokens-last",
            "The last two axes are exchanged: (B, H, T, K).",
            lambda x, h: _cut(x, h).permute(0, 2, 3, 1),
        ),
        Mistake(
            "heads-first",
            "The heads stand before the batch: (B, H, T, K).",
            lambda x, h: torch.stack(x.chunk(h, -1)),
        ),
        Mistake(
            "heads-last",
            "The heads stand last: (B, H, T, K).",
            lambda x, h: _cut(x, h).transpose(2, 3),
        ),
        Mistake(
            "batch-and-heads-merged",
            "Batch and heads are one axis: keep them apart, (B, H, T, K).",
            lambda x, h: _split(x, h).flatten(0, 1),
        ),
        Mistake(
            "every-head-gets-all",
            "Every head gets all D features: each gets its own K of them.",
            lambda x, h: x[:, None].expand(-1, h, -1, -1),
        ),
        Mistake(
            "same-slice-for-all",
            "Every head gets the same first K features: head h starts at feature h·K.",
            lambda x, h: x[:, None, :, : x.shape[2] // h].expand(-1, h, -1, -1),
        ),
        Mistake("only-first-head", "This is the first head alone.", lambda x, h: x[..., : x.shape[2] // h]),
        Mistake(
            "batch-and-tokens-exchanged",
            "Batch and tokens are exchanged: x comes as (B, T, D), batch first.",
            lambda x, h: _cut(x, h).permute(1, 2, 0, 3),
        ),
        Mistake(
            "tokens-split",
            "The tokens are shared out among the heads: it is the features of each token that are.",
            lambda x, h: x.view(len(x), h, x.shape[1] // h, x.shape[2]),
        ),
        Mistake("heads-reversed", "The heads stand in reversed order.", lambda x, h: _split(x, h).flip(1)),
    ),
)
EXERCISES = (ATTENTION, SPLIT_HEADS)
