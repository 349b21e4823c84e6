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


@wrong("output-projection-forgotten")
def flops_qkv(seq_len, d_model, n_heads):
    qkv = 3 * 2 * seq_len * d_model * d_model
    return qkv + 2 * seq_len * seq_len * d_model + 2 * seq_len * seq_len * d_model


@wrong("projections-forgotten")
def flops_pairs_only(seq_len, d_model, n_heads):
    return n_heads * 2 * (2 * seq_len * seq_len * (d_model // n_heads))


@wrong("pairs-forgotten")
def flops_projections_only(seq_len, d_model, n_heads):
    return sum(2 * seq_len * d_model * d_model for _ in range(4))


@wrong("times-heads")
def flops_all_times_heads(seq_len, d_model, n_heads):
    one_head = 4 * 2 * seq_len * d_model * d_model + 2 * 2 * seq_len * seq_len * d_model
    total = 0
    for _ in range(n_heads):
        total += one_head
    return total


@wrong("one-head")
def flops_of_one_head(seq_len, d_model, n_heads):
    k = d_model // n_heads
    return 8 * seq_len * d_model**2 + 2 * 2 * seq_len**2 * k


@wrong("sizes-exchanged")
def flops_exchanged(seq_len, d_model, n_heads):
    n, d = d_model, seq_len
    return 4 * 2 * n * d**2 + 4 * n**2 * d


@wrong("causal-pairs")
def flops_causal(seq_len, d_model, n_heads):
    pairs = sum(range(1, seq_len + 1))
    return 8 * seq_len * d_model**2 + 4 * pairs * d_model


@wrong("training")
def flops_with_backward(seq_len, d_model, n_heads):
    forward = 8 * seq_len * d_model**2 + 4 * seq_len**2 * d_model
    return forward + 2 * forward


@wrong("biases-added")
def flops_with_biases(seq_len, d_model, n_heads):
    linear = 2 * seq_len * d_model * d_model + seq_len * d_model
    return 4 * linear + 4 * seq_len**2 * d_model


@wrong("one-operation+output-projection-forgotten")
def flops_qkv_mult_adds(seq_len, d_model, n_heads):
    return 3 * seq_len * d_model**2 + 2 * seq_len**2 * d_model


right(lambda seq_len, d_model, n_heads: 4.0 * seq_len * d_model * (2 * d_model + seq_len))
wrong("one-operation", lambda seq_len, d_model, n_heads: 4 * seq_len * d_model**2 + 2 * seq_len**2 * d_model)
wrong("one-projection", lambda seq_len, d_model, n_heads: 2 * seq_len * d_model**2 + 4 * seq_len**2 * d_model)
wrong("one-product-of-pairs", flops_formula, {"4": "2"})
wrong("times-heads", flops_formula, {"4": "n_heads * 4"})
wrong("order-only", lambda seq_len, d_model, n_heads: seq_len**2 * d_model)
wrong("per-token", lambda seq_len, d_model, n_heads: 8 * d_model**2 + 4 * seq_len * d_model)
wrong("parameters", lambda seq_len, d_model, n_heads: 4 * (d_model**2 + d_model))
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


@wrong("ends-at-the-last")
def chain_last(waits_for):
    depths = []
    for before in waits_for:
        depths.append(1 + max([depths[i] for i in before], default=0))
    return depths[-1] if depths else 0


@wrong("last-only")
def chain_overwritten(waits_for):
    depths = [1] * len(waits_for)
    for i, before in enumerate(waits_for):
        for j in before:
            depths[i] = depths[j] + 1
    return max(depths, default=0)


@wrong("ancestors")
def chain_visited(waits_for):
    seen, stack = set(), [len(waits_for) - 1] if waits_for else []
    while stack:
        i = stack.pop()
        if i not in seen:
            seen.add(i)
            stack.extend(waits_for[i])
    return len(seen)


@wrong("one-for-no-operations")
def chain_starts_at_one(waits_for):
    longest, depths = 1, []
    for before in waits_for:
        depths.append(max([1] + [depths[i] + 1 for i in before]))
        longest = max(longest, depths[-1])
    return longest


wrong(
    "links-counted",
    chain_depths,
    {"1 + max((depths[i] for i in before), default=0)": "max((depths[i] + 1 for i in before), default=0)"},
)
wrong("links-counted", lambda waits_for: chain_depths(waits_for) - 1)
wrong("all-operations", lambda waits_for: len(waits_for))
wrong(
    "first-only",
    chain_depths,
    {"max((depths[i] for i in before), default=0)": "depths[before[0]] if before else 1"},
)
wrong(
    "sums-branches",
    chain_depths,
    {"max((depths[i] for i in before), default=0)": "sum(depths[i] for i in before)"},
)
wrong(
    "shortest",
    chain_depths,
    {" max((depths[i] for i in before), default=0)": " min((depths[i] for i in before), default=0)"},
)
wrong("widest", chain_depths, {"depths,": "(depths.count(level) for level in set(depths)),"})
wrong("most-waits", lambda waits_for: max((len(before) for before in waits_for), default=0))
wrong("all-waits", lambda waits_for: sum(len(before) for before in waits_for))
wrong("no-operations", chain_depths, {"depths, default=0": "depths"})
wrong("nothing-returned", chain_depths, {"return max(depths, default=0)": "print(max(depths, default=0))"})
wrong("time-limit", chain_memo, {"@cache": ""})
