"""The body of a transformer: from token ids to one vector a token.

Shape letters: B rows of a batch, T tokens, D model width, H heads, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from tinytx.model.blocks import Block
from tinytx.model.config import TransformerConfig
from tinytx.model.dropout import Dropout
from tinytx.model.masks import causal_mask, combine_masks, over_keys
from tinytx.model.positions import LearnedPositions, SinusoidalPositions

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
