"""Solutions for merge_heads and multi_head_attention."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import tinytx as tx
from tests.solutions.collection import of

# mypy: ignore-errors


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


@wrong("reshape-without-transpose")
def merge_flattened_from_numpy(context):
    b, h, t, k = context.shape
    return torch.tensor(context.flatten().tolist()).view(b, t, -1)


@wrong("only-first-head")
def merge_returns_too_soon(context):
    for head in context.unbind(dim=1):
        return head


@wrong("heads-reversed")
def merge_prepends(context):
    out = context[:, 0]
    for head in range(1, context.shape[1]):
        out = torch.cat([context[:, head], out], dim=-1)
    return out


@wrong("batch-and-tokens-exchanged")
def merge_tokens_first(context):
    b, h, t, k = context.shape
    return context.permute(2, 0, 1, 3).reshape(t, b, h * k)


@wrong("too-many-results")
def merge_list(context):
    heads = []
    for head in context.unbind(1):
        heads += [head]
    return heads


right(lambda context: torch.cat([context[:, h] for h in range(context.shape[1])], dim=-1))
right(lambda context: torch.cat(context.unbind(dim=1), -1))
wrong("reshape-without-transpose", merge_reshape, {"context.transpose(1, 2).reshape": "context.reshape"})
wrong("interleaved", merge_reshape, {"context.transpose(1, 2)": 'torch.einsum("bhtk->btkh", context)'})
wrong("interleaved", lambda context: torch.stack(context.unbind(1), dim=-1).flatten(2))
wrong("not-merged", lambda context: context.permute(0, 2, 1, 3))
wrong("heads-added", lambda context: context.sum(dim=1))
wrong("heads-averaged", lambda context: torch.stack([context[:, h] for h in range(context.size(1))]).mean(0))
wrong("heads-as-tokens", lambda context: torch.cat(list(context.transpose(0, 1)), dim=1))
wrong("tokens-last", merge_reshape, {"(1, 2).reshape(b, t, h * k)": "(2, 3).reshape(b, h * k, t)"})
wrong("batch-and-tokens-merged", merge_reshape, {"b, t": "-1"})
wrong("batch-and-heads-exchanged", lambda context: torch.cat(list(context), dim=-1))
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


@wrong("scale-by-model-width")
def mha_scaled_by_d(x, w_q, w_k, w_v, w_o, n_heads, mask):
    q, k, v = (_split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    scores = q @ k.transpose(-2, -1) / math.sqrt(x.shape[-1])
    return _join(scores.masked_fill(~mask, -1e9).softmax(-1) @ v) @ w_o


@wrong("scale-without-root")
def mha_without_root(x, w_q, w_k, w_v, w_o, n_heads, mask):
    q, k, v = (_split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    return _join((q @ k.mT / q.size(-1)).masked_fill(~mask, -math.inf).softmax(-1) @ v) @ w_o


@wrong("heads-ignored")
def mha_one_head(x, w_q, w_k, w_v, w_o, n_heads, mask):
    return tx.attention(x @ w_q, x @ w_k, x @ w_v, mask) @ w_o


@wrong("heads-ignored")
def mha_one_head_by_hand(x, w_q, w_k, w_v, w_o, n_heads, mask):
    scores = (x @ w_q) @ (x @ w_k).mT / x.shape[-1] ** 0.5
    return scores.masked_fill(~mask, -1e9).softmax(-1) @ (x @ w_v) @ w_o


@wrong("view-without-transpose")
def mha_bad_split(x, w_q, w_k, w_v, w_o, n_heads, mask):
    b, t, d = x.shape
    q, k, v = ((x @ w).view(b, n_heads, t, d // n_heads) for w in (w_q, w_k, w_v))
    return _join(tx.attention(q, k, v, mask)) @ w_o


@wrong("merge-without-transpose")
def mha_bad_merge(x, w_q, w_k, w_v, w_o, n_heads, mask):
    q, k, v = (_split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    return tx.attention(q, k, v, mask).reshape(x.shape) @ w_o


@wrong("attends-among-heads")
def mha_no_transpose(x, w_q, w_k, w_v, w_o, n_heads, mask):
    b, t, d = x.shape
    q, k, v = ((x @ w).view(b, t, n_heads, -1) for w in (w_q, w_k, w_v))
    scores = q @ k.transpose(-2, -1) / math.sqrt(d // n_heads)
    return (scores.masked_fill(~mask, -1e9).softmax(-1) @ v).reshape(b, t, d) @ w_o


@wrong("n-heads-taken-for-width")
def mha_width(x, w_q, w_k, w_v, w_o, n_heads, mask):
    b, t, d = x.shape
    q, k, v = ((x @ w).view(b, t, d // n_heads, n_heads).transpose(1, 2) for w in (w_q, w_k, w_v))
    return _join(tx.attention(q, k, v, mask)) @ w_o


@wrong("values-not-projected")
def mha_raw_values(x, w_q, w_k, w_v, w_o, n_heads, mask):
    q, k, v = (_split(each, n_heads) for each in (x @ w_q, x @ w_k, x))
    return _join(tx.attention(q, k, v, mask)) @ w_o


@wrong("one-projection-for-all")
def mha_copy_and_paste(x, w_q, w_k, w_v, w_o, n_heads, mask):
    q = _split(x @ w_q, n_heads)
    k = _split(x @ w_q, n_heads)
    v = _split(x @ w_q, n_heads)
    return _join(tx.attention(q, k, v, mask)) @ w_o


@wrong("keys-for-values")
def mha_averages_keys(x, w_q, w_k, w_v, w_o, n_heads, mask):
    q, k = _split(x @ w_q, n_heads), _split(x @ w_k, n_heads)
    return _join(tx.attention(q, k, k, mask)) @ w_o


@wrong("weights-transposed")
def mha_as_linear(x, w_q, w_k, w_v, w_o, n_heads, mask):
    q, k, v = (_split(F.linear(x, w), n_heads) for w in (w_q, w_k, w_v))
    return F.linear(_join(tx.attention(q, k, v, mask)), w_o)


@wrong("residual-added")
def mha_with_residual(x, w_q, w_k, w_v, w_o, n_heads, mask):
    return x + mha_package(x, w_q, w_k, w_v, w_o, n_heads, mask)


@wrong("mask-ignored")
def mha_masked_fill_forgotten(x, w_q, w_k, w_v, w_o, n_heads, mask):
    q, k, v = (_split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores.masked_fill(~mask, -math.inf)  # returns a new tensor, which is dropped
    return _join(scores.softmax(-1) @ v) @ w_o


@wrong("mask-reversed")
def mha_torch_sign(x, w_q, w_k, w_v, w_o, n_heads, mask):
    q, k, v = (_split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    return _join((q @ k.mT / q.shape[-1] ** 0.5).masked_fill(mask, -1e9).softmax(-1) @ v) @ w_o


@wrong("mask-after-softmax")
def mha_late_mask(x, w_q, w_k, w_v, w_o, n_heads, mask):
    q, k, v = (_split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    return _join(((q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) * mask) @ v) @ w_o


@wrong("softmax-over-queries")
def mha_wrong_axis(x, w_q, w_k, w_v, w_o, n_heads, mask):
    q, k, v = (_split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    weights = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~mask, -1e9).softmax(dim=2)
    return _join(weights @ v) @ w_o


@wrong("too-many-results")
def mha_with_weights(x, w_q, w_k, w_v, w_o, n_heads, mask):
    q, k, v = (_split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    weights = tx.attention_weights(q, k, mask)
    return _join(weights @ v) @ w_o, weights


@wrong("input-modified")
def mha_in_place(x, w_q, w_k, w_v, w_o, n_heads, mask):
    w_q /= (x.shape[-1] // n_heads) ** 0.5
    q, k, v = (_split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    return _join((q @ k.mT).masked_fill(~mask, -math.inf).softmax(-1) @ v) @ w_o


@wrong("scale-by-model-width+output-projection-missing")
def mha_two_things(x, w_q, w_k, w_v, w_o, n_heads, mask):
    q, k, v = (_split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    return _join((q @ k.mT / x.shape[-1] ** 0.5).masked_fill(~mask, -1e9).softmax(-1) @ v)


right(mha_package, {"tx.attention(q, k, v, mask)": "F.scaled_dot_product_attention(q, k, v, attn_mask=mask)"})
wrong("not-scaled", mha_without_root, {"k.mT / q.size(-1)": "k.mT"})
wrong("output-projection-missing", mha_package, {" @ w_o": ""})
wrong("mask-ignored", mha_package, {"v, mask": "v"})
wrong("softmax-over-second-axis", mha_wrong_axis, {"2": "1"})
wrong("error", mha_package, {"tx.attention(q, k, v, mask)": "(q @ k.t()).softmax(-1) @ v"})
