"""An encoder-decoder: reads one sequence, predicts another.

Shape letters: B rows of a batch, S source tokens, T target tokens, D model width, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from tinytx.model.body import FIRST_LOGIT_STD, Trace, TransformerBody
from tinytx.model.config import TransformerConfig
from tinytx.model.decoder import DecoderTrace, TransformerDecoder


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
