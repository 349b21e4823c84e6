"""An encoder-decoder: reads one sequence, predicts another.

Shape letters: B batch size, S source tokens, T target tokens, D model width, V vocabulary.
"""

from __future__ import annotations

from torch import Tensor, nn

from tinytx.config import TransformerConfig
from tinytx.fast import IGNORE_ID, Dropout, output_loss
from tinytx.kv_cache import Cache, KeyValues
from tinytx.masks import Mask, check_bool
from tinytx.settings import require
from tinytx.transformer import Transformer, feed_forward, init_output_layer, make_attention, make_norm


class DecoderBlock(nn.Module):
    """A `Block` with cross-attention to the source between self-attention and feed-forward.

    Notes
    -----
    Equal to `torch.nn.TransformerDecoderLayer`, as a `Block` is to the encoder's layer. Rotary positions and
    ALiBi act in self-attention only: the distance between a target token and a source token has no meaning,
    since the positions of the two sequences are counted separately.

    References
    ----------
    .. [1] Vaswani et al., arXiv 1706.03762, section 3.1.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.norm_first = config.norm == "first"
        self.attn_norm = make_norm(config)
        self.attn = make_attention(config)
        self.cross_norm = make_norm(config)
        self.cross_attn = make_attention(config, over_memory=True)
        self.ff_norm = make_norm(config)
        self.ff = feed_forward(config)
        self.dropout = Dropout(config.dropout)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Mask = None,
        memory_mask: Mask = None,
        cache: tuple[KeyValues, KeyValues] | None = None,
    ) -> Tensor:
        """Transform the residual stream of the target, x of shape (B, T, D), given that of the source.

        `memory` has shape (B, S, D); `mask` and `memory_mask` broadcast to (B, H, T, T) and (B, H, T, S); the
        cache is that of self-attention and that of cross-attention.
        """
        own, of_memory = cache or (None, None)
        if self.norm_first:
            x = x + self.dropout(self.attn(self.attn_norm(x), mask=mask, cache=own))
            x = x + self.dropout(self.cross_attn(self.cross_norm(x), memory, memory_mask, of_memory))
            output: Tensor = x + self.dropout(self.ff(self.ff_norm(x)))
        else:
            x = self.attn_norm(x + self.dropout(self.attn(x, mask=mask, cache=own)))
            x = self.cross_norm(x + self.dropout(self.cross_attn(x, memory, memory_mask, of_memory)))
            output = self.ff_norm(x + self.dropout(self.ff(x)))
        return output


class TransformerDecoder(Transformer):
    """Embeddings, positions and a stack of decoder blocks over the hidden states of another sequence."""

    block_class = DecoderBlock
    n_sublayers = 3

    def forward(  # type: ignore[override]
        self,
        token_ids: Tensor,
        memory: Tensor,
        padding_mask: Mask = None,
        memory_padding_mask: Mask = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """Turn target tokens, (B, T), into hidden states, (B, T, D), that depend on the source.

        `memory`, (B, S, D), is the output of the encoder; the masks, (B, T) and (B, S), are True where a
        token is real. With a cache the tokens follow those that it holds.
        """
        x, mask = self.embed_and_mask(token_ids, padding_mask, None, cache)
        rows, width, n_rows = tuple(memory.shape), self.config.d_model, len(token_ids)
        fits = memory.dim() == 3 and rows == (n_rows, rows[1], width)
        require(fits, f"memory must have shape ({n_rows}, S, {width})", rows)
        memory_mask = None
        if memory_padding_mask is not None:
            check_bool(memory_padding_mask, "memory_padding_mask")
            got = tuple(memory_padding_mask.shape)
            require(got == rows[:2], f"memory_padding_mask must have shape {rows[:2]}", got)
            memory_mask = memory_padding_mask[:, None, None, :]  # (B, 1, 1, S)
        for number, block in enumerate(self.blocks):
            own = None if cache is None else (cache.own[number], cache.memory[number])
            x = block(x, memory, mask, memory_mask, own)
        hidden: Tensor = self.final_norm(x)
        return hidden


class Translator(nn.Module):
    """An encoder reads the source; a decoder predicts each next target token from both.

    ``logits = decoder(tgt_ids, encoder(src_ids)) W``

    The two halves have `n_layers` blocks each and share one vocabulary. With `tie_embeddings` one matrix is
    the embedding of the source, the embedding of the target and W; without it there are three. The encoder is
    bidirectional and the decoder causal, whatever `causal` says.

    Parameters
    ----------
    config : TransformerConfig

    Notes
    -----
    Encoder and decoder together equal `torch.nn.Transformer`, except that torch puts a last norm on both
    halves even post-norm, where each block ends in one already.

    References
    ----------
    .. [1] Vaswani et al., arXiv 1706.03762, section 3.1, and 3.4 on the shared matrix.

    Examples
    --------
    >>> import torch
    >>> from tinytx.config import PRESETS
    >>> model = Translator(PRESETS["tiny"])
    >>> model(torch.tensor([[5, 8, 2, 9]]), torch.tensor([[1, 7, 3]])).shape
    torch.Size([1, 3, 1000])
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        got = f"n_segments={config.n_segments}"
        require(not config.n_segments, "a translator must have n_segments=0", got)
        self.encoder = Transformer(config.replace(causal=False))
        self.decoder = TransformerDecoder(config.replace(causal=True))
        self.config = self.decoder.config
        self.head = nn.Linear(config.d_model, config.vocab_size, bias=config.translation_bias)
        if config.tie_embeddings:
            self.decoder.token_embed.weight = self.encoder.token_embed.weight
        init_output_layer(self.head, self.encoder.token_embed, config)

    def forward(
        self, src_ids: Tensor, tgt_ids: Tensor, src_padding_mask: Mask = None, tgt_padding_mask: Mask = None
    ) -> Tensor:
        """Score the vocabulary after each target token: (B, T, V), ``logits[:, t]`` what may follow token t.

        Parameters
        ----------
        src_ids : Tensor of shape (B, S), integer
            The source, padded on the right.
        tgt_ids : Tensor of shape (B, T), integer
            The target as far as it is known, from the mark of its beginning on.
        src_padding_mask : Tensor of shape (B, S), bool, optional
            True = a real token. Needed where source rows differ in length.
        tgt_padding_mask : Tensor of shape (B, T), bool, optional
            True = a real token. Not needed: real tokens never attend to what follows them.
        """
        memory = self.encode(src_ids, src_padding_mask)  # (B, S, D)
        return self.decode(tgt_ids, memory, tgt_padding_mask, src_padding_mask)

    def loss(
        self,
        src_ids: Tensor,
        tgt_ids: Tensor,
        targets: Tensor,
        src_padding_mask: Mask = None,
        tgt_padding_mask: Mask = None,
        *,
        ignore_id: int = IGNORE_ID,
        label_smoothing: float = 0.0,
    ) -> Tensor:
        """Mean cross-entropy of the predicted targets, in nats a token (teacher forcing).

        `targets`, (B, T), hold the token that follows each target token; other parameters are as in `forward`
        and `output_loss`.
        """
        memory = self.encode(src_ids, src_padding_mask)  # (B, S, D)
        hidden = self.decoder(tgt_ids, memory, tgt_padding_mask, src_padding_mask)  # (B, T, D)
        weight, bias = self.head.weight, self.head.bias
        return output_loss(
            hidden, weight, targets, bias=bias, ignore_id=ignore_id, label_smoothing=label_smoothing
        )

    def encode(self, src_ids: Tensor, src_padding_mask: Mask = None) -> Tensor:
        """Hidden states of the source: (B, S, D). Parameters as in `forward`."""
        memory: Tensor = self.encoder(src_ids, src_padding_mask)
        return memory

    def decode(
        self, tgt_ids: Tensor, memory: Tensor, tgt_padding_mask: Mask = None, src_padding_mask: Mask = None
    ) -> Tensor:
        """Score the vocabulary after each target token, (B, T, V), given the output of `encode`."""
        logits: Tensor = self.head(self.decoder(tgt_ids, memory, tgt_padding_mask, src_padding_mask))
        return logits
