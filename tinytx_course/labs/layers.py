"""The clock on layers that mix tokens: attention, recurrence, convolution, over length and over width."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from tinytx.model.attention import MultiHeadAttention
from tinytx.model.costs import BACKWARD, attention_activations, attention_flops
from tinytx.model.counting import ParameterTable, Term, make_table
from tinytx.training.timing import Slope, Times, exponent, exponent_of_times, time_in_turn


class Recurrence(nn.Module):
    """A layer that reads token by token and keeps one vector, its state.

    The states of all tokens are what it returns. What a token contributes is worked out for all tokens at
    once, by `in_proj`; the states have to wait for one another.

    Parameters
    ----------
    d_model : int
        D, the width of tokens and of the state.
    n_gates : int
        How many maps from D to D stand side by side in `in_proj` and in `hidden_proj`.
    hidden_bias : bool
        Whether `hidden_proj` adds a bias of its own.

    Raises
    ------
    ValueError
        If `d_model` is smaller than 1.
    """

    def __init__(self, d_model: int, n_gates: int, hidden_bias: bool) -> None:
        super().__init__()
        if d_model < 1:
            raise ValueError(f"d_model must be at least 1, got {d_model}")
        self.in_proj = nn.Linear(d_model, n_gates * d_model)
        self.hidden_proj = nn.Linear(d_model, n_gates * d_model, bias=hidden_bias)

    def forward(self, x: Tensor, state: Tensor | None = None) -> Tensor:
        """Read a sequence from left to right.

        Parameters
        ----------
        x : Tensor of shape (B, T, D)
            The tokens.
        state : Tensor of shape (B, D), optional
            What was read before; zeros where not given.

        Returns
        -------
        Tensor of shape (B, T, D)
            The state after each token; the last one can be handed to the next call.
        """
        state = x.new_zeros(x.shape[0], x.shape[2]) if state is None else state  # (B, D)
        states = []
        for token in self.in_proj(x).unbind(1):  # (B, n_gates D)
            state = self._next(token, state)
            states.append(state)
        return torch.stack(states, dim=1)  # (B, T, D)

    def step(self, x: Tensor, state: Tensor) -> Tensor:
        """Return the state after one token; x, state and result have shape (..., D)."""
        return self._next(self.in_proj(x), state)

    def _next(self, token: Tensor, state: Tensor) -> Tensor:
        raise NotImplementedError


class RecurrentLayer(Recurrence):
    """The vanilla recurrent layer.

    ``h_t = tanh(x_t W + h_{t-1} U + b)``

    Parameters
    ----------
    d_model : int
        D, the width of tokens and of the state.

    Notes
    -----
    `torch.nn.RNN` is the same layer with two biases, of which only the sum matters.

    References
    ----------
    .. [1] Elman, "Finding Structure in Time", Cognitive Science 14 (1990), 179-211.

    Examples
    --------
    >>> RecurrentLayer(d_model=4)(torch.randn(2, 5, 4)).shape
    torch.Size([2, 5, 4])
    """

    def __init__(self, d_model: int) -> None:
        super().__init__(d_model, n_gates=1, hidden_bias=False)

    def _next(self, token: Tensor, state: Tensor) -> Tensor:
        return torch.tanh(token + self.hidden_proj(state))


class GRULayer(Recurrence):
    """The gated recurrent unit: it can keep its state as it is, and so remember for longer.

    ``r = sigmoid(x W_r + h U_r)`` says how much of the old state the proposal sees, ``z = sigmoid(x W_z + h
    U_z)`` how much of it stays, ``n = tanh(x W_n + r * (h U_n))`` is the proposal, and the new state is
    ``(1 - z) * n + z * h``. Each map has a bias.

    Parameters
    ----------
    d_model : int
        D, the width of tokens and of the state.

    Notes
    -----
    As in `torch.nn.GRU`, r acts after the map U_n and not before it as in the paper; the rows of `in_proj`
    and `hidden_proj` stand in the order r, z, n, as torch has them.

    References
    ----------
    .. [1] Cho et al., arXiv 1406.1078, section 2.3.

    Examples
    --------
    >>> GRULayer(d_model=4)(torch.randn(2, 5, 4)).shape
    torch.Size([2, 5, 4])
    """

    def __init__(self, d_model: int) -> None:
        super().__init__(d_model, n_gates=3, hidden_bias=True)

    def _next(self, token: Tensor, state: Tensor) -> Tensor:
        reset_in, keep_in, new_in = token.chunk(3, dim=-1)  # (..., D) each
        reset_hidden, keep_hidden, new_hidden = self.hidden_proj(state).chunk(3, dim=-1)
        reset = torch.sigmoid(reset_in + reset_hidden)
        keep = torch.sigmoid(keep_in + keep_hidden)
        proposal = torch.tanh(new_in + reset * new_hidden)
        return proposal + keep * (state - proposal)


class ConvolutionLayer(nn.Module):
    """A convolution over time: each token sees itself and its neighbours, through the same map everywhere.

    ``y_t = [x_{t-l}, ..., x_{t-l+k-1}] W + b`` with ``l = (k - 1) // 2``; beyond the ends stand zeros.

    Parameters
    ----------
    d_model : int
        D.
    kernel_size : int
        k, how many tokens are seen at once.

    Raises
    ------
    ValueError
        If `d_model` or `kernel_size` is smaller than 1.

    Notes
    -----
    Equal to `torch.nn.Conv1d` with ``padding="same"``, which wants the axes (B, D, T) and keeps its weight as
    (D, D, k); here `proj` holds the same numbers as one matrix for a whole window.

    References
    ----------
    .. [1] Gehring et al., "Convolutional Sequence to Sequence Learning", arXiv 1705.03122, section 3.2.

    Examples
    --------
    >>> ConvolutionLayer(d_model=4, kernel_size=3)(torch.randn(2, 5, 4)).shape
    torch.Size([2, 5, 4])
    """

    def __init__(self, d_model: int, kernel_size: int = 3) -> None:
        super().__init__()
        if d_model < 1 or kernel_size < 1:
            raise ValueError(
                "d_model and kernel_size must be at least 1, "
                f"got d_model={d_model}, kernel_size={kernel_size}"
            )
        self.kernel_size = kernel_size
        self.proj = nn.Linear(kernel_size * d_model, d_model)

    def forward(self, x: Tensor) -> Tensor:
        """Map each window of x, (B, T, D), to one vector."""
        left = (self.kernel_size - 1) // 2
        padded = F.pad(x, (0, 0, left, self.kernel_size - 1 - left))  # (B, T + k - 1, D)
        shifted = [padded[:, j : j + x.shape[1]] for j in range(self.kernel_size)]  # k times (B, T, D)
        return self.proj(torch.cat(shifted, dim=-1))  # (B, T, k D) -> (B, T, D)


def count_flops(task: Callable[[], object]) -> int:
    """Count the floating-point operations of the matrix products and convolutions in a task.

    Parameters
    ----------
    task : callable without arguments
        Run once; a backward pass in it is counted too.

    Returns
    -------
    int
        A multiply-add counts as two.

    Notes
    -----
    Fused attention on a CPU is unknown to the counter and counts 0: run it within `record_attention`.

    Examples
    --------
    >>> count_flops(lambda: torch.ones(2, 3) @ torch.ones(3, 5)) == 2 * 2 * 3 * 5
    True
    """
    with FlopCounterMode(display=False) as counter:
        task()
    return counter.get_total_flops()


def count_saved_bytes(task: Callable[[], object], ignore: Iterable[Tensor] = ()) -> int:
    """Count the bytes that autograd keeps for the backward pass of a task.

    Parameters
    ----------
    task : callable without arguments
        Run once, forward only.
    ignore : iterable of Tensor
        Not to be counted, neither they nor views of them: the parameters of the model.

    Returns
    -------
    int
        Memory that several saved tensors share counts once.

    Examples
    --------
    The product of x and y needs both for its gradient, the sum needs neither:

    >>> x, y = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    >>> count_saved_bytes(lambda: x * y), count_saved_bytes(lambda: x + y)
    (24, 0)
    """
    ignored = {tensor.untyped_storage().data_ptr() for tensor in ignore}
    sizes: dict[int, int] = {}
    alive: list[Tensor] = []  # memory that is freed may be used again, and would be taken for the same

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in ignored:
            sizes[storage.data_ptr()] = storage.nbytes()
        alive.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        task()
    return sum(sizes.values())


LayerKind = Literal["attention", "recurrent", "gru", "convolution"]


@dataclass(frozen=True)
class LayerCost:
    """Operations, memory, waiting and distance of one layer.

    Attributes
    ----------
    parameters : ParameterTable
        In numbers.
    flops : ParameterTable
        Operations of one forward pass; a multiply-add counts as two.
    activations : ParameterTable
        Bytes kept for the backward pass.
    n_waits : int
        How many steps must follow one another, whatever the machine does at once.
    path_length : int
        How many steps or layers news needs from the first token to the last; 0 where it never arrives.
    """

    parameters: ParameterTable
    flops: ParameterTable
    activations: ParameterTable
    n_waits: int
    path_length: int

    @property
    def flops_forward(self) -> int:
        """Operations of one forward pass."""
        return self.flops.total

    @property
    def flops_training(self) -> int:
        """Operations of a forward and a backward pass, where the input needs a gradient too."""
        return (1 + BACKWARD) * self.flops.total


def layer_cost(
    kind: LayerKind,
    *,
    d_model: int,
    seq_len: int,
    batch_size: int = 1,
    kernel_size: int = 3,
    n_heads: int = 1,
    bytes_per_number: int = 4,
) -> LayerCost:
    """Work out what one layer costs.

    Forward operations for one row: attention ``8 n d² + 4 n² d``, its four maps and its pairs of tokens; a
    vanilla recurrent layer ``4 n d²``, a GRU ``12 n d²``, a convolution ``2 k n d²``.

    Parameters
    ----------
    kind : {"attention", "recurrent", "gru", "convolution"}
        `MultiHeadAttention` by its fused path, without mask; `RecurrentLayer`; `GRULayer`;
        `ConvolutionLayer`.
    d_model, seq_len, batch_size : int
        D, T (the n of the formulas), B.
    kernel_size : int
        k, read for a convolution.
    n_heads : int
        H, read for attention; it changes what is kept a little, and nothing else.
    bytes_per_number : int
        4 for float32.

    Returns
    -------
    LayerCost

    Raises
    ------
    ValueError
        If the kind is unknown or a size is smaller than 1.

    Notes
    -----
    Activations of the GRU are those of its own code here; a fused kernel may keep fewer.

    References
    ----------
    .. [1] Vaswani et al., arXiv 1706.03762, section 4 and table 1, which counts for attention the pairs only.

    Examples
    --------
    The whole of attention meets a GRU at n = d, since 8 + 4 = 12:

    >>> sizes = {"d_model": 5, "seq_len": 5}
    >>> layer_cost("attention", **sizes).flops_forward, layer_cost("gru", **sizes).flops_forward
    (1500, 1500)
    """
    if kind not in get_args(LayerKind):
        raise ValueError(f"kind must be one of {', '.join(get_args(LayerKind))}, got {kind!r}")
    sizes = {"B": batch_size, "T": seq_len, "D": d_model, "H": n_heads, "k": kernel_size}
    for letter, size in sizes.items():
        if size < 1:
            raise ValueError(f"sizes must be at least 1, got {letter}={size}")
    recurrent = kind in ("recurrent", "gru")
    n_waits = seq_len if recurrent else 1
    return LayerCost(
        parameters=make_table(_parameters(kind), sizes, {}),
        flops=make_table(_flops(kind), sizes, {}),
        activations=make_table(_activations(kind, bytes_per_number), sizes, {}),
        n_waits=n_waits,
        path_length=_layers_across(seq_len, kernel_size) if kind == "convolution" else n_waits,
    )


def _layers_across(seq_len: int, kernel_size: int) -> int:
    """Layers of a convolution until the last token has news of the first; 0 where it looks back nowhere."""
    back = (kernel_size - 1) // 2
    return -(-(seq_len - 1) // back) if back else 0


def _parameters(kind: LayerKind) -> Iterator[Term]:
    if kind == "attention":
        yield Term("layer", "attention", "four maps", "4·(D·D + D)")
    elif kind == "recurrent":
        yield Term("layer", "recurrent", "in_proj", "D·D + D")
        yield Term("layer", "recurrent", "hidden_proj", "D·D")
    elif kind == "gru":
        yield Term("layer", "gru", "in_proj", "3·(D·D + D)")
        yield Term("layer", "gru", "hidden_proj", "3·(D·D + D)")
    else:
        yield Term("layer", "convolution", "proj", "k·D·D + D")


def _flops(kind: LayerKind) -> Iterator[Term]:
    if kind == "attention":
        yield from attention_flops("layer")
    elif kind == "convolution":
        yield Term("layer", "convolution", "proj", "2·k·B·T·D·D")
    else:
        one_map = "2·B·T·D·D" if kind == "recurrent" else "3·2·B·T·D·D"
        yield Term("layer", kind, "in_proj", one_map)
        yield Term("layer", kind, "hidden_proj", one_map)


def _activations(kind: LayerKind, w: int) -> Iterator[Term]:
    if kind == "attention":
        yield from attention_activations("layer", w, "fused", causal=False)
    elif kind == "convolution":
        yield Term("layer", "convolution", "windows", f"{w}·k·B·T·D")
    else:
        yield Term("layer", kind, "into in_proj", f"{w}·B·T·D")
        if kind == "recurrent":  # the zeros it starts from, and every state
            yield Term("layer", kind, "states", f"{w}·B·T·D + {w}·B·D")
        else:  # two gates, the proposal, its distance to the state, and the three that hidden_proj gave
            yield Term("layer", kind, "states before", f"{w}·B·T·D")
            yield Term("layer", kind, "gates", f"7·{w}·B·T·D")


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
