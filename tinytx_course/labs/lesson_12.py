"""Lesson 12, the price of attention: how long a layer takes, and who waits for whom.

Shape letters: B rows of a batch, T tokens, D width.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn

from tinytx.attention import MultiHeadAttention
from tinytx_course.labs.ladder import KERNEL_SIZE, MIXERS, build_model, ladder_table
from tinytx_course.labs.layers import ConvolutionLayer, GRULayer, Recurrence, RecurrentLayer
from tinytx_course.labs.timing import Times, take_turns

__all__ = [
    "MIXERS",
    "ConvolutionLayer",
    "GRULayer",
    "RecurrentLayer",
    "build_model",
    "ladder_table",
    "path_length",
    "time_layers",
]

#: How to build a layer of width d.
LAYERS: dict[str, Callable[[int], nn.Module]] = {
    "attention": lambda d: MultiHeadAttention(d_model=d, n_heads=1),
    "RNN": RecurrentLayer,
    "GRU": GRULayer,
    "convolution": lambda d: ConvolutionLayer(d, KERNEL_SIZE),
    "RNN, in torch": lambda d: nn.RNN(d, d, batch_first=True),
    "GRU, in torch": lambda d: nn.GRU(d, d, batch_first=True),
}


@dataclass(frozen=True)
class LayerTimes:
    """Times of all layers, by name, one a size; sizes are (length n, width d), of which one varies."""

    sizes: tuple[tuple[int, int], ...]
    times: Mapping[str, tuple[Times, ...]]

    @property
    def scale(self) -> tuple[int, ...]:
        """The number that varies, length or width."""
        lengths, widths = zip(*self.sizes, strict=True)
        return widths if len(set(lengths)) == 1 else lengths

    def milliseconds(self, name: str) -> tuple[list[float], list[float], list[float]]:
        """Medians and quartiles of one layer: middle, low, high."""
        rows = [(1e3 * each.median, 1e3 * each.low, 1e3 * each.high) for each in self.times[name]]
        middle, low, high = map(list, zip(*rows, strict=True))
        return middle, low, high


def time_layers(sizes: Sequence[tuple[int, int]], n_rounds: int = 6) -> LayerTimes:
    """Time a forward pass of each layer at each size, in turn, one text at a time, on the CPU.

    Sizes are (length n, width d), of which one varies, in rising order. The clock is processor time, which
    sums over threads: let torch have one.
    """
    if (len({n for n, _ in sizes}) == 1) == (len({d for _, d in sizes}) == 1):
        raise ValueError(f"of length and width one must vary, got sizes {list(sizes)}")
    tasks = {
        (name, n, d): partial(make(d), torch.randn(1, n, d))
        for n, d in sizes
        for name, make in LAYERS.items()
    }
    with torch.inference_mode():
        times = take_turns(tasks, n_rounds=n_rounds, min_seconds=0.002, progress=False).processor
    return LayerTimes(tuple(sizes), {name: tuple(times[name, n, d] for n, d in sizes) for name in LAYERS})


def path_length(layer: nn.Module, seq_len: int, d_model: int) -> int:
    """Maximum path length: rounds until the last vector depends on the first token.

    In attention and convolution a round is one layer, applied again and again; in a recurrent layer it is one
    step, in which each state depends on the one before it. The dependence is a gradient that is not zero.

    Parameters
    ----------
    layer : Module
        Maps (B, T, D) to (B, T, D); it is left as it is.
    seq_len, d_model : int
        T and D.

    References
    ----------
    .. [1] Vaswani et al., arXiv 1706.03762, section 4, "maximum path length".

    Examples
    --------
    >>> path_length(ConvolutionLayer(d_model=4, kernel_size=5), seq_len=9, d_model=4)
    2
    """
    layer = copy.deepcopy(layer).double()  # so that what is small does not become zero
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1, seq_len, d_model, generator=generator, dtype=torch.float64).requires_grad_()
    pull = torch.randn(d_model, generator=generator, dtype=torch.float64)
    states = torch.zeros_like(x) if isinstance(layer, Recurrence) else x
    for n_rounds in range(1, seq_len + 1):
        if isinstance(layer, Recurrence):
            before = torch.cat([torch.zeros_like(states[:, :1]), states[:, :-1]], dim=1)
            states = layer.step(x, before)
        else:
            states = layer(states)
        (gradient,) = torch.autograd.grad(states[0, -1] @ pull, x, retain_graph=True)
        if gradient[0, 0].any():
            return n_rounds
    raise ValueError(f"the last token must depend on the first within {seq_len} rounds, got no gradient")
