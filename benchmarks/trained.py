"""A model that takes part in the race: trained as `tinytx` trains, on windows of one long text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tinytx.config import TransformerConfig
from tinytx.fast import sent
from tinytx.loop import TrainingStep
from tinytx.settings import TrainingSettings, choose_precision
from tinytx.transformer import LanguageModel
from tinytx_run.training import seeded

N_TICKS = 10_000  # of the clock: settings count time in steps
CPU = torch.device("cpu")


class StreamObjective:
    """Next-token prediction on a text, (N,), cut into windows of T <= N / 2 tokens, each epoch elsewhere."""

    def __init__(self, ids: Tensor, seq_len: int) -> None:
        self._ids = ids
        self.seq_len = seq_len

    def epoch_batches(self, *, seed: int, epoch: int, tokens_per_batch: int) -> list[list[int]]:
        """Windows in shuffled order, each named by the position where it begins; all batches are full."""
        rng = np.random.default_rng([seed, epoch])
        begin = int(rng.integers(self.seq_len))
        starts = np.arange(begin, len(self._ids) - self.seq_len, self.seq_len)
        n_rows = min(max(1, tokens_per_batch // self.seq_len), len(starts))
        whole = len(starts) - len(starts) % n_rows
        return rng.permutation(starts)[:whole].reshape(-1, n_rows).tolist()

    def batch(self, indices: list[int]) -> tuple[Tensor, Tensor]:
        """Inputs and targets (B, T) of the windows that begin at ``indices``."""
        rows = self._ids[torch.tensor(indices)[:, None] + torch.arange(self.seq_len + 1)]
        return rows[:, :-1], rows[:, 1:]

    def n_predictions(self, indices: Sequence[int]) -> int:
        """All positions of the windows."""
        return len(indices) * self.seq_len

    def loss(self, model: Any, indices: list[int]) -> Tensor:
        """Mean nats a token."""
        inputs, targets = self.batch(indices)
        return model.loss(sent(inputs, next(model.parameters()).device), targets)


@dataclass
class Trained:
    """A model that is trained as `tinytx` trains, with the learning rate following the clock of the race."""

    name: str
    config: TransformerConfig
    settings: TrainingSettings
    model_class: Callable[[TransformerConfig], nn.Module] = LanguageModel
    device: torch.device = CPU

    @property
    def seq_len(self) -> int:
        """The longest window."""
        return self.config.max_len

    def make(self, ids: Tensor, n_characters: int, seed: int) -> None:
        """Draw the weights and prepare the optimizer."""
        config = self.config.replace(vocab_size=n_characters)
        self._model = seeded(lambda: self.model_class(config), seed).to(self.device).train()
        settings, learning = self.settings.replace(seed=seed), StreamObjective(ids, self.seq_len)
        self._step = TrainingStep(self._model, learning, settings)
        self._batches = (batch for epoch in count() for batch in self._step.batches(epoch))

    def step(self, share: float) -> None:
        """One batch, with the learning rate of this moment."""
        tick = min(N_TICKS, 1 + int(share * N_TICKS))
        self._step.backward(next(self._batches))
        self._step.update(self.settings.lr_at(tick))

    def score(self, ids: Tensor) -> Tensor:
        """Logits in evaluation mode, where the ids are."""
        return self._model.eval()(ids.to(self.device)).to(ids.device)

    def about(self) -> dict[str, Any]:
        """Sizes and settings."""
        precision = choose_precision(self.settings.precision, self.device)
        settings = {"config": self.config.to_dict(), "settings": self.settings.to_dict()}
        device = {} if self.device.type == "cpu" else {"device": self.device.type}
        return {**settings, "precision": precision, **device}
