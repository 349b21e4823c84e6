"""The clock on layers that mix tokens: attention, recurrence, convolution, over length and over width."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn

from tinytx.model import ConvolutionLayer, GRULayer, MultiHeadAttention, RecurrentLayer, layer_cost
from tinytx.model.layer_costs import LayerKind
from tinytx.training.engine.timing import Slope, Times, exponent, exponent_of_times, time_in_turn

KERNEL_SIZE = 3

# name: what it costs by formula, how to build one of width d
LAYERS: dict[str, tuple[LayerKind, Callable[[int], nn.Module]]] = {
    "attention": ("attention", lambda d: MultiHeadAttention(d_model=d, n_heads=1)),
    "vanilla recurrent": ("recurrent", RecurrentLayer),
    "GRU": ("gru", GRULayer),
    "GRU, torch's loop": ("gru", lambda d: nn.GRU(d, d, batch_first=True)),
    "convolution, k = 3": ("convolution", lambda d: ConvolutionLayer(d, KERNEL_SIZE)),
}


@dataclass(frozen=True)
class Exponent:
    """How cost grows with size, as a power.

    Attributes
    ----------
    paper : float
        Slope of the operations on logarithmic axes, by formula, over the same sizes.
    measured : Slope
        Slope of the times, with its interval.
    """

    paper: float
    measured: Slope


@dataclass(frozen=True)
class LayerTimes:
    """Times of all layers at sizes of which one number varies.

    Attributes
    ----------
    sizes : tuple of (int, int)
        Length n and width d.
    times : mapping of str to tuple of Times
        By name of the layer, one a size.
    """

    sizes: tuple[tuple[int, int], ...]
    times: Mapping[str, tuple[Times, ...]]

    @property
    def scale(self) -> tuple[int, ...]:
        """The number that varies, length or width."""
        lengths, widths = zip(*self.sizes, strict=True)
        return widths if len(set(lengths)) == 1 else lengths

    def medians(self, name: str) -> list[float]:
        """Seconds of one layer, one a size."""
        return [each.median for each in self.times[name]]

    def milliseconds(self, name: str) -> tuple[list[float], list[float], list[float]]:
        """Medians and quartiles of one layer: middle, low, high."""
        times = self.times[name]
        return (
            [1e3 * each.median for each in times],
            [1e3 * each.low for each in times],
            [1e3 * each.high for each in times],
        )

    def flops(self, name: str) -> list[int]:
        """Operations of one layer by formula, one a size."""
        kind = LAYERS[name][0]
        costs = (layer_cost(kind, d_model=d, seq_len=n, kernel_size=KERNEL_SIZE) for n, d in self.sizes)
        return [cost.flops_forward for cost in costs]

    def exponent(self, name: str, n_last: int) -> Exponent:
        """Fit a power to the `n_last` largest sizes, where overhead weighs least."""
        scale, flops = self.scale[-n_last:], self.flops(name)[-n_last:]
        return Exponent(exponent(scale, flops), exponent_of_times(scale, self.times[name][-n_last:]))

    def rate(self, name: str) -> float:
        """Operations a second at the largest size."""
        return self.flops(name)[-1] / self.medians(name)[-1]


def time_layers(sizes: Sequence[tuple[int, int]], n_rounds: int = 6) -> LayerTimes:
    """Time a forward pass of each layer at each size, all in turn, one text at a time, on the CPU.

    The clock is that of the process, which stands still while other programs have the core. Let torch have
    one thread: the time of several would be added up.

    Parameters
    ----------
    sizes : sequence of (int, int)
        Length n and width d; one of the two varies, in rising order.
    n_rounds : int
        How often each is measured.

    Raises
    ------
    ValueError
        If both numbers vary or neither does.
    """
    if (len({n for n, _ in sizes}) == 1) == (len({d for _, d in sizes}) == 1):
        raise ValueError(f"of length and width one must vary, got sizes {list(sizes)}")
    tasks = {
        (name, n, d): partial(make(d), torch.randn(1, n, d))
        for n, d in sizes
        for name, (_, make) in LAYERS.items()
    }
    with torch.inference_mode():
        times = time_in_turn(tasks, n_rounds=n_rounds, clock=time.process_time)
    return LayerTimes(tuple(sizes), {name: tuple(times[name, n, d] for n, d in sizes) for name in LAYERS})
