"""Solutions for ablate_head and induction_score."""

from __future__ import annotations

import numpy as np
import torch

from tests.solutions.collection import of

# mypy: ignore-errors


right, wrong = of("ablate_head")


@right
def ablate_by_columns(context, n_heads, head):
    width = context.shape[-1] // n_heads
    out = context.clone()
    out[:, :, head * width : (head + 1) * width] = 0
    return out


@wrong("nothing-returned")
def ablate_without_a_return(context, n_heads, head):
    width = context.shape[-1] // n_heads
    out = context.clone()
    out[..., head * width : (head + 1) * width] = 0


@right
def ablate_by_view(context, n_heads, head):
    b, t, d = context.shape
    out = context.clone().view(b, t, n_heads, d // n_heads)
    out[:, :, head, :] = 0.0
    return out.reshape(b, t, d)


@right
def ablate_by_mask(context, n_heads, head):
    number = torch.arange(context.shape[-1]) // (context.shape[-1] // n_heads)
    return context * (number != head)


@right
def ablate_by_chunks(context, n_heads, head):
    parts = list(context.chunk(n_heads, dim=-1))
    parts[head] = torch.zeros_like(parts[head])
    return torch.cat(parts, dim=-1)


@wrong("input-modified")
def ablate_in_place(context, n_heads, head):
    width = context.shape[-1] // n_heads
    context[..., head * width : (head + 1) * width] = 0
    return context


@wrong("input-modified")
def ablate_view_in_place(context, n_heads, head):
    heads = context.view(*context.shape[:2], n_heads, -1)
    heads[:, :, head].zero_()
    return heads.flatten(2)


@wrong("view-without-transpose")
def ablate_head_view_without_transpose(context, n_heads, head):
    B, T, D = context.shape
    o = context.clone().view(B, n_heads, T, D // n_heads)
    o[:, head] = 0
    return o.view(B, T, D)


@wrong("one-column-too-few")
def ablate_head_one_column_too_few(context, n_heads, head):
    w_ = context.shape[-1] // n_heads
    o = context.clone()
    o[..., head * w_ : (head + 1) * w_ - 1] = 0
    return o


@wrong("one-column-too-many")
def ablate_head_one_column_too_many(context, n_heads, head):
    w_ = context.shape[-1] // n_heads
    o = context.clone()
    o[..., head * w_ : (head + 1) * w_ + 1] = 0
    return o


right, wrong = of("induction_score")


@right
def induction_indexed(weights, period):
    t = torch.arange(period, 2 * period)
    return weights[:, t, t - period + 1].mean(-1)


@right
def induction_loops(weights, period):
    scores = []
    for head in weights:
        total = 0.0
        for t in range(period, 2 * period):
            total += head[t, t - period + 1].item()
        scores.append(total / period)
    return torch.tensor(scores)


@right
def induction_numpy(weights, period):
    t = np.arange(period, 2 * period)
    return torch.from_numpy(weights.numpy()[:, t, t + 1 - period].mean(axis=1))


right(lambda weights, period: torch.diagonal(weights[:, period:, 1:], dim1=1, dim2=2).mean(-1))
