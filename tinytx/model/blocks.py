"""One block of a transformer: attention between tokens, then a feed-forward network on each token."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn

from tinytx.model.alibi import AlibiPositions
from tinytx.model.config import TransformerConfig
from tinytx.model.dropout import Dropout
from tinytx.model.multihead import MultiHeadAttention
from tinytx.model.rotary import RotaryPositions


class FeedForward(nn.Module):
    """Think about each token on its own.

    ``act(x W_up + b_up) W_down + b_down``, the same for every token.

    Parameters
    ----------
    config : TransformerConfig
        Read for `d_model`, `d_ff`, `activation`, `bias` and `dropout` (after the activation).

    References
    ----------
    .. [1] Vaswani et al., arXiv 1706.03762, section 3.3, equation 2.
    .. [2] Hendrycks and Gimpel, "Gaussian Error Linear Units", arXiv 1606.08415, section 2.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.up_proj = nn.Linear(config.d_model, config.d_ff, bias=config.bias)
        self.down_proj = nn.Linear(config.d_ff, config.d_model, bias=config.bias)
        self.dropout = Dropout(config.dropout)
        self.activation = activation(config)

    def forward(self, x: Tensor) -> Tensor:
        """Map each vector of x, (B, T, D), to a vector of the same width."""
        x = self.activation(self.up_proj(x))  # (B, T, F)
        return self.down_proj(self.dropout(x))  # (B, T, D)


def activation(config: TransformerConfig) -> nn.Module:
    """The function between two linear maps.

    Examples
    --------
    GELU, its approximation, and ``x sigmoid(x)`` differ little:

    >>> import torch
    >>> sizes = dict(vocab_size=2, d_model=2, n_heads=1, n_layers=1, d_ff=2)
    >>> for name in ("gelu", "gelu-tanh", "silu", "relu"):
    ...     print(f"{activation(TransformerConfig(**sizes, activation=name))(torch.tensor(1.0)):.4f}")
    0.8413
    0.8412
    0.7311
    1.0000
    """
    if config.activation == "relu":
        return nn.ReLU()
    if config.activation == "silu":
        return nn.SiLU()
    return nn.GELU(approximate="tanh" if config.activation == "gelu-tanh" else "none")


def self_attention(config: TransformerConfig) -> MultiHeadAttention:
    """Build the self-attention of a block, with its positions where they act inside attention."""
    positions: RotaryPositions | AlibiPositions | None = None
    if config.positions == "rotary":
        positions = RotaryPositions(config.max_len, config.head_dim)
    elif config.positions == "alibi":
        positions = AlibiPositions(config.n_heads)
    return MultiHeadAttention(
        d_model=config.d_model,
        n_heads=config.n_heads,
        bias=config.bias,
        dropout=config.dropout,
        positions=positions,
    )


@dataclass(frozen=True, eq=False)
class BlockTrace:
    """What one block computed, and whom its tokens looked at.

    Attributes
    ----------
    hidden : Tensor of shape (B, T, D)
        What the block returns.
    attn_weights : Tensor of shape (B, H, T, T)
        The weights of its self-attention.
    """

    hidden: Tensor
    attn_weights: Tensor


class Block(nn.Module):
    """Self-attention and feed-forward, each added to what came in and normalised.

    With `norm` "first", ``x + f(norm(x))``: what comes in reaches the output untouched. With `norm` "last",
    as in the paper, ``norm(x + f(x))``.

    Parameters
    ----------
    config : TransformerConfig
        The settings of the whole transformer; vocabulary and number of layers play no part here.

    Notes
    -----
    Equal to `torch.nn.TransformerEncoderLayer` with ``norm_first=(config.norm == "first")`` and
    ``batch_first=True``.

    References
    ----------
    .. [1] Vaswani et al., arXiv 1706.03762, sections 3.1 and 5.4.
    .. [2] Xiong et al., arXiv 2002.04745, section 3, on the place of the norm.

    Examples
    --------
    >>> import torch
    >>> from tinytx.model.config import PRESETS
    >>> block = Block(PRESETS["tiny"])
    >>> block(torch.randn(2, 5, 64)).shape
    torch.Size([2, 5, 64])
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.norm_first = config.norm == "first"
        self.attn_norm = nn.LayerNorm(config.d_model, eps=config.norm_eps, bias=config.bias)
        self.attn = self_attention(config)
        self.ff_norm = nn.LayerNorm(config.d_model, eps=config.norm_eps, bias=config.bias)
        self.ff = FeedForward(config)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None, *, is_causal: bool = False) -> Tensor:
        """Send a sequence through the block.

        Parameters
        ----------
        x : Tensor of shape (B, T, D)
            One vector a token.
        mask : Tensor, bool, broadcastable to (B, H, T, T), optional
            True = may attend.
        is_causal : bool
            True adds the causal mask.

        Returns
        -------
        Tensor of shape (B, T, D)
        """
        x = self._add(x, self.attn_norm, lambda h: self.attn(h, mask=mask, is_causal=is_causal))
        return self._add(x, self.ff_norm, self.ff)

    def trace(self, x: Tensor, mask: Tensor | None = None, *, is_causal: bool = False) -> BlockTrace:
        """Do the same by the plain path and keep the attention weights. Parameters as in `forward`."""
        seen = self.attn.trace(self.attn_norm(x) if self.norm_first else x, mask=mask, is_causal=is_causal)
        x = self._add(x, self.attn_norm, lambda h: seen.output)
        return BlockTrace(self._add(x, self.ff_norm, self.ff), seen.attn_weights)

    def _add(self, x: Tensor, norm: nn.Module, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        if self.norm_first:
            return x + self.dropout(sublayer(norm(x)))
        return norm(x + self.dropout(sublayer(x)))
