"""Solutions for attention_row, attention and split_heads."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

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


@wrong("without-exp")
def row_shares(query, keys):
    scores = keys @ query / math.sqrt(len(query))
    return scores / scores.sum()


@wrong("power-of-two")
def row_base_two(query, keys):
    raised = 2 ** (keys @ query / math.sqrt(len(query)))
    return raised / raised.sum()


@wrong("argmax")
def row_winner(query, keys):
    weights = torch.zeros(len(keys))
    weights[(keys @ query).argmax()] = 1.0
    return weights


@wrong("uniform")
def row_wrong_axis(query, keys):
    scores = (keys @ query / math.sqrt(len(query)))[:, None]  # (S, 1)
    return scores.softmax(0).mean() * torch.ones(len(keys))


@wrong("wrong-type")
def row_list(query, keys):
    raised = [math.exp(float(key @ query) / math.sqrt(len(query))) for key in keys]
    return [value / sum(raised) for value in raised]


@wrong("numpy-array")
def row_left_in_numpy(query, keys):
    scores = np.exp(keys.numpy() @ query.numpy() / np.sqrt(len(query)))
    return scores / scores.sum()


right(lambda query, keys: (keys @ query / math.sqrt(len(query))).softmax(dim=-1))
right(lambda query, keys: F.softmax((query * keys).sum(dim=1) / query.shape[0] ** 0.5, dim=0))
wrong("not-scaled", lambda query, keys: torch.softmax(keys @ query, dim=0))
wrong("scale-without-root", lambda query, keys: (keys @ query / len(query)).softmax(0))
wrong("scale-always-2", lambda query, keys: (keys @ query / 2).softmax(0))
wrong("scale-by-keys", lambda query, keys: torch.softmax(keys @ query / math.sqrt(len(keys)), -1))
wrong("scale-multiplied", lambda query, keys: torch.softmax(keys @ query * len(query) ** 0.5, -1))
wrong("scale-after-softmax", lambda query, keys: (keys @ query).softmax(0) / math.sqrt(len(query)))
wrong("scores-returned", lambda query, keys: torch.matmul(keys, query) / math.sqrt(query.shape[-1]))
wrong("not-normalised", lambda query, keys: torch.exp(keys @ query / math.sqrt(len(query))))
wrong("log-softmax", lambda query, keys: F.log_softmax(keys @ query / math.sqrt(len(query)), dim=0))
wrong("products-not-summed", lambda query, keys: torch.softmax(query * keys / math.sqrt(len(query)), dim=-1))
wrong("mixture-returned", lambda query, keys: (keys @ query / math.sqrt(len(query))).softmax(0) @ keys)
wrong("extra-axes", lambda query, keys: torch.softmax(query[None] @ keys.T / math.sqrt(len(query)), dim=-1))
wrong("error", lambda query, keys: (query @ keys / math.sqrt(len(query))).softmax(0))


right, wrong = of("attention")


@right
def attention_plain(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return torch.nan_to_num(torch.softmax(scores, dim=-1)) @ v


@right
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


def _zeroed(out, mask):
    return out * mask.any(-1, keepdim=True)


@wrong("calls-the-answer")
def attention_fused(q, k, v, mask):
    mine = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return mine if mask.any(-1).all() else mine.masked_fill(~mask.any(-1, keepdim=True), 0.0)


@wrong("not-scaled")
def attention_unscaled(q, k, v, mask):
    scores = q @ k.transpose(-2, -1)
    return torch.nan_to_num(scores.masked_fill(~mask, -math.inf).softmax(-1)) @ v


@wrong("scale-without-root")
def attention_by_width(q, k, v, mask):
    scores = (q @ k.transpose(-2, -1) / q.shape[-1]).masked_fill(mask == 0, -1e9)
    return _zeroed(F.softmax(scores, dim=-1) @ v, mask)


@wrong("scale-by-queries")
def attention_by_length(q, k, v, mask):
    scores = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-2])).masked_fill(~mask, -1e9)
    return _zeroed(scores.softmax(-1) @ v, mask)


@wrong("argmax")
def attention_argmax(q, k, v, mask):
    scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~mask, -1e9)
    weights = F.one_hot(scores.argmax(-1), k.shape[-2]).to(v.dtype)
    return _zeroed(weights @ v, mask)


@wrong("mask-reversed")
def attention_reversed(q, k, v, mask):
    scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(mask, -math.inf)
    return scores.softmax(-1).nan_to_num() @ v


@wrong("mask-after-softmax")
def attention_mask_late(q, k, v, mask):
    weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.size(-1)), dim=-1)
    return weights.masked_fill(~mask, 0) @ v


@wrong("uniform-for-blind")
def attention_uniform(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return scores.masked_fill(mask == 0, -1e9).softmax(dim=-1) @ v


@wrong("not-scaled+uniform-for-blind")
def attention_two_things(q, k, v, mask):
    return F.softmax((q @ k.transpose(-2, -1)).masked_fill(~mask, -1e9), dim=-1) @ v


@wrong("softmax-over-queries")
def attention_wrong_axis(q, k, v, mask):
    scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~mask, -1e9)
    return _zeroed(scores.softmax(dim=-2) @ v, mask)


@wrong("mask-ignored")
def attention_no_mask(q, k, v, mask):
    return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), -1) @ v


@wrong("mask-multiplied")
def attention_tiny_fill(q, k, v, mask):
    scores = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).masked_fill(~mask, 1e-9)
    return torch.softmax(scores, -1) @ v


@wrong("too-many-results")
def attention_pair(q, k, v, mask):
    weights = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~mask, -math.inf).softmax(-1).nan_to_num()
    return weights @ v, weights


@wrong("input-modified")
def attention_in_place(q, k, v, mask):
    q /= math.sqrt(q.shape[-1])
    weights = (q @ k.transpose(-2, -1)).masked_fill(~mask, -math.inf).softmax(-1)
    return weights.nan_to_num() @ v


@wrong("error")
def attention_transposes_2d(q, k, v, mask):
    scores = q @ k.transpose(0, 1) / math.sqrt(q.shape[-1])
    return scores.masked_fill(~mask, -1e9).softmax(-1) @ v


class WithDropout(nn.Module):
    def forward(self, q, k, v, mask):
        weights = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~mask, -1e9).softmax(-1)
        return F.dropout(weights * mask, 0.5) @ v


wrong("calls-the-answer", lambda q, k, v, mask: tx.attention(q, k, v, mask))
wrong("nan-for-blind", attention_uniform, {"mask == 0, -1e9": '~mask, float("-inf")'})
wrong("no-softmax", lambda q, k, v, mask: ((q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])) * mask) @ v)
wrong("returns-weights", attention_reversed, {"mask,": "~mask,", " @ v": ""})
wrong("changes-between-calls", lambda q, k, v, mask: WithDropout()(q, k, v, mask))


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


@wrong("view-without-transpose")
def split_directly(x, n_heads):
    B, T, D = x.shape
    return x.view(B, n_heads, T, D // n_heads)


@wrong("batch-and-heads-merged")
def split_merged(x, n_heads):
    b, t, d = x.shape
    return x.view(b, t, n_heads, d // n_heads).transpose(1, 2).reshape(b * n_heads, t, d // n_heads)


@wrong("n-heads-taken-for-width")
def split_width(x, n_heads):
    b, t, d = x.shape
    return x.reshape(b, t, d // n_heads, n_heads).permute(0, 2, 1, 3)


@wrong("tokens-last")
def split_tokens_last(x, n_heads):
    b, t, d = x.shape
    return x.transpose(1, 2).reshape(b, n_heads, d // n_heads, t)


@wrong("same-slice-for-all")
def split_same(x, n_heads):
    k = x.shape[-1] // n_heads
    return torch.stack([x[:, :, :k] for _ in range(n_heads)], dim=1)


right(lambda x, n_heads: x.reshape(*x.shape[:2], n_heads, -1).permute(0, 2, 1, 3).contiguous())
right(lambda x, n_heads: torch.einsum("bthk->bhtk", x.double().unflatten(-1, (n_heads, -1))))
wrong("not-transposed", lambda x, n_heads: x.view(x.shape[0], x.shape[1], n_heads, x.shape[2] // n_heads))
wrong("interleaved", lambda x, n_heads: torch.stack([x[..., h::n_heads] for h in range(n_heads)], dim=1))
wrong("heads-first", lambda x, n_heads: torch.stack(torch.split(x, x.shape[-1] // n_heads, dim=-1)))
wrong("every-head-gets-all", lambda x, n_heads: x.unsqueeze(1).repeat(1, n_heads, 1, 1))
wrong("too-many-results", lambda x, n_heads: x.chunk(n_heads, dim=-1))
wrong("error", split_view, {"B, T, D": "b, t, d", "B, T, n_heads, D /": "b, t, n_heads, d "})
