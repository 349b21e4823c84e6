"""Attention with many heads: the module that a block is built from.

Shape letters: B rows of a batch, H heads, T queries, S keys, D model width, K head width.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from tinytx.model.attention import attention_weights, fused_attention
from tinytx.model.masks import causal_mask, combine_masks


@dataclass(frozen=True, eq=False)
class AttentionTrace:
    """What attention computed, and how.

    Attributes
    ----------
    output : Tensor of shape (B, T, D)
        What the module returns.
    attn_weights : Tensor of shape (B, H, T, S)
        The weights that led to it; rows sum to 1, or are zero for a query that may see nothing.
    """

    output: Tensor
    attn_weights: Tensor


class MultiHeadAttention(nn.Module):
    """Let every token gather from others what it needs, in several ways at once.

    ``concat(head_1, ..., head_H) W_O`` with ``head_h = attention(x W_Q^h, memory W_K^h, memory W_V^h)``. The
    matrices of the H heads lie side by side in `q_proj`, `k_proj` and `v_proj`, so that the number of
    parameters, ``4 (D² + D)`` with biases, does not depend on H.

    Parameters
    ----------
    d_model : int
        D, the width of tokens that come in and go out.
    n_heads : int
        H, a divisor of `d_model`.
    bias : bool
        Whether the four projections add a bias.
    dropout : float
        Probability with which an attention weight is dropped in training.
    positions : torch.nn.Module, optional
        Tells self-attention how far apart tokens stand: called with the queries and keys of all heads, it
        returns what to compare in their place and a bias for the scores, or None. `RotaryPositions` and
        `AlibiPositions` do so.

    Raises
    ------
    ValueError
        If `n_heads` does not divide `d_model`.

    Notes
    -----
    `torch.nn.MultiheadAttention` stores the first three projections in one matrix, ``in_proj_weight``, and
    reads True in a mask as "blocked".

    References
    ----------
    .. [1] Vaswani et al., arXiv 1706.03762, section 3.2.2.

    Examples
    --------
    >>> import torch
    >>> attn = MultiHeadAttention(d_model=6, n_heads=3)
    >>> x = torch.randn(2, 5, 6)
    >>> attn(x).shape, attn.weights(x).shape
    (torch.Size([2, 5, 6]), torch.Size([2, 3, 5, 5]))
    """

    def __init__(
        self,
        *,
        d_model: int,
        n_heads: int,
        bias: bool = True,
        dropout: float = 0.0,
        positions: nn.Module | None = None,
    ) -> None:
        super().__init__()
        if n_heads < 1 or d_model % n_heads:
            raise ValueError(f"n_heads must divide d_model, got d_model={d_model}, n_heads={n_heads}")
        self.n_heads = n_heads
        self.dropout = dropout
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.out_proj = nn.Linear(d_model, d_model, bias=bias)
        self.positions = positions

    def forward(
        self, x: Tensor, memory: Tensor | None = None, mask: Tensor | None = None, *, is_causal: bool = False
    ) -> Tensor:
        """Attend by the fused path.

        Parameters
        ----------
        x : Tensor of shape (B, T, D)
            Queries come from here.
        memory : Tensor of shape (B, S, D), optional
            Keys and values come from here; from `x` where not given (self-attention).
        mask : Tensor, bool, broadcastable to (B, H, T, S), optional
            True = may attend.
        is_causal : bool
            True adds the causal mask without forming it where it can.

        Returns
        -------
        Tensor of shape (B, T, D)

        Raises
        ------
        TypeError, ValueError
            As in `fused_attention`; also if a memory is given where `positions` act, which tell distances
            within one sequence.
        """
        q, k, v, bias = self._project(x, memory)
        dropout = self.dropout if self.training else 0.0
        context = fused_attention(q, k, v, mask, bias, is_causal=is_causal, dropout=dropout)  # (B, H, T, K)
        return self.out_proj(_merge_heads(context))

    def trace(
        self, x: Tensor, memory: Tensor | None = None, mask: Tensor | None = None, *, is_causal: bool = False
    ) -> AttentionTrace:
        """Attend by the plain path and keep the weights; nothing is dropped. Parameters as in `forward`."""
        q, k, v, bias = self._project(x, memory)
        if is_causal:
            mask = combine_masks(mask, causal_mask(x.shape[1], device=x.device))
        attn_weights = attention_weights(q, k, mask, bias)  # (B, H, T, S)
        return AttentionTrace(self.out_proj(_merge_heads(attn_weights @ v)), attn_weights)

    def weights(
        self, x: Tensor, memory: Tensor | None = None, mask: Tensor | None = None, *, is_causal: bool = False
    ) -> Tensor:
        """Return the attention weights alone, (B, H, T, S). Parameters as in `forward`."""
        return self.trace(x, memory, mask, is_causal=is_causal).attn_weights

    def keys_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of a memory, (B, H, S, K) each."""
        k, v = self.k_proj(memory), self.v_proj(memory)  # (B, S, D)
        return _split_heads(k, self.n_heads), _split_heads(v, self.n_heads)

    def _project(self, x: Tensor, memory: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """Queries, keys and values of all heads, and the bias of the scores."""
        if memory is not None and self.positions is not None:
            shape = tuple(memory.shape)
            raise ValueError(f"memory must be left out where positions act in attention, got shape {shape}")
        q = _split_heads(self.q_proj(x), self.n_heads)  # (B, H, T, K)
        k, v = self.keys_values(x if memory is None else memory)
        bias = None
        if self.positions is not None:
            q, k, bias = self.positions(q, k)  # bias broadcastable to (B, H, T, S)
        return q, k, v, bias


def _split_heads(x: Tensor, n_heads: int) -> Tensor:
    x = x.unflatten(-1, (n_heads, -1))  # (B, T, D) -> (B, T, H, K)
    return x.transpose(1, 2)  # (B, H, T, K)


def _merge_heads(context: Tensor) -> Tensor:
    context = context.transpose(1, 2)  # (B, H, T, K) -> (B, T, H, K)
    return context.flatten(2)  # (B, T, D)
