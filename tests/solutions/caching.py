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


@wrong("newest-not-read")
def cached_appends_afterwards(x, cache, w_q, w_k, w_v):
    keys, values = cache
    scores = (x @ w_q) @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5
    output = scores.softmax(dim=-1) @ values
    return output, torch.cat([cache, torch.stack([x @ w_k, x @ w_v])], dim=2)


@wrong("newest-hidden")
def cached_strict_mask(x, cache, w_q, w_k, w_v):
    grown = torch.cat([cache, torch.stack([x @ w_k, x @ w_v])], dim=2)
    n = grown.shape[2]
    earlier = torch.arange(n) < n - 1
    scores = (x @ w_q) @ grown[0].mT / grown.shape[-1] ** 0.5
    return scores.masked_fill(~earlier, float("-inf")).softmax(-1) @ grown[1], grown


@wrong("newest-alone")
def cached_ignores_the_cache(x, cache, w_q, w_k, w_v):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    weights = (q @ k.transpose(1, 2) / k.shape[-1] ** 0.5).softmax(-1)
    return weights @ v, torch.cat([cache, torch.stack([k, v])], dim=2)


@wrong("triangle-from-the-left")
def cached_tril(x, cache, w_q, w_k, w_v):
    grown = torch.cat([cache, torch.stack([x @ w_k, x @ w_v])], dim=2)
    scores = (x @ w_q) @ grown[0].mT / grown.shape[-1] ** 0.5
    causal = torch.tril(torch.ones(1, grown.shape[2], dtype=torch.bool))
    return scores.masked_fill(~causal, float("-inf")).softmax(-1) @ grown[1], grown


@wrong("cache-not-grown")
def cached_returns_the_old_cache(x, cache, w_q, w_k, w_v):
    keys = torch.cat([cache[0], x @ w_k], dim=1)
    values = torch.cat([cache[1], x @ w_v], dim=1)
    scores = (x @ w_q) @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5
    return scores.softmax(dim=-1) @ values, cache


@wrong("newest-only-returned")
def cached_returns_the_newest(x, cache, w_q, w_k, w_v):
    newest = torch.stack([x @ w_k, x @ w_v])
    keys, values = torch.cat([cache, newest], dim=2)
    scores = (x @ w_q) @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5
    return scores.softmax(dim=-1) @ values, newest


@wrong("newest-first")
def cached_prepends(x, cache, w_q, w_k, w_v):
    grown = torch.cat([torch.stack([x @ w_k, x @ w_v]), cache], dim=2)
    return F.scaled_dot_product_attention(x @ w_q, grown[0], grown[1]), grown


@wrong("newest-overwrites-last")
def cached_overwrites(x, cache, w_q, w_k, w_v):
    newest = torch.stack([x @ w_k, x @ w_v])
    grown = cache.clone() if cache.shape[2] else newest
    grown[:, :, -1:] = newest
    return F.scaled_dot_product_attention(x @ w_q, grown[0], grown[1]), grown


@wrong("oldest-dropped")
def cached_window(x, cache, w_q, w_k, w_v):
    length = max(cache.shape[2], 1)
    grown = torch.cat([cache, torch.stack([x @ w_k, x @ w_v])], dim=2)[:, :, -length:]
    return F.scaled_dot_product_attention(x @ w_q, grown[0], grown[1]), grown


@wrong("halves-exchanged")
def cached_values_first(x, cache, w_q, w_k, w_v):
    grown = torch.cat([cache, torch.stack([x @ w_k, x @ w_v])], dim=2)
    values, keys = grown
    return F.scaled_dot_product_attention(x @ w_q, keys, values), grown


@wrong("halves-returned-exchanged")
def cached_stacks_values_first(x, cache, w_q, w_k, w_v):
    keys = torch.cat([cache[0], x @ w_k], dim=1)
    values = torch.cat([cache[1], x @ w_v], dim=1)
    return F.scaled_dot_product_attention(x @ w_q, keys, values), torch.stack([values, keys])


@wrong("not-scaled")
def cached_no_scale(x, cache, w_q, w_k, w_v):
    grown = torch.cat([cache, torch.stack([x @ w_k, x @ w_v])], dim=2)
    return ((x @ w_q) @ grown[0].mT).softmax(-1) @ grown[1], grown


@wrong("cache-not-grown+not-scaled")
def cached_no_scale_old_cache(x, cache, w_q, w_k, w_v):
    keys, values = torch.cat([cache, torch.stack([x @ w_k, x @ w_v])], dim=2)
    return ((x @ w_q) @ keys.mT).softmax(-1) @ values, cache


@wrong("scale-by-model-width")
def cached_wrong_width(x, cache, w_q, w_k, w_v):
    grown = torch.cat([cache, torch.stack([x @ w_k, x @ w_v])], dim=2)
    scores = torch.einsum("btd,dk,bsk->bts", x, w_q, grown[0]) / math.sqrt(x.shape[-1])
    return scores.softmax(-1) @ grown[1], grown


@wrong("scale-by-keys")
def cached_wrong_axis_of_scale(x, cache, w_q, w_k, w_v):
    grown = torch.cat([cache, torch.stack([x @ w_k, x @ w_v])], dim=2)
    keys, values = grown
    return ((x @ w_q) @ keys.mT / math.sqrt(keys.size(1))).softmax(-1) @ values, grown


@wrong("key-and-value-exchanged")
def cached_weights_exchanged(x, cache, w_q, w_k, w_v):
    grown = torch.cat([cache, torch.stack([x @ w_v, x @ w_k])], dim=2)
    return F.scaled_dot_product_attention(x @ w_q, grown[0], grown[1]), grown


@wrong("query-from-w-k")
def cached_key_as_query(x, cache, w_q, w_k, w_v):
    key = x @ w_k
    grown = torch.cat([cache, torch.stack([key, x @ w_v])], dim=2)
    return F.scaled_dot_product_attention(key, grown[0], grown[1]), grown


@wrong("softmax-over-queries")
def cached_softmax_axis(x, cache, w_q, w_k, w_v):
    grown = torch.cat([cache, torch.stack([x @ w_k, x @ w_v])], dim=2)
    scores = (x @ w_q) @ grown[0].mT / grown.shape[-1] ** 0.5
    return scores.softmax(dim=1) @ grown[1], grown


@wrong("first-row-for-all")
def cached_first_row(x, cache, w_q, w_k, w_v):
    grown = torch.cat([cache, torch.stack([x @ w_k, x @ w_v])], dim=2)
    keys, values = grown[0][0], grown[1][0]
    return ((x @ w_q) @ keys.T / keys.shape[-1] ** 0.5).softmax(-1) @ values, grown


@wrong("output-without-axis")
def cached_squeezed(x, cache, w_q, w_k, w_v):
    output, grown = cached_plain(x, cache, w_q, w_k, w_v)
    return output.squeeze(1), grown


@wrong("input-modified")
def cached_in_place(x, cache, w_q, w_k, w_v):
    output, grown = cached_plain(x, cache, w_q, w_k, w_v)
    cache *= 0
    return output, grown


wrong("triangle-from-the-left", cached_sdpa, {"-2": "2", "grown[0], grown[1]": "*grown, is_causal=True"})
wrong("value-from-w-k", cached_weights_exchanged, {"w_v,": "w_k,"})
wrong("wrong-type", lambda x, cache, w_q, w_k, w_v: cached_plain(x, cache, w_q, w_k, w_v)[0])
wrong("numpy-array", cached_squeezed, {"output.squeeze(1), grown": "output.numpy(), grown.numpy()"})
