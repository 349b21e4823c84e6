"""Solutions for rms_norm, swiglu and grouped_query_attention."""

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


@wrong("centred")
def rms_mean_taken_out(x, gamma, eps):
    x = x - x.mean(-1, keepdim=True)
    return gamma * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)


@wrong("standard-deviation")
def rms_by_var(x, gamma, eps):
    return gamma * x / (x.var(dim=-1, keepdim=True, unbiased=False) + eps).sqrt()


@wrong("divided-by-d-minus-1")
def rms_bessel(x, gamma, eps):
    square = (x**2).sum(-1, keepdim=True) / (x.shape[-1] - 1)
    return x * (square + eps).rsqrt() * gamma


@wrong("gamma-plus-one")
def rms_gemma(x, gamma, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * (1 + gamma)


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
wrong("centred", lambda x, gamma, eps: F.layer_norm(x, x.shape[-1:], gamma, None, eps))
wrong(
    "unbiased-deviation", lambda x, gamma, eps: gamma * x / torch.sqrt(torch.var(x, -1, keepdim=True) + eps)
)
wrong("eps-outside-root", lambda x, gamma, eps: gamma * x / (x.square().mean(-1, keepdim=True).sqrt() + eps))
wrong("no-root", lambda x, gamma, eps: gamma * x / ((x * x).mean(-1, keepdim=True) + eps))
wrong("square-of-the-mean", lambda x, gamma, eps: gamma * x / (x.mean(-1, keepdim=True) ** 2 + eps).sqrt())
wrong("unit-length", lambda x, gamma, eps: x / torch.sqrt((x**2).sum(-1, keepdim=True) + eps) * gamma)
wrong("mean-absolute", lambda x, gamma, eps: gamma * x / (x.abs().mean(dim=-1, keepdim=True) + eps))
wrong("largest", lambda x, gamma, eps: gamma * x / (abs(x).max(dim=-1, keepdim=True).values + eps))
wrong("multiplied", lambda x, gamma, eps: gamma * x * (x.square().mean(-1, keepdim=True) + eps).sqrt())
wrong("over-tokens", lambda x, gamma, eps: gamma * x / (x.square().mean(1, keepdim=True) + eps).sqrt())
wrong("over-batch", lambda x, gamma, eps: gamma * x / (x.square().mean(0) + eps).sqrt())
wrong("over-everything", lambda x, gamma, eps: gamma * x / (x.square().mean() + eps).sqrt())
wrong("over-tokens-and-features", lambda x, gamma, eps: F.rms_norm(x, x.shape[1:], None, eps) * gamma)
wrong("gamma-missing", lambda x, gamma, eps: F.rms_norm(x, x.shape[-1:], eps=eps))
wrong("gamma-before-the-norm", lambda x, gamma, eps: F.rms_norm(gamma * x, x.shape[-1:], eps=eps))
wrong("error", lambda x, gamma, eps: gamma * x / (x.square().mean(-1) + eps).sqrt())


right, wrong = of("swiglu")


@right
def swiglu_by_hand(x, w_gate, w_up, w_down):
    gate = x @ w_gate
    return (gate * gate.sigmoid() * (x @ w_up)) @ w_down


@right
def swiglu_exp(x, w_gate, w_up, w_down):
    gate, up = torch.matmul(x, w_gate), torch.matmul(x, w_up)
    return torch.matmul(up * gate / (1 + torch.exp(-gate)), w_down)


@right
def swiglu_joined(x, w_gate, w_up, w_down):
    gate, up = (x @ torch.cat([w_gate, w_up], dim=1)).chunk(2, dim=-1)
    return F.silu(gate).mul_(up) @ w_down


@right
def swiglu_einsum(x, w_gate, w_up, w_down):
    up = torch.einsum("btd,df->btf", x, w_up)
    gate = torch.einsum("btd,df->btf", x, w_gate)
    return torch.einsum("btf,btf,fd->btd", up, gate * torch.sigmoid(gate), w_down)


@wrong("no-activation")
def swiglu_not_taken(x, w_gate, w_up, w_down):
    gate = x @ w_gate
    F.silu(gate)
    return (gate * (x @ w_up)) @ w_down


@wrong("activation-on-input")
def swiglu_early(x, w_gate, w_up, w_down):
    x = F.silu(x)
    return ((x @ w_gate) * (x @ w_up)) @ w_down


right(lambda x, w_gate, w_up, w_down: (F.silu(x @ w_gate) * (x @ w_up)) @ w_down)
right(
    lambda x, w_gate, w_up, w_down: F.linear(F.linear(x, w_up.T) * nn.SiLU()(F.linear(x, w_gate.T)), w_down.T)
)
wrong("gate-and-up-exchanged", lambda x, w_gate, w_up, w_down: (x @ w_gate * F.silu(x @ w_up)) @ w_down)
wrong("sigmoid", lambda x, w_gate, w_up, w_down: (torch.sigmoid(x @ w_gate) * (x @ w_up)) @ w_down)
wrong("no-activation", lambda x, w_gate, w_up, w_down: ((x @ w_gate) * (x @ w_up)) @ w_down)
wrong("relu", lambda x, w_gate, w_up, w_down: (F.relu(x @ w_gate) * (x @ w_up)) @ w_down)
wrong("gelu", lambda x, w_gate, w_up, w_down: (F.gelu(x @ w_gate) * (x @ w_up)) @ w_down)
wrong("tanh", lambda x, w_gate, w_up, w_down: ((x @ w_gate).tanh() * (x @ w_up)) @ w_down)
wrong("activation-on-product", lambda x, w_gate, w_up, w_down: F.silu((x @ w_gate) * (x @ w_up)) @ w_down)
wrong("activation-on-both", lambda x, w_gate, w_up, w_down: (F.silu(x @ w_gate) * F.silu(x @ w_up)) @ w_down)
wrong("activation-at-the-end", lambda x, w_gate, w_up, w_down: F.silu((x @ w_gate * (x @ w_up)) @ w_down))
wrong("added", lambda x, w_gate, w_up, w_down: (F.silu(x @ w_gate) + x @ w_up) @ w_down)
wrong("up-missing", lambda x, w_gate, w_up, w_down: F.silu(x @ w_gate) @ w_down)
wrong("gate-missing", lambda x, w_gate, w_up, w_down: F.silu(x @ w_up) @ w_down)
wrong("one-matrix-for-both", swiglu_by_hand, {"gate * gate.sigmoid() * (x @ w_up)": "F.silu(gate) * gate"})
wrong("only-hidden", lambda x, w_gate, w_up, w_down: F.silu(x @ w_gate) * (x @ w_up))
wrong("residual-added", lambda x, w_gate, w_up, w_down: x + (F.silu(x @ w_gate) * (x @ w_up)) @ w_down)
wrong("softmax", lambda x, w_gate, w_up, w_down: (F.softmax(x @ w_gate, dim=-1) * (x @ w_up)) @ w_down)
wrong(
    "error", lambda x, w_gate, w_up, w_down: F.linear(F.silu(F.linear(x, w_gate)) * F.linear(x, w_up), w_down)
)
wrong("error", lambda x, w_gate, w_up, w_down: (F.silu(x @ w_gate) @ (x @ w_up)) @ w_down)


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


def attended(q, k, v, mask, scale=None):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)


def shared(x, q):
    return x.repeat_interleave(q.shape[1] // x.shape[1], dim=1)


@wrong("interleaved")
def gqa_modulo(q, k, v, mask):
    group_of = torch.arange(q.shape[1]) % k.shape[1]
    return attended(q, k[:, group_of], v[:, group_of], mask)


@wrong("values-interleaved")
def gqa_values_by_cat(q, k, v, mask):
    n = q.shape[1] // k.shape[1]
    return attended(q, k.repeat_interleave(n, 1), torch.cat([v] * n, dim=1), mask)


@wrong("keys-interleaved")
def gqa_keys_by_tile(q, k, v, mask):
    n = q.shape[1] // k.shape[1]
    return attended(q, k.tile(1, n, 1, 1), v.repeat_interleave(n, 1), mask)


@wrong("averaged")
def gqa_mean(q, k, v, mask):
    k, v = (x.mean(1, keepdim=True).expand(-1, q.shape[1], -1, -1) for x in (k, v))
    return attended(q, k, v, mask)


@wrong("not-shared")
def gqa_plain(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return scores.masked_fill(~mask, -torch.inf).softmax(-1) @ v


@wrong("scale-without-root")
def gqa_no_root(q, k, v, mask):
    return attended(q, shared(k, q), shared(v, q), mask, scale=1 / q.shape[-1])


@wrong("scale-by-model-width")
def gqa_d_model(q, k, v, mask):
    d_model = q.shape[1] * q.shape[-1]
    return attended(q, shared(k, q), shared(v, q), mask, scale=d_model**-0.5)


@wrong("mask-ignored")
def gqa_fill_not_taken(q, k, v, mask):
    scores = q @ shared(k, q).mT / math.sqrt(q.shape[-1])
    scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1) @ shared(v, q)


@wrong("mask-reversed")
def gqa_blocked(q, k, v, mask):
    scores = q @ shared(k, q).mT / math.sqrt(q.shape[-1])
    return scores.masked_fill(mask, -torch.inf).softmax(-1) @ shared(v, q)


@wrong("mask-after-softmax")
def gqa_late_mask(q, k, v, mask):
    weights = (q @ shared(k, q).mT / math.sqrt(q.shape[-1])).softmax(-1)
    return weights * mask @ shared(v, q)


@wrong("softmax-over-queries")
def gqa_wrong_axis(q, k, v, mask):
    scores = q @ shared(k, q).mT / math.sqrt(q.shape[-1])
    return scores.masked_fill(~mask, -torch.inf).softmax(2) @ shared(v, q)


@wrong("heads-merged")
def gqa_merged(q, k, v, mask):
    context = attended(q, shared(k, q), shared(v, q), mask)
    return context.transpose(1, 2).reshape(len(q), q.shape[2], -1)


@wrong("interleaved+not-scaled")
def gqa_two_slips(q, k, v, mask):
    n = q.shape[1] // k.shape[1]
    return attended(q, k.repeat(1, n, 1, 1), v.repeat(1, n, 1, 1), mask, scale=1.0)


right(lambda q, k, v, mask: F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True))
wrong("interleaved", gqa_two_slips, {"mask, scale=1.0": "mask"})
wrong("only-first", gqa_mean, {"x.mean(1, keepdim=True).expand": "x[:, :1].expand"})
wrong("groups-reversed", lambda q, k, v, mask: attended(q, shared(k.flip(1), q), shared(v.flip(1), q), mask))
wrong(
    "queries-averaged", lambda q, k, v, mask: attended(q.unflatten(1, (k.shape[1], -1)).mean(2), k, v, mask)
)
wrong("not-scaled", lambda q, k, v, mask: attended(q, shared(k, q), shared(v, q), mask, scale=1.0))
wrong("mask-ignored", lambda q, k, v, mask: attended(q, shared(k, q), shared(v, q), None))
wrong("keys-for-values", lambda q, k, v, mask: attended(q, shared(k, q), shared(k, q), mask))
wrong("weights-returned", gqa_wrong_axis, {"(2) @ shared(v, q)": "(-1)"})
