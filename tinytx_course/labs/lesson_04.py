"""A game with a proof: bits on a ring, two questions at each place, and attention that answers them.

One head with a linear readout cannot give all four answers; two heads can. Shape letters: B rows, T places.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytx.model.attention import attention_weights

N_PLACES = 8
BACK = (1, 3)  # how far back the two questions ask


def all_rows() -> Tensor:
    """Return every row of bits, (256, T); over them each pair of answers is right equally often."""
    return torch.tensor(list(itertools.product([0, 1], repeat=N_PLACES)))


def answers_to(bits: Tensor) -> Tensor:
    """Return the right answers (B, T, 2) to bits (B, T): at each place the bits `BACK` before it on the ring.

    Examples
    --------
    >>> answers_to(torch.tensor([[1, 0, 0, 0, 0, 0, 0, 0]]))[0, :4].tolist()
    [[0, 0], [1, 0], [0, 0], [0, 1]]
    """
    return torch.stack([bits.roll(back, dims=1) for back in BACK], dim=-1)


class Asker(nn.Module):
    """Bare attention with a readout: queries and keys know letter and place, values the letter only.

    `width` is that of letters, places and all projections; with `hidden` the readout, linear otherwise, has a
    hidden layer of that width.
    """

    def __init__(self, width: int, n_heads: int, hidden: int | None = None) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.letter = nn.Embedding(2, width)
        self.place = nn.Embedding(N_PLACES, width)
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(width, width) for _ in range(3))
        self.read: nn.Module = nn.Linear(width, 2)
        if hidden is not None:
            self.read = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, 2))

    def weights(self, bits: Tensor) -> Tensor:
        """Attention weights of all heads, (B, H, T, T)."""
        seen = self.letter(bits) + self.place.weight  # (B, T, D)
        return attention_weights(self._heads(self.q_proj(seen)), self._heads(self.k_proj(seen)))

    def forward(self, bits: Tensor) -> Tensor:
        """Two numbers at each place, (B, T, 2); a positive one says that the bit is 1."""
        values = self._heads(self.v_proj(self.letter(bits)))  # (B, H, T, K)
        context = (self.weights(bits) @ values).transpose(1, 2)  # (B, T, H, K)
        return self.read(context.flatten(2))  # (B, T, 2)

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)  # (B, T, D) -> (B, H, T, K)


def train_asker(seed: int, n_steps: int, *, width: int, n_heads: int, hidden: int | None = None) -> Asker:
    """Train a fresh `Asker` on random rows by cross-entropy; equal seeds give equal models."""
    torch.manual_seed(seed)
    model = Asker(width, n_heads, hidden)
    optimizer = torch.optim.AdamW(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.015, n_steps, pct_start=0.1)
    for _ in range(n_steps):
        bits = torch.randint(2, (32, N_PLACES))
        loss = F.binary_cross_entropy_with_logits(model(bits), answers_to(bits).float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model


@dataclass(frozen=True)
class Exam:
    """How a model did on all rows: the share of places and rows with both answers right, and the largest
    number of different pairs of answers that any place gives.
    """

    right: float
    pairs_given: int


@torch.no_grad()
def examine(model: nn.Module) -> Exam:
    """Ask a model about all 256 rows."""
    bits = all_rows()
    said = model(bits) > 0  # (256, T, 2)
    pairs = 2 * said[..., 0] + said[..., 1].int()  # (256, T), 0 to 3
    pairs_given = max(len(pairs[:, t].unique()) for t in range(N_PLACES))
    return Exam((said == answers_to(bits)).all(dim=-1).float().mean().item(), pairs_given)
