"""Scaled dot-product attention: the formula, and the multi-head module.

Shape letters: B batch size, H heads, G heads of keys and values, T queries, S keys, D model width,
K head width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import combinations

import torch
from torch import Tensor, nn

from tinytx import fast
from tinytx.kv_cache import KeyValues
from tinytx.masks import Mask, agree, check_bool, dtype_of
from tinytx.settings import require


def attention_weights(q: Tensor, k: Tensor, mask: Mask = None, bias: Tensor | None = None) -> Tensor:
    """Compute how much each query attends to each key.

    ``softmax(q kᵀ / sqrt(K) + bias)`` over the keys that the mask allows.

    Parameters
    ----------
    q, k : Tensor of shape (..., T, K) and (..., S, K)
        Queries and keys.
    mask : Tensor, bool, broadcastable to (..., T, S), optional
        True = may attend.
    bias : Tensor of real numbers, broadcastable to (..., T, S), optional
        Added to the scores, such as that of `alibi_bias`.

    Returns
    -------
    Tensor of shape (..., T, S)
        Rows are non-negative and sum to 1; masked weights are exactly 0. The row of a query that may attend
        to no key is all zeros.

    Raises
    ------
    TypeError
        If q, k or bias does not hold real numbers, q and k differ in dtype, or the mask is not boolean.
    ValueError
        If q and k do not fit, K is 0, or mask or bias does not broadcast to the weights.

    Notes
    -----
    Scores have to be finite in every row, also with the bias: one of -inf for all keys gives NaN.

    Where the entries of q and k are independent, of mean 0 and variance 1, dividing by ``sqrt(K)`` holds the
    variance of the scores at 1, whatever the width, so that softmax does not saturate.

    References
    ----------
    .. [1] Vaswani et al., arXiv 1706.03762, section 3.2.1, equation 1.

    Examples
    --------
    Two keys score ln 3 and 0, so the ratio of the weights is 3 to 1:

    >>> q, k = torch.tensor([[1.0]]), torch.tensor([[math.log(3)], [0.0]])
    >>> attention_weights(q, k)
    tensor([[0.7500, 0.2500]])
    >>> attention_weights(q, k, mask=torch.tensor([[False, True]]))
    tensor([[0., 1.]])
    """
    _check(q, k, k, mask, bias)
    attn_scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (..., T, S)
    if bias is not None:
        attn_scores = attn_scores + bias.to(attn_scores.dtype)
    if mask is None:
        return attn_scores.softmax(dim=-1)
    # The lowest finite number rather than -inf: a row without any allowed key would turn into NaN, and so
    # would its gradient. Such a row comes out uniform instead, and the second fill makes it zero.
    attn_scores = attn_scores.masked_fill(~mask, torch.finfo(attn_scores.dtype).min)
    return attn_scores.softmax(dim=-1).masked_fill(~mask, 0.0)


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Mask = None, bias: Tensor | None = None) -> Tensor:
    """Average the values, weighted by how much each query attends to their keys.

    ``softmax(q kᵀ / sqrt(K) + bias) v``, written out: the attention weights are formed.

    Parameters
    ----------
    q, k, mask, bias
        As in `attention_weights`.
    v : Tensor of shape (..., S, K)
        Values, one for each key.

    Returns
    -------
    Tensor of shape (..., T, K)
        The context of each query; zeros for a query that may attend to no key.

    Raises
    ------
    TypeError, ValueError
        As in `attention_weights`; also if `v` does not hold one value of the dtype of `q` for each key.

    Notes
    -----
    Values have to be finite, also those of masked keys: their weight is 0, but 0 times infinity is NaN.

    References
    ----------
    .. [1] Vaswani et al., arXiv 1706.03762, section 3.2.1, equation 1.

    Examples
    --------
    Queries of zero attend evenly to all allowed keys, so each context is a plain mean:

    >>> q, k, v = torch.zeros(3, 1), torch.zeros(3, 1), torch.tensor([[1.0], [3.0], [8.0]])
    >>> attention(q, k, v).flatten()
    tensor([4., 4., 4.])
    >>> from tinytx.masks import causal_mask
    >>> attention(q, k, v, causal_mask(3)).flatten()
    tensor([1., 2., 4.])
    """
    _check(q, k, v, mask, bias)
    return attention_weights(q, k, mask, bias) @ v


def fused_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Mask = None, bias: Tensor | None = None, *, dropout: float = 0.0
) -> Tensor:
    """Compute `attention` by the fastest way that the device has, often without forming the weights.

    Parameters and errors as in `attention`; each attention weight is dropped with probability `dropout`.
    """
    _check(q, k, v, mask, bias)
    context = fast.attend(q, k, v, mask, bias, dropout)
    return fast.dropout(attention_weights(q, k, mask, bias), dropout) @ v if context is None else context


def _check(q: Tensor, k: Tensor, v: Tensor, mask: Mask, bias: Tensor | None) -> None:
    """Refuse operands that do not fit; reads types and shapes, no data."""
    given = {"q": q, "k": k, "v": v}
    for name, x in given.items():
        if not (isinstance(x, Tensor) and x.is_floating_point()):
            raise TypeError(f"{name} must be a tensor of real numbers, got {dtype_of(x)}")
        if x.dim() < 2:
            raise ValueError(f"{name} must have at least 2 axes, got shape {tuple(x.shape)}")
        if x.dtype != q.dtype and not torch.is_autocast_enabled(q.device.type):
            raise TypeError(f"{name} must have the dtype of q, {q.dtype}, got {x.dtype}")
    rule, batch = "", q.shape[:-2]
    if q.shape[-1] != k.shape[-1] or not q.shape[-1]:
        rule = "q and k must have one width K of at least 1"
    elif v.shape[-2] != k.shape[-2]:
        rule = "v must hold one value for each key"
    elif not batch == k.shape[:-2] == v.shape[:-2]:  # where they are not equal, they may broadcast
        if not all(agree(x.shape[:-2], y.shape[:-2]) for x, y in combinations(given.values(), 2)):
            rule = "q, k and v must agree in the axes before the last two"
        else:
            batch = torch.broadcast_shapes(batch, k.shape[:-2])  # type: ignore[no-untyped-call]
    if rule:
        got = ", ".join(f"{name} of shape {tuple(x.shape)}" for name, x in given.items())
        raise ValueError(f"{rule}, got {got}")
    if mask is not None:
        check_bool(mask, "mask")
    if bias is not None and not (isinstance(bias, Tensor) and bias.is_floating_point()):
        raise TypeError(f"bias must be a tensor of real numbers, got {dtype_of(bias)}")
    shape = (*batch, q.shape[-2], k.shape[-2])  # of the weights
    for name, added in (("mask", mask), ("bias", bias)):
        if added is not None:
            from_the_right = zip(reversed(added.shape), reversed(shape), strict=False)
            if added.dim() > len(shape) or any(got not in (1, expected) for got, expected in from_the_right):
                raise ValueError(f"{name} must broadcast to {shape}, got shape {tuple(added.shape)}")


class MultiHeadAttention(nn.Module):
    """Attend in several heads at once, each with projections of its own.

    ``concat(head_1, ..., head_H) W_O`` with ``head_h = attention(x W_Q^h, memory W_K^h, memory W_V^h)``. The
    matrices of the H heads are the columns of `q_proj`, `k_proj` and `v_proj`, so that the number of
    parameters, ``4 (D² + D)`` with biases, does not depend on H.

    In grouped-query attention there are only G heads of keys and values, each for H / G heads of queries in a
    row: `k_proj` and `v_proj` are G / H as large, and so is what generation has to store.

    Parameters
    ----------
    d_model, n_heads : int
        D, and H, which divides it.
    n_kv_heads : int, optional
        G, which divides H; H where not given. 1 is multi-query attention.
    bias : bool
        Whether the four projections add a bias.
    dropout : float
        Probability with which an attention weight is dropped in training.
    positions : torch.nn.Module, optional
        Relative positions for self-attention: called with the queries and keys of all heads and the number
        of cached tokens before them, it returns what to compare instead and a bias for the scores, or None.
        `RotaryPositions` and `AlibiPositions` do so.

    Notes
    -----
    `torch.nn.MultiheadAttention` stores the first three projections in one matrix, ``in_proj_weight``, and
    reads True in a mask as "blocked".

    References
    ----------
    .. [1] Vaswani et al., arXiv 1706.03762, section 3.2.2.
    .. [2] Ainslie et al., "GQA: Training Generalized Multi-Query Transformer Models from Multi-Head
       Checkpoints", arXiv 2305.13245, section 2.2.

    Examples
    --------
    >>> from tinytx.masks import causal_mask
    >>> attn = MultiHeadAttention(d_model=6, n_heads=3)
    >>> attn(torch.randn(2, 5, 6), mask=causal_mask(5)).shape
    torch.Size([2, 5, 6])
    """

    def __init__(
        self,
        *,
        d_model: int,
        n_heads: int,
        n_kv_heads: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        positions: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        got = f"d_model={d_model}, n_heads={n_heads}"
        require(n_heads >= 1 and d_model % n_heads == 0, "n_heads must divide d_model", got)
        fits = self.n_kv_heads >= 1 and n_heads % self.n_kv_heads == 0
        require(fits, "n_kv_heads must divide n_heads", f"n_heads={n_heads}, n_kv_heads={n_kv_heads}")
        require(0 <= dropout < 1, "dropout must lie in [0, 1)", dropout)
        self.d_model, self.n_heads, self.dropout, self.positions = d_model, n_heads, dropout, positions
        kv_width = d_model // n_heads * self.n_kv_heads  # G K
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, kv_width, bias=bias)
        self.v_proj = nn.Linear(d_model, kv_width, bias=bias)
        self.out_proj = nn.Linear(d_model, d_model, bias=bias)
        self._record: Callable[[Tensor], None] | None = None  # see `record_attention`

    def forward(
        self, x: Tensor, memory: Tensor | None = None, mask: Mask = None, cache: KeyValues | None = None
    ) -> Tensor:
        """Attend from every token of x.

        Parameters
        ----------
        x : Tensor of shape (B, T, D)
            Queries are projected from here.
        memory : Tensor of shape (B, S, D), optional
            Keys and values are projected from here; from `x` where not given (self-attention).
        mask : Tensor, bool, broadcastable to (B, H, T, S), optional
            True = may attend. Shapes are read from the right: two axes are always (T, S) and three (H, T, S),
            also where B equals T or H. A padding mask (B, S) goes in as ``[:, None, None, :]``.
        cache : KeyValues, optional
            Of earlier calls. In self-attention x holds the tokens that follow the cached ones: their keys
            and values are appended, and S counts all. Those of a memory are stored at the first call and not
            computed again. It is filled without gradients.

        Returns
        -------
        Tensor of shape (B, T, D)

        Raises
        ------
        TypeError, ValueError
            As in `attention_weights`; also if x or memory has another shape, or a memory is given together
            with relative `positions`, which are distances within one sequence.
        """
        for name, given in (("x", x), ("memory", memory)):
            if given is not None and (given.dim() != 3 or given.shape[-1] != self.d_model):
                rule = f"{name} must have three axes, the last of width {self.d_model}"
                raise ValueError(f"{rule}, got shape {tuple(given.shape)}")
        if memory is not None and self.positions is not None:
            shape = tuple(memory.shape)
            raise ValueError(f"memory must be left out where positions act in attention, got shape {shape}")
        q = split_heads(self.q_proj(x), self.n_heads)  # (B, H, T, K)
        bias, n_cached = None, 0 if cache is None else cache.length
        if cache is not None and memory is not None and n_cached:
            k, v = cache.all()  # (B, G, S, K)
        else:
            source = x if memory is None else memory
            k = split_heads(self.k_proj(source), self.n_kv_heads)  # (B, G, S, K)
            v = split_heads(self.v_proj(source), self.n_kv_heads)
            if self.positions is not None:  # keys are stored as they are compared
                q, k, bias = self.positions(q, k, n_cached)  # (H, T, S)
            if cache is not None:
                k, v = cache.append(k, v)
        k, v = share_heads(k, self.n_heads), share_heads(v, self.n_heads)  # (B, H, S, K)
        if self._record is None:
            context = fused_attention(q, k, v, mask, bias, dropout=self.dropout if self.training else 0.0)
        else:
            attn_weights = attention_weights(q, k, mask, bias)  # (B, H, T, S)
            self._record(attn_weights)
            context = attn_weights @ v  # (B, H, T, K)
        output: Tensor = self.out_proj(merge_heads(context))
        return output


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """Give each head its share of the width: (B, T, D) -> (B, H, T, K)."""
    return x.view(*x.shape[:2], n_heads, x.shape[2] // n_heads).transpose(1, 2)


def share_heads(x: Tensor, n_heads: int) -> Tensor:
    """Repeat each head of keys or values for the queries that share it: (B, G, S, K) -> (B, H, S, K).

    Examples
    --------
    >>> share_heads(torch.tensor([[[[5.0]], [[8.0]]]]), n_heads=4).flatten()
    tensor([5., 5., 8., 8.])
    """
    n_kv_heads = x.shape[1]
    return x if n_kv_heads == n_heads else x.repeat_interleave(n_heads // n_kv_heads, dim=1)


def merge_heads(context: Tensor) -> Tensor:
    """Concatenate the heads: (B, H, T, K) -> (B, T, D)."""
    return context.transpose(1, 2).flatten(2)


@contextmanager
def record_attention(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Collect the attention weights of a model while its ordinary forward runs.

    Yields
    ------
    dict of str to Tensor of shape (B, H, T, S)
        The weights of each attention module by its name, such as "body.blocks.0.attn", in the order in which
        they ran; those of the last call where there are several.

    Notes
    -----
    Within the block the weights are formed by `attention_weights`, the outputs are computed from them, and no
    weight is dropped. They belong to the graph, so that gradients flow through them.

    Examples
    --------
    >>> attn = MultiHeadAttention(d_model=6, n_heads=3)
    >>> with record_attention(attn) as recorded:
    ...     output = attn(torch.randn(2, 5, 6))
    >>> [(name, attn_weights.shape) for name, attn_weights in recorded.items()]
    [('', torch.Size([2, 3, 5, 5]))]
    """
    modules = {name: each for name, each in model.named_modules() if isinstance(each, MultiHeadAttention)}
    recorded: dict[str, Tensor] = {}
    before = {name: module._record for name, module in modules.items()}
    try:
        for name, module in modules.items():
            module._record = partial(recorded.__setitem__, name)
        yield recorded
    finally:
        for name, module in modules.items():
            module._record = before[name]
