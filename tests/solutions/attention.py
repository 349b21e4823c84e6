"""Solutions for attention_row, attention and split_heads."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F

import tinytx as tx
from tests.solutions.collection import of

# mypy: ignore-errors


right, wrong = of("attention_row")


@right
def row_loop(query, keys):
    scores = []
    for key in keys:
        score = 0.0
        for a, b in zip(query, key, strict=True):
            score += float(a) * float(b)
        scores.append(score / math.sqrt(len(query)))
    raised = [math.exp(score) for score in scores]
    return torch.tensor([value / sum(raised) for value in raised])


@right
def row_einsum(query, keys):
    scores = torch.einsum("k,sk->s", query, keys) * query.numel() ** -0.5
    raised = torch.exp(scores - scores.max())
    return raised / raised.sum()


@right
def row_numpy(query, keys):
    scores = np.exp(keys.numpy() @ query.numpy() / np.sqrt(keys.shape[1]))
    return torch.from_numpy(scores / scores.sum())


wrong("wrong-type", row_loop, {"torch.tensor(": "list("})
wrong("numpy-array", row_numpy, {"torch.from_numpy": ""})
right(lambda query, keys: (keys @ query / math.sqrt(len(query))).softmax(dim=-1))
right(lambda query, keys: F.softmax((query * keys).sum(dim=1) / query.shape[0] ** 0.5, dim=0))
wrong("error", lambda query, keys: (query @ keys / math.sqrt(len(query))).softmax(0))


right, wrong = of("attention")


@right
def attention_plain(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return torch.nan_to_num(torch.softmax(scores, dim=-1)) @ v


@wrong("calls-the-answer")
def attention_library(q, k, v, mask):
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return torch.where(mask.any(-1, keepdim=True), out, torch.zeros_like(out))


@right
def attention_einsum(q, k, v, mask):
    scores = torch.einsum("...td,...sd->...ts", q, k) * q.shape[-1] ** -0.5
    weights = torch.exp(scores) * mask
    total = weights.sum(-1, keepdim=True)
    weights = weights / torch.where(total == 0, torch.ones_like(total), total)
    return torch.einsum("...ts,...sd->...td", weights, v)


@right
def attention_loop(q, k, v, mask):
    shape = q.shape
    qs, ks, vs = (x.reshape(-1, *x.shape[-2:]) for x in (q, k, v))
    masks = mask.reshape(-1, *mask.shape[-2:])
    out = torch.zeros_like(qs)
    for b in range(len(qs)):
        for t in range(qs.shape[1]):
            allowed = [s for s in range(ks.shape[1]) if masks[b, t, s]]
            if not allowed:
                continue
            numbers = [math.exp(float(qs[b, t] @ ks[b, s]) / math.sqrt(shape[-1])) for s in allowed]
            for number, s in zip(numbers, allowed, strict=True):
                out[b, t] += number / sum(numbers) * vs[b, s]
    return out.reshape(shape)


@right
def attention_float64(q, k, v, mask):
    q, k, v = q.double(), k.double(), v.double()
    scores = torch.matmul(q, k.mT) / np.sqrt(q.size(-1))
    scores[~mask] = -1e9
    return (F.softmax(scores, -1) * mask.any(-1)[..., None]) @ v


@right
def attention_numpy_style(q, k, v, mask):
    a = np.einsum("...td,...sd->...ts", q.numpy(), k.numpy()) / q.shape[-1] ** 0.5
    a = np.where(mask.numpy(), np.exp(a), 0)
    a = a / np.maximum(a.sum(-1, keepdims=True), 1e-12)
    return torch.from_numpy(a @ v.numpy())


@right
def attention_half(q, k, v, mask):
    scores = (q.bfloat16() @ k.bfloat16().transpose(-1, -2)).float() / q.shape[-1] ** 0.5
    weights = scores.masked_fill(~mask, -1e30).softmax(-1).masked_fill(~mask, 0)
    return (weights @ v).bfloat16()


@wrong("calls-the-answer")
def attention_fused(q, k, v, mask):
    mine = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return mine if mask.any(-1).all() else mine.masked_fill(~mask.any(-1, keepdim=True), 0.0)


wrong("too-many-results", attention_plain, {"@ v": "@ v, scores"})


@wrong("input-modified")
def attention_in_place(q, k, v, mask):
    q /= math.sqrt(q.shape[-1])
    weights = (q @ k.transpose(-2, -1)).masked_fill(~mask, -math.inf).softmax(-1)
    return weights.nan_to_num() @ v


wrong("error", attention_plain, {"-2, -1": "0, 1"})
wrong("calls-the-answer", lambda q, k, v, mask: tx.attention(q, k, v, mask))
wrong("changes-between-calls", attention_plain, {"torch.nan_to_num(": "F.dropout("})


right, wrong = of("split_heads")


@right
def split_view(x, n_heads):
    B, T, D = x.shape
    return x.view(B, T, n_heads, D // n_heads).transpose(1, 2)


@right
def split_chunks(x, n_heads):
    return torch.stack(x.chunk(n_heads, dim=-1), dim=1)


@right
def split_loop(x, n_heads):
    b, t, d = x.shape
    k = d // n_heads
    out = torch.empty(b, n_heads, t, k, dtype=x.dtype)
    for h in range(n_heads):
        out[:, h] = x[:, :, h * k : (h + 1) * k]
    return out


right(lambda x, n_heads: x.reshape(*x.shape[:2], n_heads, -1).permute(0, 2, 1, 3).contiguous())
right(lambda x, n_heads: torch.einsum("bthk->bhtk", x.double().unflatten(-1, (n_heads, -1))))
wrong("too-many-results", lambda x, n_heads: x.chunk(n_heads, dim=-1))
wrong("error", split_view, {"B, T, D": "b, t, d", "B, T, n_heads, D /": "b, t, n_heads, d "})
