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


@wrong("only-this-head")
def ablate_reversed(context, n_heads, head):
    number = torch.arange(context.shape[-1]) // (context.shape[-1] // n_heads)
    return torch.where(number == head, context, 0.0)


@wrong("interleaved")
def ablate_strided(context, n_heads, head):
    out = context.clone()
    out[..., head::n_heads] = 0
    return out


@wrong("interleaved")
def ablate_wrong_axes(context, n_heads, head):
    b, t, d = context.shape
    out = context.clone().view(b, t, d // n_heads, n_heads)
    out[..., head] = 0
    return out.view(b, t, d)


@wrong("as-wide-as-the-heads-are-many")
def ablate_confused_sizes(context, n_heads, head):
    out = context.clone()
    out[..., head * n_heads : head * n_heads + n_heads] = 0
    return out


@wrong("next-head")
def ablate_counted_from_one(context, n_heads, head):
    width = context.shape[-1] // n_heads
    parts = list(context.split(width, dim=-1))
    parts[(head + 1) % n_heads] = torch.zeros_like(parts[0])
    return torch.cat(parts, -1)


@wrong("head-before")
def ablate_before(context, n_heads, head):
    parts = list(context.chunk(n_heads, dim=-1))
    parts[head - 1] = 0 * parts[head - 1]
    return torch.cat(parts, -1)


@wrong("all-up-to-this-head")
def ablate_until(context, n_heads, head):
    out = context.clone()
    out[..., : (head + 1) * (context.shape[-1] // n_heads)] = 0
    return out


@wrong("nothing")
def ablate_lost(context, n_heads, head):
    out = context.clone()
    out.chunk(n_heads, dim=-1)[head].clone().zero_()
    return out


@wrong("mean-for-zero")
def ablate_mean(context, n_heads, head):
    width = context.shape[-1] // n_heads
    out = context.clone()
    columns = slice(head * width, (head + 1) * width)
    out[..., columns] = context[..., columns].mean(dim=(0, 1))
    return out


@wrong("cut-out")
def ablate_removed(context, n_heads, head):
    parts = list(context.chunk(n_heads, dim=-1))
    del parts[head]
    return torch.cat(parts, -1) if parts else context[..., :0]


@wrong("axis-of-heads-left")
def ablate_four_axes(context, n_heads, head):
    heads = context.clone().reshape(*context.shape[:2], n_heads, -1)
    heads[:, :, head] = 0
    return heads


wrong("one-column", ablate_strided, {"head::n_heads": "head"})
wrong("all-from-this-head-on", ablate_strided, {"head::n_heads": "head * (context.shape[-1] // n_heads) :"})
wrong("position-for-head", ablate_strided, {"..., head::n_heads": ":, min(head, out.shape[1] - 1)"})
wrong("everything", lambda context, n_heads, head: context * 0)
wrong("last-position-only", ablate_by_columns, {" :,": " -1,"})


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


@wrong("token-before")
def induction_sign(weights, period):
    t = torch.arange(period + 1, 2 * period)
    return weights[:, t, t - period - 1].mean(-1)


right(lambda weights, period: torch.diagonal(weights[:, period:, 1:], dim1=1, dim2=2).mean(-1))
wrong("same-token", induction_indexed, {"period + 1": "period"})
wrong("previous-token", induction_indexed, {"period,": "1,", "period + 1": "1"})
wrong("itself", lambda weights, period: weights.diagonal(dim1=1, dim2=2).mean(-1))
wrong("keys-and-queries-exchanged", induction_indexed, {"t, t - period + 1": "t - period + 1, t"})
wrong("sum-for-mean", induction_indexed, {".mean": ".sum"})
wrong("divided-by-all-queries", induction_indexed, {".mean(-1)": ".sum(-1) / (2 * period)"})
wrong(
    "one-query-more", lambda weights, period: weights.diagonal(offset=-(period - 1), dim1=1, dim2=2).mean(-1)
)
wrong("one-query-less", induction_indexed, {"period,": "period + 1,"})
wrong("last-query-only", lambda weights, period: weights[:, 2 * period - 1, period])
wrong("heads-averaged", induction_indexed, {"-1": ""})
wrong("not-averaged", induction_indexed, {".mean(-1)": ""})
wrong("maximum-for-mean", induction_indexed, {".mean(-1)": ".max(-1).values"})
wrong("whole-first-copy", lambda weights, period: weights[:, period:, :period].sum(-1).mean(-1))
wrong(
    "one-too-late", induction_indexed, {"[:, t, t - period + 1].mean(-1)": "[:, t, t - period + 2].mean(-1)"}
)
wrong("axis-left", induction_indexed, {"(-1)": "(-1, keepdim=True)"})
