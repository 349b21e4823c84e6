"""Solutions for next_token_probs."""

from __future__ import annotations

import math

import torch

from tests.solutions.collection import of

# mypy: ignore-errors


right, wrong = of("next_token_probs")


@right
def probs_sorted(logits, temperature, top_k, top_p):
    probs = torch.softmax(logits / temperature, dim=-1)
    p, order = probs.sort(descending=True)
    if top_k is not None:
        p[top_k:] = 0
    if top_p is not None:
        p[p.cumsum(0) - p >= top_p] = 0
    out = torch.zeros_like(probs)
    out[order] = p
    return out / out.sum()


@right
def probs_filtered_logits(logits, temperature=1.0, top_k=None, top_p=None):
    logits = kept = logits / temperature
    if top_k is not None:
        smallest = logits.topk(min(top_k, len(logits))).values[-1]
        kept = logits.masked_fill(logits < smallest, float("-inf"))
    if top_p is not None:
        sorted_logits, indices = torch.sort(logits, descending=True)
        remove = sorted_logits.softmax(-1).cumsum(-1) > top_p
        remove[1:] = remove[:-1].clone()
        remove[0] = False
        kept = kept.masked_fill(remove.scatter(0, indices, remove), float("-inf"))
    return kept.softmax(-1)


@right
def probs_loop(logits, temperature, top_k, top_p):
    weights = [math.exp(x / temperature) for x in logits.tolist()]
    probs = {i: w / sum(weights) for i, w in enumerate(weights)}
    order = sorted(probs, key=probs.get, reverse=True)[:top_k]
    kept, reached = [], 0.0
    for i in order:
        kept.append(i)
        reached += probs[i]
        if top_p is not None and reached >= top_p:
            break
    return torch.tensor([probs[i] / reached if i in kept else 0.0 for i in range(len(logits))])


@right
def probs_float64(logits, temperature, top_k, top_p):
    p = (logits.double() / temperature).softmax(0)
    keep = torch.ones_like(p, dtype=torch.bool)
    if top_k:
        keep &= (p[:, None] < p).sum(1) < top_k
    if top_p:
        bigger = torch.where(p > p[:, None], p, 0).sum(1)
        keep &= bigger < top_p
    return p * keep / (p * keep).sum()


@wrong("error")
def probs_none(logits, temperature, top_k, top_p):
    logits = logits / temperature
    logits[logits < logits.topk(top_k).values[-1]] = -math.inf
    return logits.softmax(-1)
