"""Exercises on looking inside: a head taken away, and the attention that marks an induction head."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from tinytx_course.exercises.comparing import floats
from tinytx_course.exercises.exercise import Exercise, generator, mistakes, normal
from tinytx_course.exercises.observation import Call


def _filled(context: Tensor, n_heads: int, head: int, value: float | Tensor = 0.0) -> Tensor:
    heads = context.unflatten(-1, (n_heads, -1)).clone()  # (B, T, H, K)
    heads[:, :, head] = value
    return heads.flatten(2)


def _only(context: Tensor, n_heads: int, head: int) -> Tensor:
    return context - _filled(context, n_heads, head)


def _columns(context: Tensor, columns: slice) -> Tensor:
    left = context.clone()
    left[..., columns] = 0.0
    return left


def _head_mean(context: Tensor, n_heads: int, head: int) -> Tensor:
    means = context.unflatten(-1, (n_heads, -1))[:, :, head].mean(dim=(0, 1))  # (K,)
    return _filled(context, n_heads, head, means)


def _without(context: Tensor, n_heads: int, head: int) -> Tensor:
    heads = context.unflatten(-1, (n_heads, -1))
    return torch.cat([heads[:, :, :head], heads[:, :, head + 1 :]], dim=2).flatten(2)


def _rows_zeroed(context: Tensor, axis: int, index: int) -> Tensor:
    left = context.clone()
    left.select(axis, min(index, context.shape[axis] - 1)).zero_()
    return left


def _ablation_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 17)
    for b, t, n_heads, width, head in (
        (1, 1, 2, 1, 0),
        (1, 2, 2, 3, 1),
        (2, 3, 3, 2, 1),
        (2, 3, 5, 2, 0),
        (3, 2, 5, 3, 4),
        (2, 7, 3, 5, 1),
    ):
        drawn = normal(rng, b, t, n_heads * width).round(decimals=1)
        yield Call((drawn + 0.05 * drawn.sign() + 0.05, n_heads, head))  # never 0


ABLATE_HEAD = Exercise(
    name="ablate_head",
    read=floats,
    solve=_filled,
    calls=_ablation_calls,
    mistakes=mistakes(
        "ablate_head",
        {
            "only-this-head": _only,
            "interleaved": (
                lambda context, n_heads, head: _columns(context, slice(head, None, n_heads)),
                lambda context, n_heads, head: (
                    context * (torch.arange(context.shape[-1], device="cpu") % n_heads != head)
                ),
            ),
            "one-column": lambda context, n_heads, head: _columns(context, slice(head, head + 1)),
            "first-column-of-head": lambda context, n_heads, head: _columns(
                context,
                slice(head * (context.shape[-1] // n_heads), head * (context.shape[-1] // n_heads) + 1),
            ),
            "as-wide-as-the-heads-are-many": lambda context, n_heads, head: _columns(
                context, slice(head * n_heads, (head + 1) * n_heads)
            ),
            "next-head": lambda context, n_heads, head: _filled(context, n_heads, (head + 1) % n_heads),
            "head-before": lambda context, n_heads, head: _filled(context, n_heads, (head - 1) % n_heads),
            "counted-from-the-end": lambda context, n_heads, head: _filled(context, n_heads, -head - 1),
            "all-from-this-head-on": lambda context, n_heads, head: _columns(
                context, slice(head * (context.shape[-1] // n_heads), None)
            ),
            "all-up-to-this-head": lambda context, n_heads, head: _columns(
                context, slice(0, (head + 1) * (context.shape[-1] // n_heads))
            ),
            "position-for-head": lambda context, n_heads, head: _rows_zeroed(context, 1, head),
            "row-for-head": lambda context, n_heads, head: _rows_zeroed(context, 0, head),
            "everything": lambda context, n_heads, head: torch.zeros_like(context),
            "nothing": lambda context, n_heads, head: context.clone(),
            "mean-for-zero": _head_mean,
            "ones": lambda context, n_heads, head: _filled(context, n_heads, head, 1.0),
            "cut-out": _without,
            "axis-of-heads-left": lambda context, n_heads, head: _filled(context, n_heads, head).unflatten(
                -1, (n_heads, -1)
            ),
            "last-position-only": lambda context, n_heads, head: torch.cat(
                [context[:, :-1], _filled(context, n_heads, head)[:, -1:]], dim=1
            ),
            "first-row-only": lambda context, n_heads, head: torch.cat(
                [_filled(context, n_heads, head)[:1], context[1:]]
            ),
        },
    ),
)


def _along(weights: Tensor, period: int, offset: int, start: int | None = None) -> Tensor:
    """Weights of the queries from `start` on, of the second copy by default, to the key `offset` later."""
    queries = torch.arange(period if start is None else start, weights.shape[-1], device="cpu")
    keys = queries + offset
    inside = (keys >= 0) & (keys < weights.shape[-1])
    return weights[:, queries[inside], keys[inside]]  # (H, n)


def _induction(weights: Tensor, period: int) -> Tensor:
    return _along(weights, period, 1 - period).mean(dim=1)


def _attention_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 18)
    for n_heads, period in ((1, 2), (2, 2), (2, 3), (3, 5), (5, 3), (2, 7)):
        seq_len = 2 * period
        scores = 2 * normal(rng, n_heads, seq_len, seq_len)
        future = torch.ones(seq_len, seq_len, device="cpu").triu(1).bool()
        yield Call((scores.masked_fill(future, -torch.inf).softmax(dim=-1), period))


INDUCTION_SCORE = Exercise(
    name="induction_score",
    read=floats,
    solve=_induction,
    calls=_attention_calls,
    mistakes=mistakes(
        "induction_score",
        {
            "same-token": lambda weights, period: _along(weights, period, -period).mean(dim=1),
            "token-before": lambda weights, period: _along(weights, period, -period - 1).mean(dim=1),
            "one-too-late": lambda weights, period: _along(weights, period, 2 - period).mean(dim=1),
            "previous-token": (
                lambda weights, period: _along(weights, period, -1).mean(dim=1),
                lambda weights, period: _along(weights, period, -1, 1).mean(dim=1),
            ),
            "itself": (
                lambda weights, period: _along(weights, period, 0).mean(dim=1),
                lambda weights, period: _along(weights, period, 0, 0).mean(dim=1),
            ),
            "keys-and-queries-exchanged": lambda weights, period: _induction(weights.transpose(1, 2), period),
            "sum-for-mean": lambda weights, period: _along(weights, period, 1 - period).sum(dim=1),
            "divided-by-all-queries": lambda weights, period: (
                _along(weights, period, 1 - period).sum(dim=1) / weights.shape[-1]
            ),
            "one-query-more": (
                lambda weights, period: _along(weights, period, 1 - period, period - 1).mean(dim=1),
                lambda weights, period: torch.diagonal(weights, 1 - period, 1, 2).mean(dim=1),
            ),
            "one-query-less": lambda weights, period: _along(weights, period, 1 - period, period + 1).mean(
                dim=1
            ),
            "last-query-only": lambda weights, period: weights[:, -1, -period],
            "first-query-only": lambda weights, period: weights[:, period, 1],
            "heads-averaged": lambda weights, period: _induction(weights, period).mean(),
            "best-head-only": lambda weights, period: _induction(weights, period).max(),
            "maximum-for-mean": lambda weights, period: _along(weights, period, 1 - period).amax(dim=1),
            "not-averaged": lambda weights, period: _along(weights, period, 1 - period),
            "whole-first-copy": lambda weights, period: weights[:, period:, :period].sum(dim=2).mean(dim=1),
            "axis-left": lambda weights, period: _induction(weights, period)[:, None],
        },
    ),
)
EXERCISES = (ABLATE_HEAD, INDUCTION_SCORE)
