"""How long, how fast and how precisely a model is trained, checked when built; and how far it is."""

from __future__ import annotations

import dataclasses
import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch

CHOICES = {
    "decay": ("cosine", "linear"),
    "optimizer": ("adamw", "muon"),
    "precision": ("auto", "fp32", "bf16"),
}
LOWEST = {"n_steps": 1, "warmup_steps": 0, "tokens_per_batch": 1, "log_every": 1, "checkpoint_every": 1}
PAUSE, LONGEST_PAUSE = 4, 60  # seconds between two lines of progress: the first, and at most


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """Hyperparameters of training: all that decides its result, apart from model and data.

    ValueError for a value outside its range.

    Parameters
    ----------
    n_steps : int
        Updates of the weights.
    lr : float
        Highest learning rate, reached after the warm-up.
    warmup_steps : int
        Steps over which the rate rises from 0.
    decay : {"cosine", "linear"}
        How it falls afterwards.
    decay_steps : int, optional
        Steps over which it falls, the last ones: before them it is constant (warm-up, stable, decay, arXiv
        2404.06395, section 4). By default it falls from the end of the warm-up on.
    final_lr_fraction : float
        Share of ``lr`` that is left at the end.
    weight_decay : float
        Decoupled, on matrices only: not on embeddings, norms and biases.
    optimizer : {"adamw", "muon"}
        "muon": `Muon` for the matrices of hidden layers, AdamW for the rest.
    betas : pair of float
        Of AdamW.
    clip_norm : float
        Largest length of the whole gradient; longer ones are scaled down.
    tokens_per_batch : int
        Tokens of a batch at most, padding included.
    precision : {"auto", "fp32", "bf16"}
        Of the products; weights and optimizer stay in float32. "auto" takes bfloat16 where the hardware
        has instructions for it.
    seed : int
        Of data order and dropout.
    log_every, checkpoint_every : int
        Steps between two records of the history, and between two checkpoints.
    """

    n_steps: int
    lr: float = 1e-3
    warmup_steps: int = 0
    decay: str = "cosine"
    decay_steps: int | None = None
    final_lr_fraction: float = 0.05
    weight_decay: float = 0.1
    optimizer: str = "adamw"
    betas: tuple[float, float] = (0.9, 0.98)
    clip_norm: float = 1.0
    tokens_per_batch: int = 4096
    precision: str = "auto"
    seed: int = 0
    log_every: int = 10
    checkpoint_every: int = 500

    def __post_init__(self) -> None:
        for name, lowest in LOWEST.items():
            check_whole(name, getattr(self, name), lowest)
        for name in ("lr", "clip_norm"):
            value: float = getattr(self, name)
            fits = isinstance(value, Real) and 0 < value < math.inf
            require(fits, f"{name} must be positive and finite", repr(value))
        decay, fraction, betas = self.weight_decay, self.final_lr_fraction, self.betas
        fits = isinstance(decay, Real) and 0 <= decay < math.inf
        require(fits, "weight_decay must be a finite number, at least 0", repr(decay))
        fits = isinstance(fraction, Real) and 0 <= fraction <= 1
        require(fits, "final_lr_fraction must be in [0, 1]", repr(fraction))
        two = isinstance(betas, Sequence) and len(betas) == 2
        fits = two and all(isinstance(beta, Real) and 0 <= beta < 1 for beta in betas)
        require(fits, "betas must be two numbers in [0, 1)", repr(betas))
        object.__setattr__(self, "betas", tuple(betas))
        check_seed(self.seed)
        if self.decay_steps is not None:
            check_whole("decay_steps", self.decay_steps, 1)
            rest = self.n_steps - self.warmup_steps
            rule = f"decay_steps must be at most the {rest} steps after the warm-up"
            require(self.decay_steps <= rest, rule, self.decay_steps)
        for name, choices in CHOICES.items():
            choice = getattr(self, name)
            require(choice in choices, f"{name} must be one of {', '.join(choices)}", choice)

    def lr_at(self, step: int) -> float:
        """Learning rate of a step, the first being step 1.

        Examples
        --------
        >>> settings = TrainingSettings(n_steps=10, lr=1.0, warmup_steps=4, final_lr_fraction=0.0)
        >>> [round(settings.lr_at(step), 3) for step in (1, 2, 4, 7, 10)]
        [0.25, 0.5, 1.0, 0.5, 0.0]
        """
        if step <= self.warmup_steps:
            return self.lr * step / max(1, self.warmup_steps)
        n_falling = self.n_steps - self.warmup_steps if self.decay_steps is None else self.decay_steps
        done = max(0, step - self.n_steps + n_falling) / max(1, n_falling)
        left = 1 - done if self.decay == "linear" else (1 + math.cos(math.pi * done)) / 2
        return self.lr * (self.final_lr_fraction + (1 - self.final_lr_fraction) * left)

    def is_scheduled(self, step: int) -> bool:
        """Whether a checkpoint is due after this step: every ``checkpoint_every`` steps and at the end."""
        return step == self.n_steps or step % self.checkpoint_every == 0

    def replace(self, **changes: Any) -> TrainingSettings:
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON can hold them."""
        fields = {**dataclasses.asdict(self), "betas": list(self.betas)}
        if self.optimizer == "adamw":  # left out, as stored results have no other
            del fields["optimizer"]
        if self.decay_steps is None:  # likewise
            del fields["decay_steps"]
        return fields


def require(holds: object, rule: str, got: object) -> None:
    """Raise ValueError in the words of all checks, ``rule, got ...``, unless the rule holds."""
    if not holds:
        raise ValueError(f"{rule}, got {got}")


def check_whole(name: str, value: Any, lowest: int) -> None:
    """Raise ValueError unless a value is an integer of Python or numpy, and not below the lowest."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    require(whole, f"{name} must be an integer", repr(value))
    require(value >= lowest, f"{name} must be at least {lowest}", value)


def check_seed(seed: Any) -> None:
    """Raise ValueError unless it is an integer in 0..2**63 - 1, as torch takes it."""
    check_whole("seed", seed, 0)
    require(seed < 2**63, "seed must be below 2**63", seed)


def mixed_seed(*numbers: int) -> int:
    """A seed for torch that depends on several numbers, such as seed and epoch."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0]) >> 1


def choose_device(name: str = "auto") -> torch.device:
    """The device to compute on: "cpu", "cuda", or "auto" for a GPU where there is one."""
    require(name in ("auto", "cpu", "cuda"), "device must be auto, cpu or cuda", repr(name))
    has_gpu, rule = torch.cuda.is_available(), "device cuda needs a GPU that PyTorch can use"
    require(has_gpu or name != "cuda", rule, "a machine without one")
    return torch.device("cuda" if has_gpu and name != "cpu" else "cpu")


def choose_precision(precision: str, device: torch.device) -> str:
    """What "auto" means on this device: "bf16" where it has instructions for bfloat16, else "fp32".

    Emulated, a product in bfloat16 takes several times as long as one in float32.
    """
    if precision != "auto":
        return precision
    if device.type == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported() else "fp32"
    features: Mapping[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()  # from torch 2.10
    return "bf16" if features.get("amx_bf16") or features.get("avx512_bf16") else "fp32"


@dataclass
class Lines:
    """Lines of progress on standard error, more and more seldom, where there is no terminal for a bar."""

    label: str
    total: int
    pause: float = 0.0  # seconds before the next line; at first `PAUSE`
    last: float = dataclasses.field(default_factory=time.monotonic)

    def say(self, number: int) -> None:
        """Say how far it is, if it is time to."""
        pause = self.pause or PAUSE
        if time.monotonic() > self.last + pause:
            self.last, self.pause = time.monotonic(), min(2 * pause, LONGEST_PAUSE)
            print(f"{self.label}: {number:,} of {self.total:,}", file=sys.stderr, flush=True)
