"""The training loop of lesson 02."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

IGNORED = -100  # torch's sign for "no target here"


def train(
    model: nn.Module, draw: Callable[[], tuple[Tensor, Tensor]], n_steps: int, lr: float = 1e-2
) -> list[float]:
    """Train a model on fresh batches of inputs and targets, (B, T) each; return the loss of each step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, n_steps, pct_start=0.1)
    losses = []
    for _ in range(n_steps):
        inputs, targets = draw()
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten(), ignore_index=IGNORED)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses
