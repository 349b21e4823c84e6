"""Tools for lesson 02: a training loop, and a game whose right attention maps are known beforehand.

Shape letters: B rows, T positions, H heads.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

N_LETTERS, SEQ_LEN, BACK = 5, 10, 2
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


def letter_game(n_rows: int = 64) -> tuple[Tensor, Tensor]:
    """Draw rows of letters; the target is a pair as one number: the letter two back, and the first one."""
    letters = torch.randint(N_LETTERS, (n_rows, SEQ_LEN))
    pairs = letters[:, :-BACK] * N_LETTERS + letters[:, :1]
    return letters, F.pad(pairs, (BACK, 0), value=IGNORED)


def known_maps() -> Tensor:
    """Return maps (2, T, T) that solve the game: all weight two back, all weight on the first letter.

    Examples
    --------
    >>> known_maps()[:, 4].tolist()[1]
    [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """
    known = torch.zeros(2, SEQ_LEN, SEQ_LEN)
    for t in range(BACK, SEQ_LEN):
        known[0, t, t - BACK] = known[1, t, 0] = 1.0
    return known


def fit(maps: Tensor) -> tuple[list[int], list[float]]:
    """Return which of two heads takes which job, and the mean weight of each where its job needs it.

    The better of the two orders is taken: which head takes which job is an accident of the seed.
    """
    score = torch.einsum("hts,jts->hj", maps, known_maps()) / (SEQ_LEN - BACK)  # (head, job)
    order = [0, 1] if score.trace() >= score.flip(1).trace() else [1, 0]
    return order, score[order].diagonal().tolist()
