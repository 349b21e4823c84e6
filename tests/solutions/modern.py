"""Solutions for rms_norm, windowed_cache and grouped_query_attention."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.solutions.collection import of

# mypy: ignore-errors


right, wrong = of("rms_norm")


@right
def rms_loops(x, gamma, eps):
    out = torch.empty_like(x)
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            token = x[b, t].tolist()
            size = math.sqrt(sum(v * v for v in token) / len(token) + eps)
            for d, v in enumerate(token):
                out[b, t, d] = gamma[d] * v / size
    return out


@right
def rms_by_norm(x, gamma, eps):
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return x * gamma / torch.sqrt(length**2 / x.shape[-1] + eps)


@right
def rms_numpy(x, gamma, eps):
    a = x.numpy()
    return torch.from_numpy(a / np.sqrt((a * a).mean(-1, keepdims=True) + eps) * gamma.numpy())


@wrong("calls-the-answer")
def rms_module(x, gamma, eps):
    norm = nn.RMSNorm(x.shape[-1], eps=eps)
    norm.weight = nn.Parameter(gamma)
    return norm(x)


@wrong("centred+eps-missing")
def rms_standardised(x, gamma, eps):
    return gamma * (x - x.mean(-1, keepdim=True)) / x.std(-1, correction=0, keepdim=True)


@wrong("input-modified")
def rms_in_place(x, gamma, eps):
    x /= (x.square().mean(-1, keepdim=True) + eps).sqrt()
    return gamma * x


right(lambda x, gamma, eps: x / (x.square().mean(dim=-1, keepdim=True) + eps).sqrt() * gamma)
wrong("calls-the-answer", lambda x, gamma, eps: F.rms_norm(x, x.shape[-1:], gamma, eps))
wrong("calls-the-answer", lambda x, gamma, eps: torch.rms_norm(x, x.shape[-1:], gamma, eps))
right(lambda x, gamma, eps: gamma * (x * torch.rsqrt(torch.mean(x**2, -1, keepdim=True) + eps)))
wrong("error", lambda x, gamma, eps: gamma * x / (x.square().mean(-1) + eps).sqrt())


right, wrong = of("windowed_cache")


@right
def cache_by_layer(n_layers, n_full, n_kv_heads, head_dim, n_tokens, window):
    total = 0
    for layer in range(n_layers):
        stored = n_tokens if layer < n_full else min(n_tokens, window)
        total += stored * n_kv_heads * head_dim * 2 * 2
    return total


@right
def cache_token_by_token(n_layers, n_full, n_kv_heads, head_dim, n_tokens, window):
    stored = sum(n_full + (n_layers - n_full) * (t >= n_tokens - window) for t in range(n_tokens))
    return 4 * n_kv_heads * head_dim * stored


@right
def cache_of_tensors(n_layers, n_full, n_kv_heads, head_dim, n_tokens, window):
    with torch.device("meta"):
        full = torch.empty(n_full, 2, n_kv_heads, n_tokens, head_dim, dtype=torch.bfloat16)
        short = torch.empty(n_layers - n_full, 2, n_kv_heads, n_tokens, head_dim, dtype=torch.bfloat16)
    return full.nbytes + short[..., -window:, :].numel() * short.element_size()


@right
def cache_all_minus_saved(n_layers, n_full, n_kv_heads, head_dim, n_tokens, window):
    saved = (n_layers - n_full) * max(0, n_tokens - window)
    return (n_layers * n_tokens - saved) * n_kv_heads * head_dim * 4


right(lambda n, full, g, k, t, w: 4.0 * g * k * (full * t + (n - full) * min(t, w)))
wrong("wrong-type", lambda n, full, g, k, t, w: f"{4 * g * k * (full * t + (n - full) * min(t, w))} bytes")
wrong("full-and-windowed-exchanged", cache_by_layer, {"layer < n_full": "layer >= n_full"})
wrong("nothing-returned", cache_by_layer, {"return total": "print(total)"})
wrong(
    "one-token-more", cache_by_layer, {"n_tokens if": "n_tokens + 1 if", "min(n_tokens,": "min(n_tokens + 1,"}
)
wrong(
    "one-token-less", cache_by_layer, {"n_tokens if": "n_tokens - 1 if", "min(n_tokens,": "min(n_tokens - 1,"}
)


right, wrong = of("grouped_query_attention")


@right
def gqa_repeat_interleave(q, k, v, mask):
    n = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(n, dim=1), v.repeat_interleave(n, dim=1)
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    return scores.masked_fill(~mask, -torch.inf).softmax(dim=-1) @ v


@right
def gqa_unflatten(q, k, v, mask):
    grouped = q.unflatten(1, (k.shape[1], -1))
    scores = grouped @ k[:, :, None].mT / math.sqrt(q.shape[-1])
    scores = torch.where(mask, scores, torch.finfo(scores.dtype).min)
    return (scores.softmax(-1) @ v[:, :, None]).flatten(1, 2)


@right
def gqa_loop(q, k, v, mask):
    heads, per_group = [], q.shape[1] // k.shape[1]
    for h in range(q.shape[1]):
        g = h // per_group
        scores = torch.einsum("btk,bsk->bts", q[:, h], k[:, g]) / math.sqrt(q.shape[-1])
        scores[:, ~mask] = float("-inf")
        heads.append(torch.softmax(scores, dim=-1) @ v[:, g])
    return torch.stack(heads, dim=1)


@right
def gqa_index(q, k, v, mask):
    group_of = torch.arange(q.shape[1]) * k.shape[1] // q.shape[1]
    return F.scaled_dot_product_attention(q, k[:, group_of], v[:, group_of], attn_mask=mask)


@right
def gqa_expand(q, k, v, mask):
    b, h, _, width = q.shape
    g, s = k.shape[1:3]
    k = k[:, :, None].expand(b, g, h // g, s, width).reshape(b, h, s, width)
    v = v[:, :, None].expand(b, g, h // g, s, width).reshape(b, h, s, width)
    weights = torch.exp(q @ k.mT / math.sqrt(width)) * mask
    return weights / weights.sum(-1, keepdim=True) @ v


@wrong("interleaved+not-scaled")
def gqa_two_slips(q, k, v, mask):
    n = q.shape[1] // k.shape[1]
    k, v = k.repeat(1, n, 1, 1), v.repeat(1, n, 1, 1)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=1.0)


right(lambda q, k, v, mask: F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True))
wrong("no-softmax", gqa_repeat_interleave, {"-torch.inf": "0", ".softmax(dim=-1)": ""})
