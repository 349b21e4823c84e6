"""Exercises on attention: from one row of weights to many heads, a head taken away, the mark of induction."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from tinytx.attention import attention_weights, fused_attention
from tinytx.masks import causal_mask
from tinytx_course.exercises.comparing import floats
from tinytx_course.exercises.exercise import Exercise, generator, normal
from tinytx_course.exercises.observation import Call, Observation


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


_LARGE = torch.full((1, 1), 100.0, dtype=torch.float32, device="cpu")
_KEYS = torch.tensor([[1.0], [0.5]], dtype=torch.float32, device="cpu")
_LARGE_SCORES = Call((_LARGE, _KEYS, _KEYS, torch.ones(1, 2, dtype=torch.bool, device="cpu")))


def _attention_hint(observation: Observation) -> str:
    """Large scores: a remark, no failure."""
    if isinstance(observation.value, Tensor) and not observation.value.isfinite().all():
        return (
            "With scores near 100 the softmax overflows: subtract the largest score of each row before exp."
        )
    return ""


def _split_calls(seed: int) -> Iterator[Call]:
    for b, t, h, k in ((1, 1, 2, 1), (1, 2, 2, 3), (2, 3, 5, 2), (1, 4, 2, 2 + seed % 2), (3, 2, 3, 5)):
        numbers = torch.arange(b * t * h * k, dtype=torch.float32, device="cpu")
        yield Call((numbers.view(b, t, h * k), h))


def _merge_calls(seed: int) -> Iterator[Call]:
    for b, h, t, k in ((1, 2, 1, 2), (1, 2, 2, 2), (2, 3, 5, 2), (1, 2, 4, 2 + seed % 2), (3, 5, 2, 3)):
        numbers = torch.arange(b * h * t * k, dtype=torch.float32, device="cpu")
        yield Call((numbers.view(b, h, t, k),))


def _contribution_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 44)
    context, w_o = torch.tensor([2.0, 3.0], device="cpu"), torch.tensor([1.0, 10, 100, 1000], device="cpu")
    yield Call((context.view(1, 2, 1, 1), w_o.view(2, 2)))
    for b, h, t, k in ((1, 2, 1, 2), (1, 2, 3, 3), (2, 3, 5, 2), (3, 5, 2, 3), (2, 3, 7, 5)):
        drawn = normal(rng, b, h, t, k), normal(rng, h * k, h * k)
        yield Call(tuple(each.round(decimals=1) for each in drawn))


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


EXERCISES = (
    Exercise(name="attention_row", read=floats, calls=_row_calls, answers=(attention_weights,)),
    Exercise(
        name="attention",
        read=floats,
        calls=_attention_calls,
        answers=(fused_attention, F.scaled_dot_product_attention),
        probe=_LARGE_SCORES,
        hint=_attention_hint,
    ),
    Exercise(name="split_heads", read=floats, calls=_split_calls),
    Exercise(name="merge_heads", read=floats, calls=_merge_calls),
    Exercise(name="head_contributions", read=floats, calls=_contribution_calls),
    Exercise(name="multi_head_attention", read=floats, calls=_multi_head_calls),
)
