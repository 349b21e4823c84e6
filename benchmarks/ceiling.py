"""The most that a machine gives: the fastest product of matrices, and the fastest copy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from benchmarks.settings import BenchSettings
from tinytx_course.labs.roofline import COPY_BYTES, DTYPES, product
from tinytx_course.labs.timing import take_turns

WIDTHS = {"cpu": (1024, 2048), "cuda": (4096, 8192)}  # of the matrices that are tried


@dataclass(frozen=True)
class Ceiling:
    """The most the machine gave in any round.

    Attributes
    ----------
    flops : dict of str to float
        Operations a second of the largest product of matrices, by precision; a multiply-add counts as two.
    width : dict of str to int
        Of the square matrices that reached it.
    copied : float
        Bytes a second that a copy in main memory moves: those read and those written.
    """

    flops: dict[str, float]
    width: dict[str, int]
    copied: float

    def to_dict(self) -> dict[str, Any]:
        """Figures as JSON can hold them."""
        return {
            "kind": "ceiling",
            "gflops": {name: each / 1e9 for name, each in self.flops.items()},
            "width": self.width,
            "copied_gb_s": self.copied / 1e9,
        }

    def __str__(self) -> str:
        products = ", ".join(f"{name} {each / 1e9:,.0f} GFLOP/s" for name, each in self.flops.items())
        return f"largest product of matrices: {products}; copied: {self.copied / 1e9:.1f} GB/s"


def measure_ceiling(settings: BenchSettings) -> Ceiling:
    """Find what the machine gives at best, within a few seconds.

    In float32 a GPU multiplies as PyTorch has it by default, without TF32.
    """
    device = settings.device
    widths = (64, 128) if settings.tiny else WIDTHS[device.type]
    tasks: dict[str, Callable[[], object]] = {
        f"{name} {width}": product(width, name, device) for name in DTYPES for width in widths
    }
    n_bytes = 2**16 if settings.tiny else COPY_BYTES[device.type]
    source = torch.ones(n_bytes, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    tasks["copy"] = lambda: target.copy_(source)
    turns = take_turns(
        tasks,
        n_rounds=settings.n_rounds,
        device=device,
        label="ceiling",
        progress=settings.progress,
    )
    best = {name: min(times.seconds) for name, times in turns.wall.items()}
    flops, reached = {}, {}
    for name in DTYPES:
        rates = {width: 2 * width**3 / best[f"{name} {width}"] for width in widths}
        reached[name] = max(rates, key=lambda width: rates[width])
        flops[name] = rates[reached[name]]
    return Ceiling(flops, reached, 2 * n_bytes / best["copy"])
