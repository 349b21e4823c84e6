"""One long text as a language model reads it: windows for training, and every token judged once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from tinytx.training.objectives import output_loss

NO_TARGET = -1  # ids are 0 or more, and windows have no padding


class StreamObjective:
    """Predict each token from those before it in one long text, cut into windows of equal length.

    Every pass cuts at other places, so that a token is read with other beginnings each time.

    Parameters
    ----------
    ids : Tensor of shape (N,), integer
        The text.
    seq_len : int
        T, tokens in a window; at most N / 2, so that every pass has a window wherever it begins to cut.
    """

    def __init__(self, ids: Tensor, seq_len: int) -> None:
        if not 1 <= seq_len <= len(ids) // 2:
            raise ValueError(f"seq_len must be from 1 to {len(ids) // 2}, half of the text, got {seq_len}")
        self._ids = ids.long()
        self.seq_len = seq_len

    def epoch_batches(self, *, seed: int, epoch: int, tokens_per_batch: int) -> list[list[int]]:
        """Windows in shuffled order, each named by the place where it begins."""
        rng = np.random.default_rng([seed, epoch])
        begin = int(rng.integers(self.seq_len))
        starts = np.arange(begin, len(self._ids) - self.seq_len, self.seq_len)
        n_rows = max(1, tokens_per_batch // self.seq_len)
        shuffled = rng.permutation(starts).tolist()
        whole = max(len(shuffled) - len(shuffled) % n_rows, min(n_rows, len(shuffled)))
        return [shuffled[i : i + n_rows] for i in range(0, whole, n_rows)]

    def batch(self, indices: list[int]) -> tuple[Tensor, Tensor]:
        """Inputs and targets (B, T) of the windows that begin at ``indices``."""
        rows = self._ids[torch.tensor(indices)[:, None] + torch.arange(self.seq_len + 1)]
        return rows[:, :-1], rows[:, 1:]

    def loss(self, model: Any, indices: list[int], batch: list[int] | None = None) -> Tensor:
        """Mean nats a token, of a model with a body and a head, or of one that gives logits (B, T, V)."""
        inputs, targets = self.batch(indices)
        device = next(model.parameters()).device
        if hasattr(model, "body"):
            loss = output_loss(model.head, model.body(inputs.to(device)), targets, NO_TARGET)
        else:
            logits = model(inputs.to(device))
            loss = F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten().to(device))
        return loss if batch is None else loss * (len(indices) / len(batch))


@torch.no_grad()
def stream_nats(
    model: Callable[[Tensor], Tensor],
    ids: Tensor,
    seq_len: int,
    *,
    stride: int,
    device: torch.device | None = None,
    rows_per_batch: int = 64,
) -> Tensor:
    """Surprise at each token of one long text but the first, which nothing foretells.

    Parameters
    ----------
    model : callable
        From ids (B, T) to logits (B, T, V); in evaluation mode.
    ids : Tensor of shape (N,), integer
    seq_len : int
        T, the longest window that is read.
    stride : int
        From 1 to T: how far apart windows begin. Each judges the last so many of its predictions, so that
        every token has at least ``T - stride`` tokens before it, but near the beginning of the text.
    device : torch.device, optional
    rows_per_batch : int

    Returns
    -------
    Tensor of shape (N - 1,), float32
        ``-log P`` in nats of tokens 1, 2, ..., each judged once.
    """
    if not 1 <= stride <= seq_len:
        raise ValueError(f"stride must be from 1 to {seq_len}, the window, got {stride}")
    n = len(ids) - 1
    found = torch.full((n,), torch.nan)
    firsts = [0] if n < seq_len else list(range(0, n - seq_len + 1, stride))
    whole = min(seq_len, n)
    if firsts[-1] + whole < n:
        firsts.append(n - whole)  # the end, in a window that overlaps more
    offsets = torch.arange(whole + 1)
    done = 0
    for i in range(0, len(firsts), rows_per_batch):
        starts = firsts[i : i + rows_per_batch]
        rows = ids.long()[torch.tensor(starts)[:, None] + offsets].to(device)
        logits = model(rows[:, :-1]).float()
        nats = F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten(), reduction="none")
        for start, each in zip(starts, nats.view(len(starts), -1).cpu(), strict=True):
            found[done : start + whole] = each[done - start :]
            done = start + whole
    return found
