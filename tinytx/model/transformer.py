"""Whole transformers: a body, and a head that reads its vectors.

Body and head are two modules, so that the same body serves to predict the next token and to classify a text.
Shape letters: B rows of a batch, T tokens, D model width, V vocabulary, C classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, cast, get_args

import torch
from torch import Tensor, nn

from tinytx.model.attention import MultiHeadAttention
from tinytx.model.config import TransformerConfig
from tinytx.model.fast import Dropout
from tinytx.model.masks import causal_mask, combine_masks, over_keys
from tinytx.model.positions import AlibiPositions, LearnedPositions, RotaryPositions, SinusoidalPositions


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


# Spread of a language model's first logits: they start nearly equal, so the first loss is close to ln V.
FIRST_LOGIT_STD = 0.25


@dataclass(frozen=True, eq=False)
class Trace:
    """All that a body computed on its way up.

    Attributes
    ----------
    hidden : tuple of n_layers + 1 Tensors of shape (B, T, D)
        The embeddings, then what each block returns; the last one, after the final norm where there is one,
        is what the body returns.
    attn_weights : tuple of n_layers Tensors of shape (B, H, T, T)
        How much token t attends to token s in each head: rows sum to 1, blocked weights are exactly 0.
    """

    hidden: tuple[Tensor, ...]
    attn_weights: tuple[Tensor, ...]


class TransformerBody(nn.Module):
    """Embeddings, positions and a stack of blocks: from token ids to one vector a token.

    Parameters
    ----------
    config : TransformerConfig
        All settings.

    Notes
    -----
    With `norm` "first" a last norm, `final_norm`, follows the stack; with `norm` "last" each block ends in
    one already. Linear maps start from Glorot's uniform distribution with biases of zero; with `norm`
    "first" those that write into the residual stream start smaller by ``sqrt(2 n_layers)``, so that the
    stream does not grow with depth. Embeddings start with vectors of length about 1, which scaling takes to
    about ``sqrt(D)``, the size of the positions; tied to a head they start smaller (`LanguageModel`).
    Segments, where there are any, start like embeddings that are not scaled.

    References
    ----------
    .. [1] Vaswani et al., arXiv 1706.03762, sections 3.1 and 3.4.
    .. [2] Radford et al., "Language Models are Unsupervised Multitask Learners", 2019, section 2.3, for the
       smaller start of residual layers and the last norm.

    Examples
    --------
    >>> from tinytx.model.config import PRESETS
    >>> body = TransformerBody(PRESETS["tiny"])
    >>> token_ids = torch.tensor([[5, 8, 2]])
    >>> body(token_ids).shape
    torch.Size([1, 3, 64])
    >>> body.trace(token_ids).attn_weights[0][0, 0, 0]   # the first token sees only itself
    tensor([1., 0., 0.], grad_fn=<SelectBackward0>)
    """

    block_class: type[nn.Module] = Block
    n_sublayers = 2  # that write into the residual stream, in each block

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.token_embed = nn.Embedding(config.vocab_size, config.d_model)
        self.pos_embed = _positions(config)
        self.segment_embed = nn.Embedding(config.n_segments, config.d_model) if config.n_segments else None
        self.embed_norm = _norm(config) if config.embed_norm else nn.Identity()
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(self.block_class(config) for _ in range(config.n_layers))
        self.final_norm = _norm(config) if config.norm == "first" else nn.Identity()
        self._draw_weights()

    def _draw_weights(self) -> None:
        """Start embeddings and linear maps as the Notes say; norms start as torch has them."""
        config = self.config
        embed_std = config.d_model**-0.5 * (FIRST_LOGIT_STD if config.tie_embeddings else 1.0)
        nn.init.normal_(self.token_embed.weight, std=embed_std)
        if self.segment_embed is not None:
            nn.init.normal_(self.segment_embed.weight, std=config.d_model**-0.5)
        gain = (self.n_sublayers * config.n_layers) ** -0.5 if config.norm == "first" else 1.0
        for name, module in self.blocks.named_modules():
            if isinstance(module, nn.Linear):
                residual = name.endswith(("out_proj", "down_proj"))
                nn.init.xavier_uniform_(module.weight, gain=gain if residual else 1.0)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def forward(
        self, token_ids: Tensor, padding_mask: Tensor | None = None, segment_ids: Tensor | None = None
    ) -> Tensor:
        """Turn tokens into vectors that know their context.

        Parameters
        ----------
        token_ids : Tensor of shape (B, T), integer
            In 0..V-1, with padding on the right, T at most `max_len`.
        padding_mask : Tensor of shape (B, T), bool, optional
            True = a real token. A causal body needs none: real tokens never see what follows them, and
            without it the faster kernels apply.
        segment_ids : Tensor of shape (B, T), integer, optional
            Which sentence each token belongs to, in 0..n_segments-1; where not given, all to the first.

        Returns
        -------
        Tensor of shape (B, T, D)
            What stands at padding means nothing.

        Raises
        ------
        TypeError
            If the ids are not integers or the mask is not boolean.
        ValueError
            If there are more than `max_len` ids, an id lies outside the vocabulary (looked at on the CPU
            only: elsewhere looking would cost a synchronisation), a shape does not fit, or segments are given
            to a body that has none.
        """
        x, mask, is_causal = self._start(token_ids, padding_mask, segment_ids)
        for block in self.blocks:
            x = block(x, mask, is_causal=is_causal)
        return self.final_norm(x)

    def trace(
        self, token_ids: Tensor, padding_mask: Tensor | None = None, segment_ids: Tensor | None = None
    ) -> Trace:
        """Do the same by the plain path and keep every layer. Parameters as in `forward`.

        Returns
        -------
        Trace
            ``trace.hidden[-1]`` equals what `forward` returns up to rounding, where nothing is dropped out.
        """
        x, mask, is_causal = self._start(token_ids, padding_mask, segment_ids)
        hidden, attn_weights = [x], []
        for block in cast(Iterable[Block], self.blocks):
            seen = block.trace(hidden[-1], mask, is_causal=is_causal)
            hidden.append(seen.hidden)
            attn_weights.append(seen.attn_weights)
        hidden[-1] = self.final_norm(hidden[-1])
        return Trace(tuple(hidden), tuple(attn_weights))

    def _start(
        self, token_ids: Tensor, padding_mask: Tensor | None, segment_ids: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None, bool]:
        """Check the input; return the embeddings, the mask, and whether the kernel makes the mask causal."""
        self._check(token_ids, padding_mask, segment_ids)
        x = self.embed(token_ids, segment_ids=segment_ids)  # (B, T, D)
        if padding_mask is None:
            return x, None, self.config.causal
        causal = causal_mask(token_ids.shape[1], device=x.device) if self.config.causal else None
        return x, combine_masks(over_keys(padding_mask), causal), False  # mask (B, 1, 1 or T, T)

    def embed(self, token_ids: Tensor, start: int = 0, segment_ids: Tensor | None = None) -> Tensor:
        """Embed tokens, (B, T), of which the first stands at place `start`: (B, T, D), unchecked."""
        x = self.token_embed(token_ids)  # (B, T, D)
        if self.config.scale_embeddings:
            x = x * math.sqrt(self.config.d_model)
        if start and not isinstance(self.pos_embed, nn.Identity):
            x = self.pos_embed(x, start)
        else:  # any module that maps x may stand here
            x = self.pos_embed(x)
        if self.segment_embed is not None:
            first = self.segment_embed.weight[0]  # (D,)
            x = x + (first if segment_ids is None else self.segment_embed(segment_ids))
        return self.dropout(self.embed_norm(x))

    def _check(
        self, token_ids: Tensor, padding_mask: Tensor | None, segment_ids: Tensor | None = None
    ) -> None:
        config, shape = self.config, tuple(token_ids.shape)
        if token_ids.is_floating_point() or token_ids.dtype == torch.bool:
            raise TypeError(f"token_ids must be integers, got {token_ids.dtype}")
        if token_ids.dim() != 2 or 0 in shape:
            raise ValueError(f"token_ids must have shape (B, T) with B and T at least 1, got {shape}")
        if shape[1] > config.max_len:
            raise ValueError(f"a row must hold at most max_len={config.max_len} token ids, got {shape[1]}")
        if padding_mask is not None and padding_mask.shape != token_ids.shape:
            mask_shape = tuple(padding_mask.shape)
            raise ValueError(f"padding_mask must have the shape of token_ids, {shape}, got {mask_shape}")
        if segment_ids is not None:
            self._check_segments(segment_ids, shape)
        if token_ids.device.type == "cpu" and not torch.compiler.is_compiling():
            low, high = token_ids.aminmax()
            if low < 0 or high >= config.vocab_size:
                raise ValueError(f"token_ids must lie in 0..{config.vocab_size - 1}, got {low} to {high}")

    def _check_segments(self, segment_ids: Tensor, shape: tuple[int, ...]) -> None:
        n_segments = self.config.n_segments
        if not n_segments:
            raise ValueError("segment_ids need a body with n_segments of 1 or more, got n_segments=0")
        if tuple(segment_ids.shape) != shape:
            got = tuple(segment_ids.shape)
            raise ValueError(f"segment_ids must have the shape of token_ids, {shape}, got {got}")
        if segment_ids.device.type == "cpu" and not torch.compiler.is_compiling():
            low, high = segment_ids.aminmax()
            if low < 0 or high >= n_segments:
                raise ValueError(f"segment_ids must lie in 0..{n_segments - 1}, got {low} to {high}")


def _norm(config: TransformerConfig) -> nn.LayerNorm:
    return nn.LayerNorm(config.d_model, eps=config.norm_eps, bias=config.bias)


def _positions(config: TransformerConfig) -> nn.Module:
    if config.positions == "sinusoidal":
        return SinusoidalPositions(config.max_len, config.d_model)
    if config.positions == "learned":
        return LearnedPositions(config.max_len, config.d_model, config.position_offset)
    return nn.Identity()  # rotary and ALiBi act inside attention


Pooling = Literal["mean", "last", "first"]


class LanguageModel(nn.Module):
    """A body, and a head that scores every token of the vocabulary at every place.

    ``logits = body(token_ids) W + b``. With a causal body, ``logits[:, t]`` scores what may follow token t,
    and ``softmax(logits[:, t])`` is the distribution of the next token.

    Parameters
    ----------
    config : TransformerConfig
        All settings; with `tie_embeddings` the matrix W is that of the token embeddings.

    Attributes
    ----------
    body : TransformerBody
    head : torch.nn.Linear
        From D to V. Body and head may be called apart, for instance to score a few places only.

    Notes
    -----
    Weights start such that first logits are small (standard deviation ``FIRST_LOGIT_STD``) and the first loss
    is close to ln V, that of a guess.

    References
    ----------
    .. [1] Vaswani et al., arXiv 1706.03762, section 3.4.

    Examples
    --------
    >>> from tinytx.model.config import PRESETS
    >>> model = LanguageModel(PRESETS["tiny"])
    >>> model(torch.tensor([[5, 8, 2]])).shape
    torch.Size([1, 3, 1000])
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.body = TransformerBody(config)
        self.head = nn.Linear(config.d_model, config.vocab_size, bias=config.lm_bias)
        if config.tie_embeddings:
            self.head.weight = self.body.token_embed.weight
        else:
            nn.init.normal_(self.head.weight, std=FIRST_LOGIT_STD * config.d_model**-0.5)
        if config.lm_bias:
            nn.init.zeros_(self.head.bias)

    @property
    def config(self) -> TransformerConfig:
        """The settings of the body."""
        return self.body.config

    def forward(self, token_ids: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Score the vocabulary at every place: (B, T, V). Parameters as in `TransformerBody.forward`."""
        return self.head(self.body(token_ids, padding_mask))  # (B, T, V)


class Classifier(nn.Module):
    """A body, one vector drawn from all its tokens, and a head that scores the classes.

    ``logits = pool(body(token_ids)) W + b``

    Parameters
    ----------
    config : TransformerConfig
        All settings of the body.
    n_classes : int
        C, at least 1.
    pooling : {"mean", "last", "first"}
        Over real tokens only: their mean, the last of them, or the first. In a causal body the first token
        has seen nothing but itself.
    dropout : float, optional
        Before the head; that of the configuration where not given.
    body : TransformerBody, optional
        Read instead of a new one. It is not copied: training the classifier trains it.

    Raises
    ------
    ValueError
        If `pooling` or `n_classes` is not as above.

    References
    ----------
    .. [1] Radford et al., "Improving Language Understanding by Generative Pre-Training", 2018, section 3.2.

    Examples
    --------
    Pretrain a language model, then keep its body:

    >>> from tinytx.model.config import PRESETS
    >>> pretrained = LanguageModel(PRESETS["tiny"])
    >>> model = Classifier.from_body(pretrained.body, n_classes=2)
    >>> model(torch.tensor([[5, 8, 2]])).shape
    torch.Size([1, 2])
    """

    def __init__(
        self,
        config: TransformerConfig,
        n_classes: int = 2,
        pooling: Pooling = "mean",
        dropout: float | None = None,
        *,
        body: TransformerBody | None = None,
    ) -> None:
        super().__init__()
        if pooling not in get_args(Pooling):
            raise ValueError(f"pooling must be one of {', '.join(get_args(Pooling))}, got {pooling!r}")
        if n_classes < 1:
            raise ValueError(f"n_classes must be at least 1, got {n_classes}")
        self.pooling: Pooling = pooling
        self.body = TransformerBody(config) if body is None else body
        self.dropout = nn.Dropout(config.dropout if dropout is None else dropout)
        self.head = nn.Linear(config.d_model, n_classes, bias=config.bias)
        nn.init.xavier_uniform_(self.head.weight)
        if config.bias:
            nn.init.zeros_(self.head.bias)

    @classmethod
    def from_body(
        cls,
        body: TransformerBody,
        n_classes: int = 2,
        pooling: Pooling = "mean",
        dropout: float | None = None,
    ) -> Classifier:
        """Put a new head on a body, for instance a pretrained one, which keeps its weights and its mask."""
        return cls(body.config, n_classes, pooling, dropout, body=body)

    @property
    def config(self) -> TransformerConfig:
        """The settings of the body."""
        return self.body.config

    def forward(self, token_ids: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Score the classes of each row: (B, C). Parameters as in `TransformerBody.forward`."""
        pooled = pool(self.body(token_ids, padding_mask), padding_mask, self.pooling)  # (B, D)
        return self.head(self.dropout(pooled))  # (B, C)


def pool(hidden: Tensor, padding_mask: Tensor | None, pooling: Pooling) -> Tensor:
    """Draw one vector from each row of a padded batch.

    Parameters
    ----------
    hidden : Tensor of shape (B, T, D)
        One vector a token.
    padding_mask : Tensor of shape (B, T), bool, or None
        True = a real token; None: all are.
    pooling : {"mean", "last", "first"}
        Over real tokens.

    Returns
    -------
    Tensor of shape (B, D)
        Zeros (mean) or the first vector for a row without any real token.

    Examples
    --------
    >>> hidden = torch.tensor([[[1.0], [3.0], [8.0]]])
    >>> real = torch.tensor([[True, True, False]])
    >>> [pool(hidden, real, how).item() for how in ("mean", "last", "first")]
    [2.0, 3.0, 1.0]
    """
    if padding_mask is None:
        padding_mask = torch.ones(hidden.shape[:2], dtype=torch.bool, device=hidden.device)
    if pooling == "mean":
        real = padding_mask[:, :, None]  # (B, T, 1)
        return hidden.masked_fill(~real, 0.0).sum(dim=1) / real.sum(dim=1).clamp(min=1)  # (B, D)
    places = torch.arange(hidden.shape[1], device=hidden.device)
    if pooling == "last":
        chosen = places.masked_fill(~padding_mask, 0).amax(dim=1)  # (B,)
    else:
        chosen = places.masked_fill(~padding_mask, hidden.shape[1]).amin(dim=1) % hidden.shape[1]  # (B,)
    return hidden[torch.arange(hidden.shape[0], device=hidden.device), chosen]  # (B, D)
