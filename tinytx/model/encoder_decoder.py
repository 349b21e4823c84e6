"""An encoder-decoder: reads one sequence, predicts another.

Shape letters: B rows of a batch, S source tokens, T target tokens, D model width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import cast

from torch import Tensor, nn

from tinytx.model.attention import MultiHeadAttention
from tinytx.model.config import TransformerConfig
from tinytx.model.fast import Dropout
from tinytx.model.masks import over_keys
from tinytx.model.transformer import FIRST_LOGIT_STD, FeedForward, Trace, TransformerBody, self_attention


@dataclass(frozen=True, eq=False)
class DecoderBlockTrace:
    """What one decoder block computed, and whom its tokens looked at.

    Attributes
    ----------
    hidden : Tensor of shape (B, T, D)
        What the block returns.
    attn_weights : Tensor of shape (B, H, T, T)
        The weights of its self-attention.
    cross_weights : Tensor of shape (B, H, T, S)
        How much each target token attends to each source token.
    """

    hidden: Tensor
    attn_weights: Tensor
    cross_weights: Tensor


@dataclass(frozen=True, eq=False)
class DecoderTrace:
    """All that a decoder computed on its way up; one entry a layer as in `Trace`.

    Attributes
    ----------
    hidden : tuple of n_layers + 1 Tensors of shape (B, T, D)
    attn_weights : tuple of n_layers Tensors of shape (B, H, T, T)
    cross_weights : tuple of n_layers Tensors of shape (B, H, T, S)
    """

    hidden: tuple[Tensor, ...]
    attn_weights: tuple[Tensor, ...]
    cross_weights: tuple[Tensor, ...]


class DecoderBlock(nn.Module):
    """Self-attention, attention to the source, feed-forward; each added to what came in and normalised.

    Parameters
    ----------
    config : TransformerConfig
        Read as by `Block`.

    Notes
    -----
    Equal to `torch.nn.TransformerDecoderLayer` with ``norm_first=(config.norm == "first")`` and
    ``batch_first=True``.

    Rotary positions and ALiBi act among target tokens only: how far a target token stands from a source token
    has no meaning, since the two sequences are counted apart.

    References
    ----------
    .. [1] Vaswani et al., arXiv 1706.03762, section 3.1.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.norm_first = config.norm == "first"
        self.attn_norm = nn.LayerNorm(config.d_model, eps=config.norm_eps, bias=config.bias)
        self.attn = self_attention(config)
        self.cross_norm = nn.LayerNorm(config.d_model, eps=config.norm_eps, bias=config.bias)
        self.cross_attn = MultiHeadAttention(
            d_model=config.d_model, n_heads=config.n_heads, bias=config.bias, dropout=config.dropout
        )
        self.ff_norm = nn.LayerNorm(config.d_model, eps=config.norm_eps, bias=config.bias)
        self.ff = FeedForward(config)
        self.dropout = Dropout(config.dropout)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        *,
        is_causal: bool = False,
    ) -> Tensor:
        """Send a sequence through the block.

        Parameters
        ----------
        x : Tensor of shape (B, T, D)
            One vector a target token.
        memory : Tensor of shape (B, S, D)
            One vector a source token.
        mask : Tensor, bool, broadcastable to (B, H, T, T), optional
            Among target tokens; True = may attend.
        memory_mask : Tensor, bool, broadcastable to (B, H, T, S), optional
            From target to source tokens; True = may attend.
        is_causal : bool
            True adds the causal mask among target tokens.

        Returns
        -------
        Tensor of shape (B, T, D)
        """
        x = self._add(x, self.attn_norm, lambda h: self.attn(h, mask=mask, is_causal=is_causal))
        x = self._add(x, self.cross_norm, lambda h: self.cross_attn(h, memory, memory_mask))
        return self._add(x, self.ff_norm, self.ff)

    def trace(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        *,
        is_causal: bool = False,
    ) -> DecoderBlockTrace:
        """Do the same by the plain path and keep the attention weights. Parameters as in `forward`."""
        seen = self.attn.trace(self.attn_norm(x) if self.norm_first else x, mask=mask, is_causal=is_causal)
        x = self._add(x, self.attn_norm, lambda h: seen.output)
        crossed = self.cross_attn.trace(self.cross_norm(x) if self.norm_first else x, memory, memory_mask)
        x = self._add(x, self.cross_norm, lambda h: crossed.output)
        return DecoderBlockTrace(self._add(x, self.ff_norm, self.ff), seen.attn_weights, crossed.attn_weights)

    def _add(self, x: Tensor, norm: nn.Module, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        if self.norm_first:
            return x + self.dropout(sublayer(norm(x)))
        return norm(x + self.dropout(sublayer(x)))


class TransformerDecoder(TransformerBody):
    """Embeddings, positions and a stack of decoder blocks over the vectors of another sequence.

    Parameters
    ----------
    config : TransformerConfig
        All settings. Target tokens see each other as `causal` says, and every real source token.
    """

    block_class = DecoderBlock
    n_sublayers = 3

    def forward(  # type: ignore[override]
        self,
        token_ids: Tensor,
        memory: Tensor,
        padding_mask: Tensor | None = None,
        memory_padding_mask: Tensor | None = None,
    ) -> Tensor:
        """Turn target tokens into vectors that know their context and the source.

        Parameters
        ----------
        token_ids : Tensor of shape (B, T), integer
            As in `TransformerBody.forward`.
        memory : Tensor of shape (B, S, D)
            What the encoder returns.
        padding_mask : Tensor of shape (B, T), bool, optional
            True = a real target token.
        memory_padding_mask : Tensor of shape (B, S), bool, optional
            True = a real source token.

        Returns
        -------
        Tensor of shape (B, T, D)

        Raises
        ------
        TypeError, ValueError
            As in `TransformerBody.forward`; also if `memory` or its mask has another shape.
        """
        memory_mask = self._memory_mask(token_ids, memory, memory_padding_mask)
        x, mask, is_causal = self._start(token_ids, padding_mask)
        for block in self.blocks:
            x = block(x, memory, mask, memory_mask, is_causal=is_causal)
        return self.final_norm(x)

    def trace(  # type: ignore[override]
        self,
        token_ids: Tensor,
        memory: Tensor,
        padding_mask: Tensor | None = None,
        memory_padding_mask: Tensor | None = None,
    ) -> DecoderTrace:
        """Do the same by the plain path and keep every layer. Parameters as in `forward`."""
        memory_mask = self._memory_mask(token_ids, memory, memory_padding_mask)
        x, mask, is_causal = self._start(token_ids, padding_mask)
        hidden, seen = [x], []
        for block in cast(Iterable[DecoderBlock], self.blocks):
            seen.append(block.trace(hidden[-1], memory, mask, memory_mask, is_causal=is_causal))
            hidden.append(seen[-1].hidden)
        hidden[-1] = self.final_norm(hidden[-1])
        return DecoderTrace(
            tuple(hidden),
            tuple(each.attn_weights for each in seen),
            tuple(each.cross_weights for each in seen),
        )

    def _memory_mask(
        self, token_ids: Tensor, memory: Tensor, memory_padding_mask: Tensor | None
    ) -> Tensor | None:
        """Check the source against the target; return the mask from target to source tokens."""
        n_rows, width, shape = token_ids.shape[0], self.config.d_model, tuple(memory.shape)
        if memory.dim() != 3 or shape[0] != n_rows or shape[2] != width:
            raise ValueError(f"memory must have shape ({n_rows}, S, {width}), got {shape}")
        if memory_padding_mask is None:
            return None
        if tuple(memory_padding_mask.shape) != shape[:2]:
            mask_shape = tuple(memory_padding_mask.shape)
            raise ValueError(f"memory_padding_mask must have shape {shape[:2]}, got {mask_shape}")
        return over_keys(memory_padding_mask)  # (B, 1, 1, S)


@dataclass(frozen=True, eq=False)
class TranslatorTrace:
    """All that a translator computed on its way up.

    Attributes
    ----------
    encoder : Trace
    decoder : DecoderTrace
        Its ``cross_weights`` say which source tokens each target token looked at.
    """

    encoder: Trace
    decoder: DecoderTrace


class Translator(nn.Module):
    """An encoder reads the source; a decoder predicts each next target token from both.

    ``logits = decoder(tgt_ids, encoder(src_ids)) W``

    Parameters
    ----------
    config : TransformerConfig
        Settings of both halves: `n_layers` blocks each. Source and target share one vocabulary. With
        `tie_embeddings` one matrix serves as embedding of the source, as embedding of the target and as W;
        without it there are three. The encoder sees the whole source and the decoder only what it has written
        so far, whatever `causal` says.

    Attributes
    ----------
    encoder : TransformerBody
    decoder : TransformerDecoder
    head : torch.nn.Linear
        From D to V; tied it has no bias, as in the paper, unless `head_bias` says so.

    Notes
    -----
    Encoder and decoder together equal `torch.nn.Transformer`, except that torch puts a last norm on both
    halves even where each block ends in one already.

    References
    ----------
    .. [1] Vaswani et al., arXiv 1706.03762, section 3.1, and 3.4 on the shared matrix.

    Examples
    --------
    >>> import torch
    >>> from tinytx.model.config import PRESETS
    >>> model = Translator(PRESETS["tiny"])
    >>> model(torch.tensor([[5, 8, 2, 9]]), torch.tensor([[1, 7, 3]])).shape
    torch.Size([1, 3, 1000])
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        if config.n_segments:
            raise ValueError(f"a translator must have n_segments=0, got n_segments={config.n_segments}")
        self.encoder = TransformerBody(config.replace(causal=False))
        self.decoder = TransformerDecoder(config.replace(causal=True))
        biased = config.translation_bias
        self.head = nn.Linear(config.d_model, config.vocab_size, bias=biased)
        if config.tie_embeddings:
            self.decoder.token_embed.weight = self.encoder.token_embed.weight
            self.head.weight = self.encoder.token_embed.weight
        else:
            nn.init.normal_(self.head.weight, std=FIRST_LOGIT_STD * config.d_model**-0.5)
        if biased:
            nn.init.zeros_(self.head.bias)

    @property
    def config(self) -> TransformerConfig:
        """The settings of both halves, as the decoder has them."""
        return self.decoder.config

    def forward(
        self,
        src_ids: Tensor,
        tgt_ids: Tensor,
        src_padding_mask: Tensor | None = None,
        tgt_padding_mask: Tensor | None = None,
    ) -> Tensor:
        """Score what may follow each target token.

        Parameters
        ----------
        src_ids : Tensor of shape (B, S), integer
            The source, padded on the right.
        tgt_ids : Tensor of shape (B, T), integer
            The target as far as it is known, from the mark of its beginning on.
        src_padding_mask : Tensor of shape (B, S), bool, optional
            True = a real token. Needed where source rows differ in length.
        tgt_padding_mask : Tensor of shape (B, T), bool, optional
            True = a real token. Not needed: real tokens never see what follows them.

        Returns
        -------
        Tensor of shape (B, T, V)
            ``logits[:, t]`` scores what may follow target token t.

        Raises
        ------
        TypeError, ValueError
            As in `TransformerBody.forward`, for either sequence.
        """
        memory = self.encode(src_ids, src_padding_mask)  # (B, S, D)
        return self.decode(tgt_ids, memory, src_padding_mask, tgt_padding_mask)  # (B, T, V)

    def encode(self, src_ids: Tensor, src_padding_mask: Tensor | None = None) -> Tensor:
        """Read the source once: (B, S, D). Parameters as in `forward`."""
        return self.encoder(src_ids, src_padding_mask)

    def decode(
        self,
        tgt_ids: Tensor,
        memory: Tensor,
        src_padding_mask: Tensor | None = None,
        tgt_padding_mask: Tensor | None = None,
    ) -> Tensor:
        """Score what may follow each target token, (B, T, V), given what `encode` returned."""
        return self.head(self.decoder(tgt_ids, memory, tgt_padding_mask, src_padding_mask))

    def trace(
        self,
        src_ids: Tensor,
        tgt_ids: Tensor,
        src_padding_mask: Tensor | None = None,
        tgt_padding_mask: Tensor | None = None,
    ) -> TranslatorTrace:
        """Compute by the plain path and keep every layer. Parameters as in `forward`."""
        encoder = self.encoder.trace(src_ids, src_padding_mask)
        decoder = self.decoder.trace(tgt_ids, encoder.hidden[-1], tgt_padding_mask, src_padding_mask)
        return TranslatorTrace(encoder, decoder)
