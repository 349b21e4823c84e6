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


right(lambda gradients, n_tokens: n_tokens.double() @ gradients.double() / n_tokens.sum())
right(lambda gradients, n_tokens: gradients.repeat_interleave(n_tokens, dim=0).mean(0))
