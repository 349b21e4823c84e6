"""Exercises on faster training: the cost of padding, and a batch in parts."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from tinytx_course.exercises.comparing import count, floats
from tinytx_course.exercises.exercise import Exercise, generator, mistakes, normal
from tinytx_course.exercises.observation import Call

Lengths = Sequence[int]


def _cut(lengths: Lengths, batch_size: int) -> list[Lengths]:
    return [lengths[i : i + batch_size] for i in range(0, len(lengths), batch_size)]


def _cost_of(cost: Callable[[Lengths], int]) -> Callable[[Lengths, int], int]:
    """Cut in order, and sum a cost of each batch."""
    return lambda lengths, batch_size: sum(cost(batch) for batch in _cut(lengths, batch_size))


_padded_cost = _cost_of(lambda batch: len(batch) * max(batch))


def _every_other(lengths: Lengths, batch_size: int) -> int:
    n_batches = -(-len(lengths) // batch_size)
    return sum(len(lengths[i::n_batches]) * max(lengths[i::n_batches]) for i in range(n_batches))


def _padded_calls(seed: int) -> Iterator[Call]:
    rng = random.Random(seed)
    for lengths, batch_size in (
        ([3], 1),
        ([2, 5], 2),
        ([2, 5, 3, 4], 2),
        ([2, 5, 3, 4, 9], 2),
        ([4, 2, 7, 1, 1, 3, 8, 5], 3),
        ([6, 2], 7),
        ([rng.randint(1, 90) for _ in range(23)], 5),
        ([], 3),
    ):
        yield Call((lengths, batch_size))


PADDED_COST = Exercise(
    name="padded_cost",
    read=count,
    solve=_padded_cost,
    calls=_padded_calls,
    mistakes=mistakes(
        "padded_cost",
        {
            "padding-forgotten": lambda lengths, _: sum(lengths),
            "padding-only": lambda lengths, size: _padded_cost(lengths, size) - sum(lengths),
            "longest-of-all": (
                lambda lengths, _: len(lengths) * max(lengths, default=0),
                lambda lengths, _: len(lengths) * max(lengths),
            ),
            "last-batch-full": _cost_of(lambda batch: max(batch)),
            "full-rows-counted": lambda lengths, size: (
                size * sum(max(batch) for batch in _cut(lengths, size))
            ),
            "rest-dropped": lambda lengths, size: _padded_cost(lengths[: len(lengths) // size * size], size),
            "sorted-first": (
                lambda lengths, size: _padded_cost(sorted(lengths), size),
                lambda lengths, size: _padded_cost(sorted(lengths, reverse=True), size),
            ),
            "shortest": _cost_of(lambda batch: len(batch) * min(batch)),
            "first-row": _cost_of(lambda batch: len(batch) * batch[0]),
            "last-row": _cost_of(lambda batch: len(batch) * batch[-1]),
            "pairs": _cost_of(lambda batch: len(batch) * max(batch) ** 2),
            "every-other": _every_other,
            "one-batch-too-few": lambda lengths, size: _padded_cost(lengths[size:], size),
            "empty-refused": lambda lengths, size: _padded_cost(lengths, size) if lengths else max(lengths),
        },
    ),
)


def _accumulate(gradients: Tensor, n_tokens: Tensor) -> Tensor:
    return (gradients * n_tokens[:, None]).sum(0) / n_tokens.sum()


def _accumulate_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 13)
    yield Call((torch.tensor([[1.0], [4.0]], device="cpu"), torch.tensor([2, 1], device="cpu")))
    for n_tokens, width in (((1,), 2), ((1, 3), 2), ((5, 2, 2), 3), ((7, 1, 4), 3), ((64, 3, 11, 2, 30), 7)):
        yield Call((normal(rng, len(n_tokens), width), torch.tensor(n_tokens, device="cpu")))


def _weighted(weights: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda gradients, n_tokens: (gradients * weights(n_tokens.double())[:, None]).sum(0)


ACCUMULATE = Exercise(
    name="accumulate",
    read=floats,
    solve=_accumulate,
    calls=_accumulate_calls,
    mistakes=mistakes(
        "accumulate",
        {
            "plain-mean": _weighted(lambda n: torch.ones_like(n) / len(n)),
            "plain-sum": _weighted(torch.ones_like),
            "not-divided": _weighted(lambda n: n),
            "divided-by-parts": _weighted(lambda n: n / len(n)),
            "sum-over-tokens": _weighted(lambda n: torch.ones_like(n) / n.sum()),
            "last-part": lambda gradients, _: gradients[-1],
            "first-part": lambda gradients, _: gradients[0],
            "divided-by-own-tokens": (
                _weighted(lambda n: 1 / n),
                _weighted(lambda n: 1 / n / (1 / n).sum()),
                _weighted(lambda n: 1 / n / len(n)),
            ),
            "softmax": _weighted(lambda n: n.softmax(0)),
            "largest-part": _weighted(lambda n: n / n.max()),
            "not-added": lambda gradients, n: gradients * (n / n.sum())[:, None],
            "wrong-axis": (
                lambda gradients, n: (gradients * (n / n.sum())[:, None]).sum(1),
                lambda gradients, n: (gradients * n[:, None]).sum(1) / n.sum(),
            ),
            "sign": lambda gradients, n: -_accumulate(gradients, n),
            "divided-twice": _weighted(lambda n: n / n.sum() / len(n)),
            "whole-shares": _weighted(lambda n: n // n.sum()),
        },
    ),
)
EXERCISES = (PADDED_COST, ACCUMULATE)
