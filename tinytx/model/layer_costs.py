"""What single layers cost that mix tokens: attention, recurrence, convolution, at equal width.

Shape letters: B rows of a batch, T tokens, D width, H heads, k kernel size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from tinytx.model.cost_terms import attention_activations, attention_flops
from tinytx.model.costs import BACKWARD
from tinytx.model.terms import ParameterTable, Term, make_table

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
