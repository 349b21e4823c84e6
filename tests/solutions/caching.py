"""Solutions for cached_step."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from tests.solutions.collection import of

# mypy: ignore-errors


right, wrong = of("cached_step")


@right
def cached_plain(x, cache, w_q, w_k, w_v):
    newest = torch.stack([x @ w_k, x @ w_v])
    cache = torch.cat([cache, newest], dim=2)
    keys, values = cache
    scores = (x @ w_q) @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5
    return scores.softmax(dim=-1) @ values, cache


@right
def cached_einsum(x, cache, w_q, w_k, w_v):
    keys = torch.cat([cache[0], torch.einsum("btd,dk->btk", x, w_k)], dim=1)
    values = torch.cat([cache[1], torch.einsum("btd,dk->btk", x, w_v)], dim=1)
    q = torch.einsum("btd,dk->btk", x, w_q)
    weights = torch.softmax(torch.einsum("btk,bsk->bts", q, keys) / math.sqrt(q.size(-1)), dim=2)
    return torch.einsum("bts,bsk->btk", weights, values), torch.stack((keys, values))


@right
def cached_loops(x, cache, w_q, w_k, w_v):
    outputs, caches = [], []
    for row in range(x.shape[0]):
        token = x[row, 0]
        keys = [*cache[0, row], token @ w_k]
        values = [*cache[1, row], token @ w_v]
        query = token @ w_q
        raised = [torch.exp(query @ key / math.sqrt(len(query))) for key in keys]
        total = sum(raised)
        outputs.append(sum(r / total * value for r, value in zip(raised, values, strict=True)))
        caches.append(torch.stack([torch.stack(keys), torch.stack(values)]))
    return torch.stack(outputs)[:, None], torch.stack(caches, dim=1)


@right
def cached_sdpa(x, cache, w_q, w_k, w_v):
    grown = torch.cat((cache, torch.stack((x @ w_k, x @ w_v))), -2)
    return F.scaled_dot_product_attention(x @ w_q, grown[0], grown[1]), grown


@right
def cached_preallocated(x, cache, w_q, w_k, w_v):
    halves, rows, length, width = cache.shape
    grown = cache.new_empty(halves, rows, length + 1, width)
    grown[:, :, :length] = cache
    grown[0, :, length] = (x @ w_k)[:, 0]
    grown[1, :, length] = (x @ w_v)[:, 0]
    weights = torch.softmax(torch.bmm(x @ w_q, grown[0].mT) * width**-0.5, -1)
    return [torch.bmm(weights, grown[1]), grown]


@wrong("output-without-axis")
def cached_squeezed(x, cache, w_q, w_k, w_v):
    output, grown = cached_plain(x, cache, w_q, w_k, w_v)
    return output.squeeze(1), grown


@wrong("input-modified")
def cached_in_place(x, cache, w_q, w_k, w_v):
    output, grown = cached_plain(x, cache, w_q, w_k, w_v)
    cache *= 0
    return output, grown


wrong("wrong-type", lambda x, cache, w_q, w_k, w_v: cached_plain(x, cache, w_q, w_k, w_v)[0])
wrong("numpy-array", cached_squeezed, {"output.squeeze(1), grown": "output.numpy(), grown.numpy()"})


@wrong("scale-by-keys")
def cached_step_scale_by_keys(x, cache, w_q, w_k, w_v):
    T = cache.shape[2]
    k = torch.cat([cache[0], x @ w_k], 1)
    v = torch.cat([cache[1], x @ w_v], 1)
    s = x @ w_q @ k.mT / math.sqrt(T)
    return (s.softmax(-1) @ v, torch.stack([k, v]))
