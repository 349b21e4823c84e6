"""Work of the layers of a model, by formula, and the product that measures the speed of a machine.

Shape letters: B rows of a batch, T queries a row, S keys a row, N = B·T, D width, F feed-forward width, V
vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F

from tinytx.config import TransformerConfig

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
NUMBER = 4  # bytes of a float32
NORM_FLOPS = 7  # mean, difference, square, mean, division, factor, shift: for each number


def product(width: int, precision: str, device: torch.device) -> Callable[[], object]:
    """A task: one product of two square matrices. To be timed in turn with others."""
    a, b = (torch.randn(width, width, device=device).to(DTYPES[precision]) for _ in range(2))
    out = torch.empty_like(a)
    return lambda: torch.mm(a, b, out=out)


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
    batch_size, n_queries, n_keys : int
        B, T and S. In training T = S; generation has T = 1 and stores S keys and values.

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
        "projection": linear(d, d),
        "attention": Work(4 * b * t * s * d, NUMBER * (2 * n * d + 2 * b * s * d), attend),
        "feed-forward, up": linear(d, config.d_ff),
        "feed-forward, down": linear(config.d_ff, d),
        "output layer": linear(d, config.vocab_size),
        "residual sum": Work(n * d, NUMBER * 3 * n * d, partial(torch.add, x, y)),
        "norm": Work(
            NORM_FLOPS * n * d, NUMBER * (2 * n * d + 2 * d), partial(F.layer_norm, x, (d,), scale, scale)
        ),
    }
