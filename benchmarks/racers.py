"""Who takes part in the race: our model, and torch's encoder as nanoGPT is trained on laptops."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.peers import TorchEncoder
from benchmarks.race import Racer
from tinytx.config import TransformerConfig
from tinytx.fast import sent
from tinytx.loop import TrainingStep
from tinytx.settings import TrainingSettings, choose_precision
from tinytx.transformer import LanguageModel
from tinytx_run.recipes import MUON
from tinytx_run.training import seeded

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
        """Mean nats a token, of our model, or of one that gives logits (B, T, V)."""
        inputs, targets = self.batch(indices)
        inputs = sent(inputs, next(model.parameters()).device)
        if isinstance(model, LanguageModel):
            return model.loss(inputs, targets)
        return F.cross_entropy(model(inputs).flatten(0, 1).float(), sent(targets.flatten(), inputs.device))


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


SIZES: dict[str, Any] = {"vocab_size": 1, "d_model": 128, "n_heads": 4, "n_layers": 4, "d_ff": 512}
N_TICKS = 10_000  # of the clock: settings count time in steps
WARMUP: dict[str, Any] = {"n_steps": N_TICKS, "warmup_steps": N_TICKS // 10}


def ours(optimizer: str, lr: float, weight_decay: float, tokens_per_batch: int, note: str = "") -> Trained:
    """Our model. A wide batch makes the optimizer a small part of a step; GELU takes longer than ReLU.

    Muon gains more from twice the steps than the optimizer's time costs: batches of 2,048 tokens for it.

    It reads the text about eight times, so Muon needs four times the usual weight decay. After 1,900 steps,
    seed 0, windows of 256: decay 0.1, 0.2, 0.4 and 0.8 gave 1.462, 1.451, 1.437 and 1.439 nats side by side;
    dropout of 0.05 with decay 0.1 gave 1.482, and windows of 128 with decay 0.1 about 1.471.
    """
    config = TransformerConfig(max_len=256, positions="rotary", activation="relu", bias=False, **SIZES)
    how: dict[str, Any] = {"lr": lr, "weight_decay": weight_decay, "tokens_per_batch": tokens_per_batch}
    settings = TrainingSettings(**WARMUP, **{**MUON, "optimizer": optimizer, **how})
    return Trained(f"tinytx, {optimizer}{note}", config, settings)


def published() -> Trained:
    """The recipe that nanoGPT's README gives for a laptop, with torch's encoder, for the time of the race.

    github.com/karpathy/nanoGPT, README, "I only have a macbook": its command, and the rates of the script.
    """
    embeddings: dict[str, Any] = {"positions": "learned", "tie_embeddings": True, "scale_embeddings": False}
    config = TransformerConfig(max_len=64, activation="gelu-tanh", **embeddings, **SIZES)
    settings = TrainingSettings(
        lr=1e-3,
        final_lr_fraction=0.1,
        betas=(0.9, 0.99),
        tokens_per_batch=12 * 64,
        precision="fp32",
        **(WARMUP | {"warmup_steps": N_TICKS // 20}),
    )
    return Trained("torch.nn.TransformerEncoder", config, settings, TorchEncoder)


RACERS: dict[str, Callable[[], Trained]] = {
    "tinytx": partial(ours, "muon", 1e-2, 0.4, 2048),
    "tinytx-4096": partial(ours, "muon", 1e-2, 0.4, 4096, ", batches of 4,096"),  # the record before
    "tinytx-adamw": partial(ours, "adamw", 4e-3, 0.1, 4096),
    "torch-encoder": published,
}


def named_racer(name: str, device: torch.device = CPU) -> Racer:
    """A racer of ours by its name, or of others as ``FILE.py:CLASS``, which choose a device themselves."""
    on_cpu = device.type == "cpu"
    if name in RACERS:
        racer = RACERS[name]()
        return racer if on_cpu else replace(racer, name=f"{racer.name}, {device}", device=device)
    if not on_cpu:
        raise ValueError(f"device must be cpu for the racer of a file, which chooses itself, got {device}")
    file, _, attribute = name.rpartition(":")
    if not attribute or not Path(file).is_file():
        raise ValueError(f"a racer must be one of {', '.join(RACERS)}, or FILE.py:CLASS, got {name!r}")
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    if spec is None or spec.loader is None:
        raise ValueError(f"a racer must be in a Python file, got {file!r}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not hasattr(module, attribute):
        raise ValueError(f"{file} must define the class of the racer, got no {attribute!r}")
    return getattr(module, attribute)()
