"""Layers that mix tokens other than by attention.

Shape letters: B rows of a batch, T tokens, D width.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Recurrence(nn.Module):
    """A recurrent layer: it reads token by token, and returns its state after each.

    `in_proj` and `hidden_proj` hold `n_gates` projections from D to D each. The former is computed for all
    tokens at once; each state has to wait for the one before it.
    """

    def __init__(self, d_model: int, n_gates: int, hidden_bias: bool) -> None:
        super().__init__()
        if d_model < 1:
            raise ValueError(f"d_model must be at least 1, got {d_model}")
        self.in_proj = nn.Linear(d_model, n_gates * d_model)
        self.hidden_proj = nn.Linear(d_model, n_gates * d_model, bias=hidden_bias)

    def forward(self, x: Tensor) -> Tensor:
        """Return the state after each token of x, (B, T, D); before the first it is zero."""
        state, states = x.new_zeros(x.shape[0], x.shape[2]), []  # (B, D)
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
    """The vanilla recurrent layer: ``h_t = tanh(x_t W + h_{t-1} U + b)``.

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
    """The gated recurrent unit: its gates can leave the state unchanged, and so remember for longer.

    Reset gate ``r = sigmoid(x W_r + h U_r)``, update gate ``z = sigmoid(x W_z + h U_z)``, candidate
    ``n = tanh(x W_n + r * (h U_n))``, new state ``(1 - z) * n + z * h``. Each projection has a bias.

    Parameters
    ----------
    d_model : int
        D, the width of tokens and of the state.

    Notes
    -----
    As in `torch.nn.GRU`, r acts after the projection U_n and not before it as in the paper; the rows of
    `in_proj` and `hidden_proj` are in the order r, z, n, as in torch.

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
    """A causal convolution over time: each token sees itself and the ``k - 1`` before it.

    ``y_t = [x_{t-k+1}, ..., x_t] W + b``, with the same weights everywhere and zeros before the first token.

    Parameters
    ----------
    d_model : int
        D.
    kernel_size : int
        k, how many tokens are seen at once.

    Notes
    -----
    Equal to `torch.nn.Conv1d` on an input with k - 1 zeros before it, which has the axes (B, D, T) and a
    weight (D, D, k); here `proj` has the same numbers as one matrix for a whole window.

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
            sizes = f"d_model={d_model}, kernel_size={kernel_size}"
            raise ValueError(f"d_model and kernel_size must be at least 1, got {sizes}")
        self.kernel_size = kernel_size
        self.proj = nn.Linear(kernel_size * d_model, d_model)

    def forward(self, x: Tensor) -> Tensor:
        """Map each window of x, (B, T, D), to one vector."""
        padded = F.pad(x, (0, 0, self.kernel_size - 1, 0))  # (B, k - 1 + T, D)
        shifted = [padded[:, j : j + x.shape[1]] for j in range(self.kernel_size)]  # k times (B, T, D)
        return self.proj(torch.cat(shifted, dim=-1))  # (B, T, k D) -> (B, T, D)
