"""Solutions for padded_cost and accumulate."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from tests.solutions.collection import of

# mypy: ignore-errors


right, wrong = of("padded_cost")


@right
def cost_by_slices(lengths, batch_size):
    total = 0
    for i in range(0, len(lengths), batch_size):
        batch = lengths[i : i + batch_size]
        total += len(batch) * max(batch)
    return total


@right
def cost_popping(lengths, batch_size):
    rest, total = list(lengths), 0
    while rest:
        batch, rest = rest[:batch_size], rest[batch_size:]
        total += max(batch) * len(batch)
    return total


@right
def cost_row_by_row(lengths, batch_size):
    total = 0
    for i in range(len(lengths)):
        start = i // batch_size * batch_size
        total += max(lengths[start : start + batch_size])
    return total


@right
def cost_of_real_tensors(lengths, batch_size):
    rows = [torch.ones(n) for n in lengths]
    starts = range(0, len(rows), batch_size)
    return sum(pad_sequence(rows[i : i + batch_size], batch_first=True).numel() for i in starts)


@right
def cost_numpy(lengths, batch_size):
    lengths = np.asarray(lengths, dtype=int)
    cuts = np.split(lengths, range(batch_size, len(lengths), batch_size))
    return sum(cut.size * cut.max() for cut in cuts if cut.size)


@wrong("last-batch-full")
def cost_of_one_row(lengths, batch_size):
    return sum(max(lengths[i : i + batch_size]) for i in range(0, len(lengths), batch_size))


@wrong("full-rows-counted")
def cost_of_full_batches(lengths, batch_size):
    total = 0
    for i in range(0, len(lengths), batch_size):
        total += batch_size * max(lengths[i : i + batch_size])
    return total


@wrong("rest-dropped")
def cost_without_rest(lengths, batch_size):
    total = 0
    for number in range(len(lengths) // batch_size):
        total += batch_size * max(lengths[number * batch_size : (number + 1) * batch_size])
    return total


@wrong("sorted-first")
def cost_sorted(lengths, batch_size):
    lengths = sorted(lengths)
    return cost_by_slices(lengths, batch_size)


@wrong("sorted-first")
def cost_sorted_down(lengths, batch_size):
    lengths = sorted(lengths, key=lambda n: -n)
    return cost_row_by_row(lengths, batch_size)


@wrong("shortest")
def cost_cut_off(lengths, batch_size):
    batches = [lengths[i : i + batch_size] for i in range(0, len(lengths), batch_size)]
    return sum(len(batch) * min(batch) for batch in batches)


@wrong("first-row")
def cost_first_row(lengths, batch_size):
    return sum(lengths[i // batch_size * batch_size] for i in range(len(lengths)))


@wrong("every-other")
def cost_strided(lengths, batch_size):
    n_batches = (len(lengths) + batch_size - 1) // batch_size
    batches = [lengths[i::n_batches] for i in range(n_batches)]
    return sum(len(batch) * max(batch) for batch in batches)


@wrong("empty-refused")
def cost_reshaped(lengths, batch_size):
    total, longest, rows = 0, lengths[0], 0
    for n in lengths:
        if rows == batch_size:
            total, longest, rows = total + rows * longest, n, 0
        longest, rows = max(longest, n), rows + 1
    return total + rows * longest


wrong("padding-forgotten", lambda lengths, batch_size: sum(lengths))
wrong("padding-only", cost_by_slices, {"len(batch) * max(batch)": "sum(max(batch) - n for n in batch)"})
wrong("longest-of-all", lambda lengths, batch_size: len(lengths) * max(lengths) if lengths else 0)
wrong("last-row", cost_cut_off, {"min(batch)": "batch[-1]"})
wrong("pairs", cost_cut_off, {"min": "max(batch) * max"})


right, wrong = of("accumulate")


@right
def accumulate_shares(gradients, n_tokens):
    shares = n_tokens / n_tokens.sum()
    return (gradients * shares[:, None]).sum(0)


@right
def accumulate_loop(gradients, n_tokens):
    total = torch.zeros(gradients.shape[1])
    for gradient, n in zip(gradients, n_tokens, strict=True):
        total += gradient * n
    return total / n_tokens.sum()


@right
def accumulate_einsum(gradients, n_tokens):
    return torch.einsum("mp,m->p", gradients, n_tokens.to(gradients.dtype)) / n_tokens.sum()


@right
def accumulate_running(gradients, n_tokens):
    mean, n_seen = torch.zeros_like(gradients[0]), 0
    for gradient, n in zip(gradients, n_tokens.tolist(), strict=True):
        n_seen += n
        mean = mean + (gradient - mean) * n / n_seen
    return mean


@wrong("plain-mean")
def accumulate_divided_losses(gradients, n_tokens):
    total = 0
    for gradient in gradients:
        total = total + gradient / len(gradients)
    return total


@wrong("plain-sum")
def accumulate_as_backward(gradients, n_tokens):
    grad = torch.zeros_like(gradients[0])
    for gradient in gradients:
        grad += gradient
    return grad


@wrong("last-part")
def accumulate_zeroed(gradients, n_tokens):
    for gradient in gradients:
        grad = torch.zeros_like(gradient)
        grad += gradient
    return grad


@wrong("divided-by-own-tokens")
def accumulate_inverse(gradients, n_tokens):
    return sum(gradient / n for gradient, n in zip(gradients, n_tokens, strict=True))


@wrong("divided-twice")
def accumulate_mean_of_shares(gradients, n_tokens):
    return (gradients * (n_tokens / n_tokens.sum())[:, None]).mean(dim=0)


right(lambda gradients, n_tokens: n_tokens.double() @ gradients.double() / n_tokens.sum())
right(lambda gradients, n_tokens: gradients.repeat_interleave(n_tokens, dim=0).mean(0))
wrong("plain-mean", lambda gradients, n_tokens: gradients.mean(dim=0))
wrong("not-divided", lambda gradients, n_tokens: (gradients * n_tokens.unsqueeze(1)).sum(dim=0))
wrong("divided-by-parts", lambda gradients, n_tokens: (gradients * n_tokens[:, None]).mean(0))
wrong("sum-over-tokens", lambda gradients, n_tokens: gradients.sum(0) / n_tokens.sum())
wrong("divided-by-own-tokens", lambda gradients, n_tokens: (gradients / n_tokens[:, None]).mean(0))
wrong("softmax", lambda gradients, n_tokens: n_tokens.float().softmax(0) @ gradients)
wrong("largest-part", lambda gradients, n_tokens: (gradients * (n_tokens / n_tokens.max())[:, None]).sum(0))
wrong("not-added", lambda gradients, n_tokens: gradients * n_tokens[:, None] / n_tokens.sum())
wrong("wrong-axis", lambda gradients, n_tokens: torch.einsum("mp,m->m", gradients, n_tokens / n_tokens.sum()))
wrong("sign", lambda gradients, n_tokens: -(n_tokens / n_tokens.sum()) @ gradients)
wrong("whole-shares", lambda gradients, n_tokens: (gradients * (n_tokens // n_tokens.sum())[:, None]).sum(0))
