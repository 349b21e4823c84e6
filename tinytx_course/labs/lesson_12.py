"""Who waits for whom: chains of operations, and how news of one token reaches another.

Shape letters: B rows of a batch, T tokens, D width.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from tinytx_course.labs.layers import Recurrence


def longest_chain(output: Tensor) -> int:
    """Count the operations on the longest chain in which each waits for the one before.

    Parameters
    ----------
    output : Tensor
        Computed by torch from something that needs a gradient.

    Returns
    -------
    int
        Nodes of the autograd graph on its longest path, leaves left out. A product of matrices is one
        operation, however large; rearrangements without arithmetic count as well. How the chain *grows* says
        how much of a computation cannot be done at once.

    Raises
    ------
    ValueError
        If the tensor was not computed from anything that needs a gradient.

    Examples
    --------
    >>> x = torch.ones(3, requires_grad=True)
    >>> longest_chain(x.exp().sin() + x)
    3
    """
    if output.grad_fn is None:
        raise ValueError("output must be computed from something that needs a gradient, got no graph")
    lengths: dict[torch.autograd.graph.Node, int] = {}
    waiting = [output.grad_fn]
    while waiting:
        node = waiting[-1]
        before = [each for each, _ in node.next_functions if each is not None]
        unknown = [each for each in before if each not in lengths]
        if unknown:
            waiting += unknown
            continue
        is_leaf = node.name() == "torch::autograd::AccumulateGrad"
        lengths[node] = 0 if is_leaf else 1 + max((lengths[each] for each in before), default=0)
        waiting.pop()
    return lengths[output.grad_fn]


def path_length(layer: nn.Module, seq_len: int, d_model: int) -> int:
    """Count how many rounds news needs from the first token to the last.

    In one round every token hears what the layer lets it hear: in attention and convolution the round is one
    layer, applied again and again; in a recurrent layer it is one step, in which each state hears the one
    before it. After each round the gradient of the last vector with respect to the first token tells whether
    news has arrived.

    Parameters
    ----------
    layer : Module
        Maps (B, T, D) to (B, T, D); it is left as it is.
    seq_len : int
        T.
    d_model : int
        D.

    Returns
    -------
    int
        Rounds until the gradient is not exactly zero.

    Raises
    ------
    ValueError
        If after T rounds it still is.

    References
    ----------
    .. [1] Vaswani et al., arXiv 1706.03762, section 4, "maximum path length".

    Examples
    --------
    >>> from tinytx.model import ConvolutionLayer
    >>> path_length(ConvolutionLayer(d_model=4, kernel_size=5), seq_len=9, d_model=4)
    4
    """
    layer = copy.deepcopy(layer).double()  # so that what is small does not become zero
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1, seq_len, d_model, generator=generator, dtype=torch.float64).requires_grad_()
    pull = torch.randn(d_model, generator=generator, dtype=torch.float64)
    told = torch.zeros_like(x) if isinstance(layer, Recurrence) else x
    for n_rounds in range(1, seq_len + 1):
        if isinstance(layer, Recurrence):
            before = torch.cat([torch.zeros_like(told[:, :1]), told[:, :-1]], dim=1)  # what each hears
            told = layer.step(x, before)
        else:
            told = layer(told)
        (gradient,) = torch.autograd.grad(told[0, -1] @ pull, x, retain_graph=True)
        if gradient[0, 0].any():
            return n_rounds
    raise ValueError(f"news must arrive within seq_len={seq_len} rounds, got none from this layer")


def gradient_sizes(layer: nn.Module, x: Tensor) -> Tensor:
    """Say how strongly the last vector depends on each token.

    ``||d y_T / d x_t||``, the Frobenius norm of the D by D matrix of derivatives, averaged over the rows.

    Parameters
    ----------
    layer : Module
        Maps (B, T, D) to (B, T, D).
    x : Tensor of shape (B, T, D)
        The tokens.

    Returns
    -------
    Tensor of shape (T,)

    Examples
    --------
    >>> gradient_sizes(nn.Linear(2, 2, bias=False), torch.ones(1, 3, 2))[:2]   # tokens that are not the last
    tensor([0., 0.])
    """
    x = x.detach().requires_grad_()
    last = layer(x)[:, -1].sum(dim=0)  # (D,); rows do not mix, so that each keeps its own derivatives
    squares = x.new_zeros(x.shape[:2])  # (B, T)
    for number in last:
        (gradient,) = torch.autograd.grad(number, x, retain_graph=True)
        squares += gradient.square().sum(dim=-1)
    return squares.sqrt().mean(dim=0)
