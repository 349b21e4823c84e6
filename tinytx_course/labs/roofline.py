"""The roofline of this machine, and where the layers of a model lie under it.

Shape letters: B rows of a batch, T queries a row, S keys a row, N = B·T, D width, F feed-forward width, V
vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

from tinytx.model.config import TransformerConfig
from tinytx_course.labs.timing import take_turns

COPY_BYTES = {"cpu": 2**28, "cuda": 2**31}  # far more than caches hold
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
WIDTH = {"cpu": 1024, "cuda": 8192}  # of the matrices whose product is the roof
CACHED_BYTES = {"cpu": 2**16, "cuda": 2**22}  # few enough to stay close to the processor
NUMBER = 4  # bytes of a float32
NORM_FLOPS = 7  # mean, difference, square, mean, division, factor, shift: for each number


def product(width: int, precision: str, device: torch.device) -> Callable[[], object]:
    """A task: one product of two square matrices. To be timed in turn with others."""
    a, b = (torch.randn(width, width, device=device).to(DTYPES[precision]) for _ in range(2))
    out = torch.empty_like(a)
    return lambda: torch.mm(a, b, out=out)


@dataclass(frozen=True)
class Roof:
    """The most that a machine gives.

    Attributes
    ----------
    flops : float
        Operations a second of a large product of matrices in float32; a multiply-add counts as two.
    copied, cached : float
        Bytes a second that a copy reads and writes, in main memory and so small that it stays in a cache.
    """

    flops: float
    copied: float
    cached: float

    @property
    def ridge(self) -> float:
        """Operations for each byte from which on computing takes longer than fetching."""
        return self.flops / self.copied

    def attainable(self, intensity: float) -> float:
        """Operations a second at best for work that does so many operations on each byte it moves."""
        return min(self.flops, intensity * self.copied)


@dataclass(frozen=True)
class Work:
    """A task, its operations by formula, and the bytes that it must at least read, once, and write."""

    flops: int
    n_bytes: int
    task: Callable[[], object]

    @property
    def intensity(self) -> float:
        """Operations for each byte."""
        return self.flops / self.n_bytes


@dataclass(frozen=True)
class Point:
    """Work that was measured: operations for each byte moved, operations a second, seconds of a call."""

    intensity: float
    rate: float
    seconds: float


def layers_of(
    config: TransformerConfig,
    *,
    batch_size: int,
    n_queries: int,
    n_keys: int,
    device: torch.device | None = None,
) -> dict[str, Work]:
    """The layers of a language model, forward, in float32, each on inputs of its own.

    Parameters
    ----------
    config : TransformerConfig
    batch_size, n_queries, n_keys : int
        B, T and S. In training T = S; generation has T = 1 and stores S keys and values.
    device : torch.device, optional

    Examples
    --------
    A sum reads two numbers of four bytes and writes one:

    >>> config = TransformerConfig(vocab_size=7, d_model=2, n_heads=1, n_layers=1, d_ff=5)
    >>> layers_of(config, batch_size=1, n_queries=3, n_keys=3)["residual sum"].intensity == 1 / 12
    True
    """
    for name, size in {"batch_size": batch_size, "n_queries": n_queries, "n_keys": n_keys}.items():
        if size < 1:
            raise ValueError(f"{name} must be at least 1, got {size}")
    b, t, s, d, heads = batch_size, n_queries, n_keys, config.d_model, config.n_heads
    n = b * t
    new = partial(torch.randn, device=device)

    def linear(a: int, out: int) -> Work:
        task = partial(F.linear, new(n, a), new(out, a), new(out))
        return Work(2 * n * a * out, NUMBER * (n * a + a * out + out + n * out), task)

    query, memory = new(b, heads, t, d // heads), new(b, heads, s, d // heads)
    attend = partial(F.scaled_dot_product_attention, query, memory, memory.clone())
    x, y, scale = new(n, d), new(n, d), new(d)
    return {
        "map in attention": linear(d, d),
        "attention": Work(4 * b * t * s * d, NUMBER * (2 * n * d + 2 * b * s * d), attend),
        "feed-forward, up": linear(d, config.d_ff),
        "feed-forward, down": linear(config.d_ff, d),
        "output layer": linear(d, config.vocab_size),
        "residual sum": Work(n * d, NUMBER * 3 * n * d, partial(torch.add, x, y)),
        "norm": Work(
            NORM_FLOPS * n * d, NUMBER * (2 * n * d + 2 * d), partial(F.layer_norm, x, (d,), scale, scale)
        ),
    }


@torch.inference_mode()
def measure_roofline(
    work: Mapping[Any, Work], *, device: torch.device | None = None, n_rounds: int = 5, tiny: bool = False
) -> tuple[Roof, dict[Any, Point]]:
    """Measure the roof and the layers under it, in turn.

    On a CPU, the default, the clock is processor time, which sums over threads: let torch have one. A `tiny`
    roof is that of a few numbers, to try that everything runs.
    """
    device = device or torch.device("cpu")
    kind = device.type
    width = 64 if tiny else WIDTH[kind]
    copies = {"far": 2**18 if tiny else COPY_BYTES[kind] // 4, "near": CACHED_BYTES[kind]}
    tasks: dict[Any, Callable[[], object]] = {("work", name): each.task for name, each in work.items()}
    tasks["product"] = product(width, "fp32", device)
    for name, n_bytes in copies.items():
        source = torch.ones(n_bytes, dtype=torch.uint8, device=device)
        tasks[name] = partial(torch.Tensor.copy_, torch.empty_like(source), source)
    turns = take_turns(
        tasks, n_rounds=n_rounds, min_seconds=0.0 if tiny else 0.002, device=device, progress=False
    )
    times = turns.wall if kind == "cuda" else turns.processor
    amounts = {"product": 2 * width**3, "far": 2 * copies["far"], "near": 2 * copies["near"]}
    roof = Roof(*(n / max(min(times[name].seconds), 1e-9) for name, n in amounts.items()))
    medians = {name: max(times["work", name].median, 1e-9) for name in work}
    return roof, {
        name: Point(each.intensity, each.flops / medians[name], medians[name]) for name, each in work.items()
    }
