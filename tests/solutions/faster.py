"""Solutions for padded_cost and batch_at_ridge."""

from __future__ import annotations

import itertools
import math

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


right, wrong = of("batch_at_ridge")


@right
def ridge_solved(d_in, d_out, bytes_a_number, ridge):
    once, each = bytes_a_number * d_in * d_out, bytes_a_number * (d_in + d_out)
    return math.ceil(ridge * once / (2 * d_in * d_out - ridge * each))


@right
def ridge_by_intensity(d_in, d_out, bytes_a_number, ridge):
    def intensity(n):
        return 2 * n * d_in * d_out / (bytes_a_number * (n * (d_in + d_out) + d_in * d_out))

    return next(n for n in itertools.count(1) if intensity(n) >= ridge)


@right
def ridge_by_bisection(d_in, d_out, bytes_a_number, ridge):
    low, high = 0, 1 << 20
    while high - low > 1:
        n = (low + high) // 2
        n_bytes = bytes_a_number * (n * d_in + n * d_out + d_in * d_out)
        low, high = (low, n) if 2 * n * d_in * d_out >= ridge * n_bytes else (n, high)
    return high


@right
def ridge_numpy(d_in, d_out, bytes_a_number, ridge):
    n = np.arange(1, 10_000)
    n_bytes = bytes_a_number * (n * d_in + d_in * d_out + n * d_out)
    return n[np.argmax(2 * n * d_in * d_out >= ridge * n_bytes)]


right(lambda i, o, w, r: float(ridge_solved(i, o, w, r)))
wrong("wrong-type", lambda i, o, w, r: f"{ridge_solved(i, o, w, r)} tokens")
wrong("nothing-returned", ridge_numpy, {"return n[": "best = n["})
