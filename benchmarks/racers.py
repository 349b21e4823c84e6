"""Who takes part in the race: our model, and racers of others by file."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import replace
from functools import partial, reduce
from pathlib import Path
from typing import Any

import torch

from benchmarks.race import Racer
from benchmarks.trained import CPU, N_TICKS, Trained
from benchmarks.tricks import tricky
from tinytx.config import TransformerConfig
from tinytx.settings import TrainingSettings
from tinytx_run.recipes import MUON

SIZES: dict[str, Any] = {"vocab_size": 1, "d_model": 128, "n_heads": 4, "n_layers": 4, "d_ff": 512}
WARMUP: dict[str, Any] = {"n_steps": N_TICKS, "warmup_steps": N_TICKS // 10}


def ours(tokens_per_batch: int, note: str = "") -> Trained:
    """Our model. A wide batch makes the optimizer a small part of a step; GELU takes longer than ReLU.

    Muon gains more from twice the steps than the optimizer's time costs: batches of 2,048 tokens for it.

    It reads the text about eight times, so Muon needs four times the usual weight decay. After 1,900 steps,
    seed 0, windows of 256: decay 0.1, 0.2, 0.4 and 0.8 gave 1.462, 1.451, 1.437 and 1.439 nats side by side;
    dropout of 0.05 with decay 0.1 gave 1.482, and windows of 128 with decay 0.1 about 1.471.
    """
    config = TransformerConfig(max_len=256, positions="rotary", activation="relu", bias=False, **SIZES)
    how: dict[str, Any] = {"lr": 1e-2, "weight_decay": 0.4, "tokens_per_batch": tokens_per_batch}
    return Trained(f"tinytx, muon{note}", config, TrainingSettings(**WARMUP, **{**MUON, **how}))


RACERS: dict[str, Callable[[], Trained]] = {
    "tinytx": partial(ours, 2048),
    "tinytx-4096": partial(ours, 4096, ", batches of 4,096"),  # the record before
}


def named_racer(name: str, device: torch.device = CPU) -> Racer:
    """A racer of ours, with ``+TRICK`` or none, or of others as ``FILE.py:CLASS``, which choose a device."""
    on_cpu = device.type == "cpu"
    known, *tricks = name.split("+")
    if known in RACERS:
        racer = reduce(tricky, tricks, RACERS[known]())
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
