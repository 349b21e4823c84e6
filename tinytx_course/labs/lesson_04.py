"""A task with a proof: bits on a ring, and two questions at each position.

One head with a linear readout cannot give all four pairs of answers; two heads can. Shape letters: B rows,
T positions.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

N_POSITIONS = 8
BACK = (1, 3)  # how far back the two questions ask


def all_rows() -> Tensor:
    """Return every row of bits, (256, T); over them each pair of answers is right equally often."""
    return torch.tensor(list(itertools.product([0, 1], repeat=N_POSITIONS)))


def answers_to(bits: Tensor) -> Tensor:
    """Return the right answers (B, T, 2) to bits (B, T): at each position the bits `BACK` before it.

    Examples
    --------
    >>> answers_to(torch.tensor([[1, 0, 0, 0, 0, 0, 0, 0]]))[0, :4].tolist()
    [[0, 0], [1, 0], [0, 0], [0, 1]]
    """
    return torch.stack([bits.roll(back, dims=1) for back in BACK], dim=-1)


@dataclass(frozen=True)
class Exam:
    """How a model did on all rows.

    `right` is the share of positions and rows with both answers right, `pairs_given` the largest number of
    different pairs of answers that any position gives.
    """

    right: float
    pairs_given: int


@torch.no_grad()
def examine(model: nn.Module) -> Exam:
    """Ask a model about all 256 rows; it returns two logits at each position, (256, T, 2)."""
    bits = all_rows()
    answers = model(bits) > 0  # (256, T, 2)
    pairs = 2 * answers[..., 0] + answers[..., 1].int()  # (256, T), 0 to 3
    pairs_given = max(len(pairs[:, t].unique()) for t in range(N_POSITIONS))
    return Exam((answers == answers_to(bits)).all(dim=-1).float().mean().item(), pairs_given)


def train(model: nn.Module, n_steps: int) -> nn.Module:
    """Train a model on random rows, with the loss of both answers; return it."""
    optimizer = torch.optim.AdamW(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.015, n_steps, pct_start=0.1)
    for _ in range(n_steps):
        batch = torch.randint(2, (32, N_POSITIONS))
        loss = F.binary_cross_entropy_with_logits(model(batch), answers_to(batch).float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model
