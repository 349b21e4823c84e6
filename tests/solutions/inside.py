"""Solutions for ablate_head and induction_score."""

from __future__ import annotations

import numpy as np
import torch

from tests.solutions.collection import right, wrong

# mypy: ignore-errors


@right("ablate_head")
def ablate_by_columns(context, n_heads, head):
    width = context.shape[-1] // n_heads
    out = context.clone()
    out[:, :, head * width : (head + 1) * width] = 0
    return out


@right("ablate_head")
def ablate_by_view(context, n_heads, head):
    b, t, d = context.shape
    out = context.clone().view(b, t, n_heads, d // n_heads)
    out[:, :, head, :] = 0.0
    return out.reshape(b, t, d)


@right("ablate_head")
def ablate_by_mask(context, n_heads, head):
    number = torch.arange(context.shape[-1]) // (context.shape[-1] // n_heads)
    return context * (number != head)


@right("ablate_head")
def ablate_by_chunks(context, n_heads, head):
    parts = list(context.chunk(n_heads, dim=-1))
    parts[head] = torch.zeros_like(parts[head])
    return torch.cat(parts, dim=-1)


@wrong("ablate_head", "input-modified")
def ablate_in_place(context, n_heads, head):
    width = context.shape[-1] // n_heads
    context[..., head * width : (head + 1) * width] = 0
    return context


@wrong("ablate_head", "input-modified")
def ablate_view_in_place(context, n_heads, head):
    heads = context.view(*context.shape[:2], n_heads, -1)
    heads[:, :, head].zero_()
    return heads.flatten(2)


@wrong("ablate_head", "only-this-head")
def ablate_reversed(context, n_heads, head):
    number = torch.arange(context.shape[-1]) // (context.shape[-1] // n_heads)
    return torch.where(number == head, context, 0.0)


@wrong("ablate_head", "interleaved")
def ablate_strided(context, n_heads, head):
    out = context.clone()
    out[..., head::n_heads] = 0
    return out


@wrong("ablate_head", "interleaved")
def ablate_wrong_axes(context, n_heads, head):
    b, t, d = context.shape
    out = context.clone().view(b, t, d // n_heads, n_heads)
    out[..., head] = 0
    return out.view(b, t, d)


@wrong("ablate_head", "one-column")
def ablate_column(context, n_heads, head):
    out = context.clone()
    out[..., head] = 0
    return out


@wrong("ablate_head", "as-wide-as-the-heads-are-many")
def ablate_confused_sizes(context, n_heads, head):
    out = context.clone()
    out[..., head * n_heads : head * n_heads + n_heads] = 0
    return out


@wrong("ablate_head", "next-head")
def ablate_counted_from_one(context, n_heads, head):
    width = context.shape[-1] // n_heads
    parts = list(context.split(width, dim=-1))
    parts[(head + 1) % n_heads] = torch.zeros_like(parts[0])
    return torch.cat(parts, -1)


@wrong("ablate_head", "head-before")
def ablate_before(context, n_heads, head):
    parts = list(context.chunk(n_heads, dim=-1))
    parts[head - 1] = 0 * parts[head - 1]
    return torch.cat(parts, -1)


@wrong("ablate_head", "all-from-this-head-on")
def ablate_rest(context, n_heads, head):
    out = context.clone()
    out[..., head * (context.shape[-1] // n_heads) :] = 0
    return out


@wrong("ablate_head", "all-up-to-this-head")
def ablate_until(context, n_heads, head):
    out = context.clone()
    out[..., : (head + 1) * (context.shape[-1] // n_heads)] = 0
    return out


@wrong("ablate_head", "position-for-head")
def ablate_position(context, n_heads, head):
    out = context.clone()
    out[:, min(head, out.shape[1] - 1)] = 0
    return out


@wrong("ablate_head", "everything")
def ablate_all(context, n_heads, head):
    return context * 0


@wrong("ablate_head", "nothing")
def ablate_lost(context, n_heads, head):
    out = context.clone()
    out.chunk(n_heads, dim=-1)[head].clone().zero_()
    return out


@wrong("ablate_head", "mean-for-zero")
def ablate_mean(context, n_heads, head):
    width = context.shape[-1] // n_heads
    out = context.clone()
    columns = slice(head * width, (head + 1) * width)
    out[..., columns] = context[..., columns].mean(dim=(0, 1))
    return out


@wrong("ablate_head", "cut-out")
def ablate_removed(context, n_heads, head):
    parts = list(context.chunk(n_heads, dim=-1))
    del parts[head]
    return torch.cat(parts, -1) if parts else context[..., :0]


@wrong("ablate_head", "axis-of-heads-left")
def ablate_four_axes(context, n_heads, head):
    heads = context.clone().reshape(*context.shape[:2], n_heads, -1)
    heads[:, :, head] = 0
    return heads


@wrong("ablate_head", "last-position-only")
def ablate_last(context, n_heads, head):
    width = context.shape[-1] // n_heads
    out = context.clone()
    out[:, -1, head * width : (head + 1) * width] = 0
    return out


@right("induction_score")
def induction_indexed(weights, period):
    t = torch.arange(period, 2 * period)
    return weights[:, t, t - period + 1].mean(-1)


@right("induction_score")
def induction_loops(weights, period):
    scores = []
    for head in weights:
        total = 0.0
        for t in range(period, 2 * period):
            total += head[t, t - period + 1].item()
        scores.append(total / period)
    return torch.tensor(scores)


@right("induction_score")
def induction_diagonal(weights, period):
    return torch.diagonal(weights[:, period:, 1:], dim1=1, dim2=2).mean(-1)


@right("induction_score")
def induction_numpy(weights, period):
    t = np.arange(period, 2 * period)
    return torch.from_numpy(weights.numpy()[:, t, t + 1 - period].mean(axis=1))


@wrong("induction_score", "same-token")
def induction_duplicate(weights, period):
    t = torch.arange(period, 2 * period)
    return weights[:, t, t - period].mean(-1)


@wrong("induction_score", "token-before")
def induction_sign(weights, period):
    t = torch.arange(period + 1, 2 * period)
    return weights[:, t, t - period - 1].mean(-1)


@wrong("induction_score", "previous-token")
def induction_previous(weights, period):
    t = torch.arange(1, 2 * period)
    return weights[:, t, t - 1].mean(-1)


@wrong("induction_score", "itself")
def induction_main_diagonal(weights, period):
    return weights.diagonal(dim1=1, dim2=2).mean(-1)


@wrong("induction_score", "keys-and-queries-exchanged")
def induction_transposed(weights, period):
    t = torch.arange(period, 2 * period)
    return weights[:, t - period + 1, t].mean(-1)


@wrong("induction_score", "sum-for-mean")
def induction_sum(weights, period):
    t = torch.arange(period, 2 * period)
    return weights[:, t, t - period + 1].sum(-1)


@wrong("induction_score", "divided-by-all-queries")
def induction_over_all(weights, period):
    t = torch.arange(period, 2 * period)
    return weights[:, t, t - period + 1].sum(-1) / (2 * period)


@wrong("induction_score", "one-query-more")
def induction_offset_diagonal(weights, period):
    return weights.diagonal(offset=-(period - 1), dim1=1, dim2=2).mean(-1)


@wrong("induction_score", "one-query-less")
def induction_short(weights, period):
    t = torch.arange(period + 1, 2 * period)
    return weights[:, t, t - period + 1].mean(-1)


@wrong("induction_score", "last-query-only")
def induction_last(weights, period):
    return weights[:, 2 * period - 1, period]


@wrong("induction_score", "heads-averaged")
def induction_one_number(weights, period):
    t = torch.arange(period, 2 * period)
    return weights[:, t, t - period + 1].mean()


@wrong("induction_score", "not-averaged")
def induction_values(weights, period):
    t = torch.arange(period, 2 * period)
    return weights[:, t, t - period + 1]


@wrong("induction_score", "maximum-for-mean")
def induction_max(weights, period):
    t = torch.arange(period, 2 * period)
    return weights[:, t, t - period + 1].max(-1).values


@wrong("induction_score", "whole-first-copy")
def induction_block(weights, period):
    return weights[:, period:, :period].sum(-1).mean(-1)


@wrong("induction_score", "one-too-late")
def induction_two_on(weights, period):
    t = torch.arange(period, 2 * period)
    return weights[:, t, t - period + 2].mean(-1)


@wrong("induction_score", "axis-left")
def induction_kept(weights, period):
    t = torch.arange(period, 2 * period)
    return weights[:, t, t - period + 1].mean(-1, keepdim=True)
