"""Solutions for attention_flops and longest_chain."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from tests.solutions.collection import right, wrong

# mypy: ignore-errors


@right("attention_flops")
def flops_formula(seq_len, d_model, n_heads):
    return 8 * seq_len * d_model**2 + 4 * seq_len**2 * d_model


@right("attention_flops")
def flops_by_product(seq_len, d_model, n_heads):
    def product(rows, inner, columns):
        return 2 * rows * inner * columns

    head_dim = d_model // n_heads
    projections = 4 * product(seq_len, d_model, d_model)
    scores = n_heads * product(seq_len, head_dim, seq_len)
    sums = n_heads * product(seq_len, seq_len, head_dim)
    return projections + scores + sums


@right("attention_flops")
def flops_in_a_loop(seq_len, d_model, n_heads):
    total = 0
    for _ in ("q", "k", "v", "out"):
        total += seq_len * d_model * d_model * 2
    for _head in range(n_heads):
        total += 2 * 2 * seq_len * seq_len * (d_model // n_heads)
    return total


@right("attention_flops")
def flops_counted(seq_len, d_model, n_heads):
    x, w = torch.ones(seq_len, d_model), torch.ones(d_model, d_model)
    with FlopCounterMode(display=False) as counter:
        q, k, v = x @ w, x @ w, x @ w
        q, k, v = (y.view(seq_len, n_heads, -1).transpose(0, 1) for y in (q, k, v))
        context = (q @ k.mT) @ v
        context.transpose(0, 1).reshape(seq_len, d_model) @ w
    return counter.get_total_flops()


@right("attention_flops")
def flops_as_float(seq_len, d_model, n_heads):
    return 4.0 * seq_len * d_model * (2 * d_model + seq_len)


@wrong("attention_flops", "one-operation")
def flops_mult_adds(seq_len, d_model, n_heads):
    return 4 * seq_len * d_model**2 + 2 * seq_len**2 * d_model


@wrong("attention_flops", "output-projection-forgotten")
def flops_qkv(seq_len, d_model, n_heads):
    qkv = 3 * 2 * seq_len * d_model * d_model
    return qkv + 2 * seq_len * seq_len * d_model + 2 * seq_len * seq_len * d_model


@wrong("attention_flops", "projections-forgotten")
def flops_pairs_only(seq_len, d_model, n_heads):
    return n_heads * 2 * (2 * seq_len * seq_len * (d_model // n_heads))


@wrong("attention_flops", "pairs-forgotten")
def flops_projections_only(seq_len, d_model, n_heads):
    return sum(2 * seq_len * d_model * d_model for _ in range(4))


@wrong("attention_flops", "one-projection")
def flops_one_projection(seq_len, d_model, n_heads):
    return 2 * seq_len * d_model**2 + 4 * seq_len**2 * d_model


@wrong("attention_flops", "one-product-of-pairs")
def flops_scores_only(seq_len, d_model, n_heads):
    return 8 * seq_len * d_model**2 + 2 * seq_len**2 * d_model


@wrong("attention_flops", "times-heads")
def flops_pairs_times_heads(seq_len, d_model, n_heads):
    return 8 * seq_len * d_model**2 + n_heads * 4 * seq_len**2 * d_model


@wrong("attention_flops", "times-heads")
def flops_all_times_heads(seq_len, d_model, n_heads):
    one_head = 4 * 2 * seq_len * d_model * d_model + 2 * 2 * seq_len * seq_len * d_model
    total = 0
    for _ in range(n_heads):
        total += one_head
    return total


@wrong("attention_flops", "one-head")
def flops_of_one_head(seq_len, d_model, n_heads):
    k = d_model // n_heads
    return 8 * seq_len * d_model**2 + 2 * 2 * seq_len**2 * k


@wrong("attention_flops", "sizes-exchanged")
def flops_exchanged(seq_len, d_model, n_heads):
    n, d = d_model, seq_len
    return 4 * 2 * n * d**2 + 4 * n**2 * d


@wrong("attention_flops", "causal-pairs")
def flops_causal(seq_len, d_model, n_heads):
    pairs = sum(range(1, seq_len + 1))
    return 8 * seq_len * d_model**2 + 4 * pairs * d_model


@wrong("attention_flops", "training")
def flops_with_backward(seq_len, d_model, n_heads):
    forward = 8 * seq_len * d_model**2 + 4 * seq_len**2 * d_model
    return forward + 2 * forward


@wrong("attention_flops", "order-only")
def flops_big_o(seq_len, d_model, n_heads):
    return seq_len**2 * d_model


@wrong("attention_flops", "per-token")
def flops_per_token(seq_len, d_model, n_heads):
    return 8 * d_model**2 + 4 * seq_len * d_model


@wrong("attention_flops", "biases-added")
def flops_with_biases(seq_len, d_model, n_heads):
    linear = 2 * seq_len * d_model * d_model + seq_len * d_model
    return 4 * linear + 4 * seq_len**2 * d_model


@wrong("attention_flops", "one-operation+output-projection-forgotten")
def flops_qkv_mult_adds(seq_len, d_model, n_heads):
    return 3 * seq_len * d_model**2 + 2 * seq_len**2 * d_model


@wrong("attention_flops", "parameters")
def flops_parameters(seq_len, d_model, n_heads):
    return 4 * (d_model**2 + d_model)


@wrong("attention_flops", "wrong-type")
def flops_text(seq_len, d_model, n_heads):
    return f"{flops_formula(seq_len, d_model, n_heads):,}"


@right("longest_chain")
def chain_depths(waits_for):
    depths = []
    for before in waits_for:
        depths.append(1 + max((depths[i] for i in before), default=0))
    return max(depths, default=0)


@right("longest_chain")
def chain_memo(waits_for):
    @cache
    def depth(i):
        return 1 + max([depth(j) for j in waits_for[i]] + [0])

    return max([depth(i) for i in range(len(waits_for))] + [0])


@right("longest_chain")
def chain_levels(waits_for):
    done, n_rounds = set(), 0
    while len(done) < len(waits_for):
        ready = {i for i, before in enumerate(waits_for) if i not in done and done.issuperset(before)}
        done |= ready
        n_rounds += 1
    return n_rounds


@right("longest_chain")
def chain_numpy(waits_for):
    depths = np.ones(len(waits_for), dtype=int)
    for i, before in enumerate(waits_for):
        for j in before:
            depths[i] = max(depths[i], depths[j] + 1)
    return depths.max() if len(depths) else 0


@right("longest_chain")
def chain_forwards(waits_for):
    best = {}
    for i, before in enumerate(waits_for):
        best[i] = 1
        for j in before:
            if best[j] + 1 > best[i]:
                best[i] = best[j] + 1
    return max(best.values()) if best else 0


@right("longest_chain")
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


@wrong("longest_chain", "links-counted")
def chain_links(waits_for):
    depths = []
    for before in waits_for:
        depths.append(max((depths[i] + 1 for i in before), default=0))
    return max(depths, default=0)


@wrong("longest_chain", "links-counted")
def chain_off_by_one(waits_for):
    return chain_depths(waits_for) - 1


@wrong("longest_chain", "all-operations")
def chain_all(waits_for):
    return len(waits_for)


@wrong("longest_chain", "ends-at-the-last")
def chain_last(waits_for):
    depths = []
    for before in waits_for:
        depths.append(1 + max([depths[i] for i in before], default=0))
    return depths[-1] if depths else 0


@wrong("longest_chain", "first-only")
def chain_first(waits_for):
    depths = []
    for before in waits_for:
        depths.append(1 + depths[before[0]] if before else 1)
    return max(depths, default=0)


@wrong("longest_chain", "last-only")
def chain_overwritten(waits_for):
    depths = [1] * len(waits_for)
    for i, before in enumerate(waits_for):
        for j in before:
            depths[i] = depths[j] + 1
    return max(depths, default=0)


@wrong("longest_chain", "sums-branches")
def chain_sum(waits_for):
    depths = []
    for before in waits_for:
        depths.append(1 + sum(depths[i] for i in before))
    return max(depths, default=0)


@wrong("longest_chain", "shortest")
def chain_min(waits_for):
    depths = []
    for before in waits_for:
        depths.append(1 + min((depths[i] for i in before), default=0))
    return max(depths, default=0)


@wrong("longest_chain", "widest")
def chain_width(waits_for):
    depths = []
    for before in waits_for:
        depths.append(1 + max((depths[i] for i in before), default=0))
    return max((depths.count(level) for level in set(depths)), default=0)


@wrong("longest_chain", "ancestors")
def chain_visited(waits_for):
    seen, stack = set(), [len(waits_for) - 1] if waits_for else []
    while stack:
        i = stack.pop()
        if i not in seen:
            seen.add(i)
            stack.extend(waits_for[i])
    return len(seen)


@wrong("longest_chain", "most-waits")
def chain_most(waits_for):
    return max((len(before) for before in waits_for), default=0)


@wrong("longest_chain", "all-waits")
def chain_edges(waits_for):
    return sum(len(before) for before in waits_for)


@wrong("longest_chain", "no-operations")
def chain_without_default(waits_for):
    depths = []
    for before in waits_for:
        depths.append(1 + max((depths[i] for i in before), default=0))
    return max(depths)


@wrong("longest_chain", "one-for-no-operations")
def chain_starts_at_one(waits_for):
    longest, depths = 1, []
    for before in waits_for:
        depths.append(max([1] + [depths[i] + 1 for i in before]))
        longest = max(longest, depths[-1])
    return longest


@wrong("longest_chain", "nothing-returned")
def chain_printed(waits_for):
    depths = []
    for before in waits_for:
        depths.append(1 + max((depths[i] for i in before), default=0))
    print(max(depths, default=0))


@wrong("longest_chain", "time-limit")
def chain_without_memory(waits_for):
    def depth(i):
        return 1 + max([depth(j) for j in waits_for[i]] + [0])

    return max([depth(i) for i in range(len(waits_for))] + [0])
