"""Attention with many heads: the module that a block is built from.

Shape letters: B rows of a batch, H heads, T queries, S keys, D model width, K head width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytx.model.fast import dropout as drop
from tinytx.model.masks import causal_mask, check_bool, combine_masks


def attention_weights(q: Tensor, k: Tensor, mask: Tensor | None = None, bias: Tensor | None = None) -> Tensor:
    """Say how much each query attends to each key.

    ``softmax(q kᵀ / sqrt(K) + bias)`` over the keys that the mask allows.

    Parameters
    ----------
    q : Tensor of shape (..., T, K)
        Queries.
    k : Tensor of shape (..., S, K)
        Keys.
    mask : Tensor, bool, broadcastable to (..., T, S), optional
        True = may attend.
    bias : Tensor of real numbers, broadcastable to (..., T, S), optional
        Added to the scores, such as that of `alibi_bias`.

    Returns
    -------
    Tensor of shape (..., T, S)
        Rows are non-negative and sum to 1; blocked weights are exactly 0. The row of a query that may see
        nothing is all zeros.

    Raises
    ------
    TypeError
        If the mask is not boolean, or the bias is.
    ValueError
        If mask or bias does not broadcast to the weights.

    Notes
    -----
    Dividing by ``sqrt(K)`` keeps the variance of the products at that of the entries of q and k, whatever the
    width, so that softmax stays away from its flat ends.

    References
    ----------
    .. [1] Vaswani et al., arXiv 1706.03762, section 3.2.1, equation 1.

    Examples
    --------
    Two keys score ln 3 and 0, so the weights stand as 3 to 1:

    >>> q, k = torch.tensor([[1.0]]), torch.tensor([[math.log(3)], [0.0]])
    >>> attention_weights(q, k)
    tensor([[0.7500, 0.2500]])
    >>> attention_weights(q, k, mask=torch.tensor([[False, True]]))
    tensor([[0., 1.]])
    """
    attn_scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (..., T, S)
    if bias is not None:
        _check_bias(bias, attn_scores.shape)
        attn_scores = attn_scores + bias
    if mask is None:
        return attn_scores.softmax(dim=-1)
    _check_mask(mask, attn_scores.shape)
    # The lowest finite number rather than -inf: a row without any allowed key would turn into NaN, and so
    # would its gradient. Such a row comes out uniform instead, and the second fill makes it zero.
    attn_scores = attn_scores.masked_fill(~mask, torch.finfo(attn_scores.dtype).min)
    return attn_scores.softmax(dim=-1).masked_fill(~mask, 0.0)


def attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, bias: Tensor | None = None
) -> Tensor:
    """Give each query the mean of the values, weighted by how much it attends to their keys.

    ``softmax(q kᵀ / sqrt(K) + bias) v``, written out: the weights are formed.

    Parameters
    ----------
    q : Tensor of shape (..., T, K)
        Queries.
    k : Tensor of shape (..., S, K)
        Keys.
    v : Tensor of shape (..., S, K)
        Values, one for each key.
    mask : Tensor, bool, broadcastable to (..., T, S), optional
        True = may attend.
    bias : Tensor of real numbers, broadcastable to (..., T, S), optional
        Added to the scores.

    Returns
    -------
    Tensor of shape (..., T, K)
        The context of each query; zeros for a query that may see nothing.

    Raises
    ------
    TypeError, ValueError
        As in `attention_weights`.

    References
    ----------
    .. [1] Vaswani et al., arXiv 1706.03762, section 3.2.1, equation 1.

    Examples
    --------
    Queries of zero attend evenly to all they may see, so each context is a plain mean:

    >>> q, k, v = torch.zeros(3, 1), torch.zeros(3, 1), torch.tensor([[1.0], [3.0], [8.0]])
    >>> attention(q, k, v).flatten()
    tensor([4., 4., 4.])
    >>> attention(q, k, v, causal_mask(3)).flatten()
    tensor([1., 2., 4.])
    """
    return attention_weights(q, k, mask, bias) @ v


def fused_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    is_causal: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    """Compute what `attention` computes by torch's fused kernels, which need not keep the weights.

    Parameters
    ----------
    q, k, v, mask, bias
        As in `attention`.
    is_causal : bool
        True adds the causal mask; without `mask` and `bias` it need not even be formed. Needs T = S.
    dropout : float
        Probability with which a weight is dropped.

    Returns
    -------
    Tensor of shape (..., T, K)
        Equal to ``attention(q, k, v, mask, bias)`` up to rounding, where nothing is dropped.

    Raises
    ------
    TypeError, ValueError
        As in `attention_weights`; also if `is_causal` and T differs from S.

    Notes
    -----
    What a kernel returns for a query that may see nothing depends on the kernel. Here such a query is shown
    everything and its context is set to zero afterwards, on every device and with finite gradients.
    """
    if is_causal and q.shape[-2] != k.shape[-2]:
        raise ValueError(f"is_causal needs as many keys as queries, got T={q.shape[-2]}, S={k.shape[-2]}")
    if mask is not None:
        _check_mask(mask, (*q.shape[:-1], k.shape[-2]))
    if bias is not None:
        _check_bias(bias, (*q.shape[:-1], k.shape[-2]))
    if _products_are_faster(q, k, bias):
        return _attention_by_products(q, k, v, mask, bias, is_causal, dropout)
    if is_causal and (mask is not None or bias is not None):  # the kernels take either a mask or is_causal
        triangle = causal_mask(q.shape[-2], device=q.device)
        mask = triangle if mask is None else mask & triangle  # (..., T, S)
    if mask is None:
        added = None if bias is None else _for_kernel(bias, q)
        return F.scaled_dot_product_attention(
            q, k, v, attn_mask=added, dropout_p=dropout, is_causal=is_causal
        )
    mask = torch.atleast_2d(mask)  # the kernels want an axis of queries
    blind = ~mask.any(dim=-1, keepdim=True)  # (..., T or 1, 1), True = this query may see nothing
    shown = mask | blind
    if bias is not None:
        shown = _for_kernel(bias.masked_fill(~shown, -torch.inf), q)
    context = F.scaled_dot_product_attention(q, k, v, attn_mask=shown, dropout_p=dropout)
    return context.masked_fill(blind, 0.0)


def _for_kernel(bias: Tensor, q: Tensor) -> Tensor:
    """Give a bias what the fast kernels ask for: the dtype of the queries and all their axes."""
    return bias.to(q.dtype)[(None,) * (q.dim() - bias.dim())]


# Keys up to which the products beat the fused kernel in bfloat16 on a CPU, forward and backward; with a
# bias, up to which its sum with the scores keeps digits enough.
SHORT_ON_CPU, SHORT_WITH_BIAS = 1024, 256


def _products_are_faster(q: Tensor, k: Tensor, bias: Tensor | None) -> bool:
    """Say whether to avoid the fused kernel: in bfloat16 on a CPU it is slow for few keys."""
    short = SHORT_ON_CPU if bias is None else SHORT_WITH_BIAS
    return q.device.type == "cpu" and q.dtype == torch.bfloat16 and k.shape[-2] <= short


def _attention_by_products(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    bias: Tensor | None,
    is_causal: bool,
    dropout: float,
) -> Tensor:
    """Compute `fused_attention` by two plain products, softmax and masking in place."""
    if is_causal and mask is None and bias is None:
        attn_weights = _causal_scores(q, k).softmax(dim=-1)
        return (drop(attn_weights, dropout) if dropout > 0.0 else attn_weights) @ v  # (..., T, K)
    attn_scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)  # (..., T, S)
    if bias is not None:
        attn_scores = attn_scores.add_(bias)
    if is_causal:
        triangle = causal_mask(q.shape[-2], device=q.device)
        mask = triangle if mask is None else mask & triangle
    blind = None
    if mask is not None:
        blocked = ~mask
        attn_scores = attn_scores.masked_fill_(blocked, torch.finfo(attn_scores.dtype).min)
        blind = blocked.all(dim=-1, keepdim=True)  # (..., T or 1, 1)
    attn_weights = attn_scores.softmax(dim=-1, dtype=attn_scores.dtype)
    if dropout > 0.0:
        attn_weights = drop(attn_weights, dropout)
    context = attn_weights @ v  # (..., T, K)
    return context if blind is None or not blind.any() else context.masked_fill(blind, 0.0)


def _causal_scores(q: Tensor, k: Tensor) -> Tensor:
    """Scaled scores, with -inf where a key comes after the query: one pass for scale, product and mask."""
    seq_len, width = q.shape[-2:]
    later = torch.full((seq_len, seq_len), -torch.inf, dtype=q.dtype, device=q.device).triu_(1)
    left, right = q.reshape(-1, seq_len, width), k.reshape(-1, seq_len, width)  # (N, T, K)
    attn_scores = torch.baddbmm(later, left, right.transpose(1, 2), alpha=width**-0.5)  # (N, T, T)
    return attn_scores.view(*q.shape[:-1], seq_len)


def _check_mask(mask: Tensor, shape: tuple[int, ...]) -> None:
    check_bool(mask, "mask")
    _check_broadcast(mask, "mask", shape)


def _check_bias(bias: Tensor, shape: tuple[int, ...]) -> None:
    if not bias.is_floating_point():
        raise TypeError(f"bias must hold real numbers, got {bias.dtype}")
    _check_broadcast(bias, "bias", shape)


def _check_broadcast(given: Tensor, name: str, shape: tuple[int, ...]) -> None:
    from_the_right = zip(reversed(given.shape), reversed(shape), strict=False)
    if given.dim() > len(shape) or any(got not in (1, expected) for got, expected in from_the_right):
        raise ValueError(f"{name} must broadcast to {tuple(shape)}, got shape {tuple(given.shape)}")


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
