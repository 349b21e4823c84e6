"""Solutions for head_contributions, merge_heads and multi_head_attention."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import tinytx as tx
from tests.solutions.collection import of

# mypy: ignore-errors


right, wrong = of("head_contributions")


@right
def parts_by_slices(context, w_o):
    K = context.shape[-1]
    parts = [context[:, h] @ w_o[h * K : (h + 1) * K] for h in range(context.shape[1])]
    return torch.stack(parts, dim=1)


@right
def parts_by_zeroing(context, w_o):
    parts = []
    for h in range(context.shape[1]):
        alone = torch.zeros_like(context)
        alone[:, h] = context[:, h]
        parts.append(alone.transpose(1, 2).flatten(2) @ w_o)
    return torch.stack(parts, dim=1)


@right
def parts_einsum(context, w_o):
    B, H, T, K = context.shape
    return torch.einsum("bhtk,hkd->bhtd", context, w_o.view(H, K, H * K))


@right
def parts_as_linear(context, w_o):
    columns = w_o.T.split(context.shape[-1], dim=1)
    return torch.stack([F.linear(c, w) for c, w in zip(context.unbind(1), columns, strict=True)], 1)


@right
def parts_by_difference(context, w_o):
    whole = context.transpose(1, 2).flatten(2).double() @ w_o.double()
    parts = []
    for h in range(context.shape[1]):
        rest = context.clone()
        rest[:, h] = 0
        parts.append(whole - rest.transpose(1, 2).flatten(2).double() @ w_o.double())
    return torch.stack(parts, dim=1).float()


@wrong("input-modified")
def parts_zero_in_place(context, w_o):
    parts = parts_by_slices(context, w_o)
    context[:, 1:] = 0
    return parts


wrong("too-many-results", parts_by_slices, {"torch.stack(parts, dim=1)": "parts"})


right, wrong = of("merge_heads")


@right
def merge_reshape(context):
    b, h, t, k = context.shape
    return context.transpose(1, 2).reshape(b, t, h * k)


@right
def merge_loop(context):
    b, n_heads, t, k = context.shape
    out = torch.zeros(b, t, n_heads * k)
    for head in range(n_heads):
        out[:, :, head * k : (head + 1) * k] = context[:, head]
    return out


@right
def merge_contiguous(context):
    b, h, t, k = context.size()
    return context.permute(0, 2, 1, 3).contiguous().view(b, t, -1)


@right
def merge_numpy(context):
    b, h, t, k = context.shape
    return torch.from_numpy(np.swapaxes(context.numpy(), 1, 2).reshape(b, t, h * k))


wrong("too-many-results", lambda context: list(context.unbind(1)))
right(lambda context: torch.cat([context[:, h] for h in range(context.shape[1])], dim=-1))
right(lambda context: torch.cat(context.unbind(dim=1), -1))
wrong("error", merge_reshape, {".reshape": ".view"})


def _split(x, h):
    return x.reshape(*x.shape[:2], h, -1).transpose(1, 2)


def _join(context):
    return context.transpose(1, 2).flatten(2)


right, wrong = of("multi_head_attention")


@right
def mha_package(x, w_q, w_k, w_v, w_o, n_heads, mask):
    q, k, v = (_split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    return _join(tx.attention(q, k, v, mask)) @ w_o


@right
def mha_by_head(x, w_q, w_k, w_v, w_o, n_heads, mask):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    width, contexts = x.shape[-1] // n_heads, []
    for head in range(n_heads):
        own = slice(head * width, (head + 1) * width)
        scores = q[..., own] @ k[..., own].transpose(1, 2) / math.sqrt(width)
        contexts.append(scores.masked_fill(~mask, -math.inf).softmax(-1) @ v[..., own])
    return torch.cat(contexts, dim=-1) @ w_o


@right
def mha_einsum(x, w_q, w_k, w_v, w_o, n_heads, mask):
    d = x.shape[-1]
    q, k, v = (torch.einsum("btd,dhk->bhtk", x, w.reshape(d, n_heads, -1)) for w in (w_q, w_k, w_v))
    scores = torch.einsum("bhtk,bhsk->bhts", q, k) * (d // n_heads) ** -0.5
    weights = torch.softmax(torch.where(mask, scores, torch.tensor(-1e9)), dim=-1)
    return torch.einsum("bhts,bhsk,hkd->btd", weights, v, w_o.reshape(n_heads, -1, d))


@right
def mha_sum_of_heads(x, w_q, w_k, w_v, w_o, n_heads, mask):
    out, k = torch.zeros_like(x), x.shape[-1] // n_heads
    for i in range(0, x.shape[-1], k):
        cols = slice(i, i + k)
        scores = (x @ w_q[:, cols]) @ (x @ w_k[:, cols]).mT / k**0.5
        weights = F.softmax(scores.masked_fill(mask == 0, -1e9), dim=-1)
        out += weights @ (x @ w_v[:, cols]) @ w_o[cols]
    return out


@right
def mha_torch_module(x, w_q, w_k, w_v, w_o, n_heads, mask):
    module = nn.MultiheadAttention(x.shape[-1], n_heads, bias=False, batch_first=True)
    with torch.no_grad():
        module.in_proj_weight.copy_(torch.cat([w_q.T, w_k.T, w_v.T]))
        module.out_proj.weight.copy_(w_o.T)
    return module(x, x, x, attn_mask=~mask, need_weights=False)[0]


@right
def mha_numpy(x, w_q, w_k, w_v, w_o, n_heads, mask):
    x, m = x.numpy(), mask.numpy()
    b, t, d = x.shape
    heads = [(x @ w.numpy()).reshape(b, t, n_heads, -1).transpose(0, 2, 1, 3) for w in (w_q, w_k, w_v)]
    scores = heads[0] @ heads[1].transpose(0, 1, 3, 2) / np.sqrt(d // n_heads)
    e = np.where(m, np.exp(scores - scores.max(-1, keepdims=True)), 0)
    out = (e / e.sum(-1, keepdims=True)) @ heads[2]
    return torch.from_numpy(out.transpose(0, 2, 1, 3).reshape(b, t, d) @ w_o.numpy())


right(mha_package, {"tx.attention(q, k, v, mask)": "F.scaled_dot_product_attention(q, k, v, attn_mask=mask)"})
wrong("error", mha_package, {"tx.attention(q, k, v, mask)": "(q @ k.t()).softmax(-1) @ v"})


@right
def mha_in_steps(x, w_q, w_k, w_v, w_o, n_heads, mask):
    B, T, D = x.shape
    K = D // n_heads
    q, k, v = [(x @ w).view(B, T, n_heads, K).transpose(1, 2) for w in (w_q, w_k, w_v)]
    s = q @ k.mT / math.sqrt(K)
    s = s.masked_fill(~mask, -math.inf)
    return (s.softmax(-1) @ v).transpose(1, 2).reshape(B, T, D) @ w_o


wrong("too-many-results", mha_in_steps, {"@ w_o": "@ w_o, s"})
wrong(
    "input-modified",
    mha_in_steps,
    {"B, T, D = x.shape": "w_q /= n_heads\n    B, T, D = x.shape", "@ k.mT": "@ k.mT * n_heads"},
)
wrong("projections-exchanged", mha_in_steps, {"(w_q, w_k, w_v)]": "(w_q, w_v, w_k)]"})
wrong(
    "view-without-transpose+merge-without-transpose",
    mha_in_steps,
    {".view(B, T, n_heads, K).transpose(1, 2)": ".view(B, n_heads, T, K)", ".transpose(1, 2)": ""},
)
