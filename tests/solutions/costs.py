"""Solutions for attention_flops and longest_chain."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from tests.solutions.collection import of

# mypy: ignore-errors


right, wrong = of("attention_flops")


@right
def flops_formula(seq_len, d_model, n_heads):
    return 8 * seq_len * d_model**2 + 4 * seq_len**2 * d_model


@right
def flops_by_product(seq_len, d_model, n_heads):
    def product(rows, inner, columns):
        return 2 * rows * inner * columns

    head_dim = d_model // n_heads
    projections = 4 * product(seq_len, d_model, d_model)
    scores = n_heads * product(seq_len, head_dim, seq_len)
    sums = n_heads * product(seq_len, seq_len, head_dim)
    return projections + scores + sums


@right
def flops_in_a_loop(seq_len, d_model, n_heads):
    total = 0
    for _ in ("q", "k", "v", "out"):
        total += seq_len * d_model * d_model * 2
    for _head in range(n_heads):
        total += 2 * 2 * seq_len * seq_len * (d_model // n_heads)
    return total


@right
def flops_counted(seq_len, d_model, n_heads):
    x, w = torch.ones(seq_len, d_model), torch.ones(d_model, d_model)
    with FlopCounterMode(display=False) as counter:
        q, k, v = x @ w, x @ w, x @ w
        q, k, v = (y.view(seq_len, n_heads, -1).transpose(0, 1) for y in (q, k, v))
        context = (q @ k.mT) @ v
        context.transpose(0, 1).reshape(seq_len, d_model) @ w
    return counter.get_total_flops()


right(lambda seq_len, d_model, n_heads: 4.0 * seq_len * d_model * (2 * d_model + seq_len))
wrong("wrong-type", lambda seq_len, d_model, n_heads: f"{flops_formula(seq_len, d_model, n_heads):,}")


right, wrong = of("longest_chain")


@right
def chain_depths(waits_for):
    depths = []
    for before in waits_for:
        depths.append(1 + max((depths[i] for i in before), default=0))
    return max(depths, default=0)


@right
def chain_memo(waits_for):
    @cache
    def depth(i):
        return 1 + max([depth(j) for j in waits_for[i]] + [0])

    return max([depth(i) for i in range(len(waits_for))] + [0])


@right
def chain_followed_again(waits_for):
    def depth(i):
        return 1 + max([depth(j) for j in waits_for[i]] + [0])

    return max([depth(i) for i in range(len(waits_for))] + [0])


@wrong("remembers-earlier-calls")
def chain_memo_of_all_calls(waits_for, memo={}):  # noqa: B006
    for i, before in enumerate(waits_for):
        memo[i] = memo.get(i) or 1 + max((memo[j] for j in before), default=0)
    return max([memo[i] for i in range(len(waits_for))] + [0])


@right
def chain_levels(waits_for):
    done, n_rounds = set(), 0
    while len(done) < len(waits_for):
        ready = {i for i, before in enumerate(waits_for) if i not in done and done.issuperset(before)}
        done |= ready
        n_rounds += 1
    return n_rounds


@right
def chain_numpy(waits_for):
    depths = np.ones(len(waits_for), dtype=int)
    for i, before in enumerate(waits_for):
        for j in before:
            depths[i] = max(depths[i], depths[j] + 1)
    return depths.max() if len(depths) else 0


@right
def chain_forwards(waits_for):
    best = {}
    for i, before in enumerate(waits_for):
        best[i] = 1
        for j in before:
            if best[j] + 1 > best[i]:
                best[i] = best[j] + 1
    return max(best.values()) if best else 0


@right
def chain_matrix(waits_for):
    n = len(waits_for)
    links = torch.zeros(n, n)
    for i, before in enumerate(waits_for):
        links[i, list(before)] = 1
    reached, length = torch.ones(n), 0
    while reached.any():
        reached = (links @ reached > 0).float()
        length += 1
    return length


wrong("nothing-returned", chain_depths, {"return max(depths, default=0)": "print(max(depths, default=0))"})
wrong("time-limit", chain_memo, {"@cache": ""})
