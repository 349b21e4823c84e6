"""Lesson 11, translation: a dictionary, torch's twin, true alignment.

Shape letters: T target positions (tokens and the end mark), S source positions, L layers, H heads.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tinytx.attention import MultiHeadAttention, record_attention
from tinytx.config import TransformerConfig
from tinytx.encoder_decoder import Translator
from tinytx.inference import eval_mode
from tinytx.positions import SinusoidalPositions
from tinytx.tokenizer import Tokenizer
from tinyworld.reviews import write_out
from tinyworld.sampling import SentencePair

_NAMES = {  # ours: torch's; the norms are numbered in the order in which a block uses them
    "attn": "self_attn",
    "cross_attn": "multihead_attn",
    "ff.up_proj": "linear1",
    "ff.down_proj": "linear2",
}
_NORMS = {"encoder": ("attn_norm", "ff_norm"), "decoder": ("attn_norm", "cross_norm", "ff_norm")}


def word_for_word(pairs: Sequence[SentencePair], examples: Sequence[SentencePair]) -> list[str]:
    """French texts with, for each English word, the one that translates it most often in the examples."""
    counts: dict[str, Counter[str]] = {}
    for pair in examples:
        for i, j in pair.alignment:
            counts.setdefault(pair.english[i], Counter())[pair.french[j]] += 1
    best = {word: found.most_common(1)[0][0] for word, found in counts.items()}
    return [write_out([best.get(word, word) for word in pair.english], "fr") for pair in pairs]


class TorchTranslator(nn.Module):
    """`torch.nn.Transformer` between our embeddings and head, with copied weights of a translator.

    Parameters
    ----------
    ours : Translator
        With tied embeddings and sinusoidal positions.

    Notes
    -----
    Torch puts a final norm on both halves even after blocks with ``norm="last"``; this has none there.
    """

    table: Tensor

    def __init__(self, ours: Translator) -> None:
        super().__init__()
        config = ours.config
        positions = ours.encoder.pos_embed
        if not config.tie_embeddings or not isinstance(positions, SinusoidalPositions):
            raise ValueError(
                "the twin needs tie_embeddings=True and positions='sinusoidal', "
                f"got tie_embeddings={config.tie_embeddings}, positions={config.positions!r}"
            )
        self.matrix = nn.Parameter(ours.head.weight.detach().clone())  # (V, D), used three times
        self.register_buffer("table", positions.table.clone())
        self.stacks = _torch_stacks(config, self.matrix.dtype)
        for mine, other in _counterparts(ours, self.stacks):
            _copy(mine, other)
        self.eval()

    def forward(self, src_ids: Tensor, tgt_ids: Tensor, src_padding_mask: Tensor) -> Tensor:
        """Logits (B, T, V), as `Translator.forward` gives them; True = a real token."""
        n, blocked = tgt_ids.shape[1], ~src_padding_mask
        hidden = self.stacks(
            self._embed(src_ids),
            self._embed(tgt_ids),
            tgt_mask=torch.ones(n, n, dtype=torch.bool, device=tgt_ids.device).triu(1),
            src_key_padding_mask=blocked,
            memory_key_padding_mask=blocked,
        )
        return hidden @ self.matrix.T

    def _embed(self, token_ids: Tensor) -> Tensor:
        width = self.matrix.shape[1]
        return self.matrix[token_ids] * math.sqrt(width) + self.table[: token_ids.shape[1]]


def _torch_stacks(config: TransformerConfig, dtype: torch.dtype) -> nn.Transformer:
    is_pre_norm = config.norm == "first"
    sizes = config.d_model, config.n_heads, config.d_ff, 0.0, config.activation
    how: dict[str, Any] = {"batch_first": True, "norm_first": is_pre_norm, "dtype": dtype}
    norms = [nn.LayerNorm(config.d_model, dtype=dtype) if is_pre_norm else None for _ in range(2)]
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(*sizes, **how), config.n_layers, norms[0], enable_nested_tensor=False
    )
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(*sizes, **how), config.n_layers, norms[1])
    return nn.Transformer(*sizes[:2], custom_encoder=encoder, custom_decoder=decoder, batch_first=True)


def _counterparts(ours: Translator, theirs: nn.Transformer) -> Iterator[tuple[nn.Module, nn.Module]]:
    for half, norms in _NORMS.items():
        mine, other = getattr(ours, half), getattr(theirs, half)
        for block, layer in zip(mine.blocks, other.layers, strict=True):
            for name, its_name in _NAMES.items():
                if name != "cross_attn" or half == "decoder":
                    yield block.get_submodule(name), layer.get_submodule(its_name)
            for number, name in enumerate(norms, start=1):
                yield block.get_submodule(name), layer.get_submodule(f"norm{number}")
        if other.norm is not None:
            yield mine.final_norm, other.norm


@torch.no_grad()
def _copy(mine: nn.Module, other: nn.Module) -> None:
    if isinstance(mine, MultiHeadAttention) and isinstance(other, nn.MultiheadAttention):
        three = (mine.q_proj, mine.k_proj, mine.v_proj)
        other.in_proj_weight.copy_(torch.cat([projection.weight for projection in three]))  # (3 D, D)
        other.in_proj_bias.copy_(torch.cat([projection.bias for projection in three]))
        other.out_proj.load_state_dict(mine.out_proj.state_dict())
    else:
        other.load_state_dict(mine.state_dict())


@dataclass(frozen=True)
class AlignmentMass:
    """How much of cross-attention falls on the words that the grammar aligns.

    `mass`, of shape (L, H), is the mean over `n_tokens` aligned target tokens of the weight on tokens of the
    words that they translate, from 0 to 1; `uniform` is that of attention spread evenly over the source, and
    `in_order` that of attention to the place in proportion, which reads nothing.
    """

    mass: np.ndarray
    uniform: float
    in_order: float
    n_tokens: int


def word_spans(words: Sequence[str], language: str) -> list[tuple[int, int]]:
    """Position of each word in the text that `write_out` makes of them: (begin, end) in characters.

    Examples
    --------
    >>> word_spans(["L'", "eau", "!"], "fr")            # L'eau !
    [(0, 2), (2, 5), (6, 7)]
    """
    text, spans, end = write_out(words, language), [], 0
    for word in words:
        begin = text.index(word, end)
        end = begin + len(word)
        spans.append((begin, end))
    return spans


def words_of_tokens(tokenizer: Tokenizer, words: Sequence[str], language: str) -> list[set[int]]:
    """For each token of the written sentence, the numbers of the words that it is part of.

    A token that is only a space belongs to the word after it.
    """
    spans, found, end = word_spans(words, language), [], -1  # the first token begins with a space of its own
    for piece in tokenizer.pieces(write_out(words, language)):
        begin, end = end, end + len(piece)
        own = {i for i, (first, last) in enumerate(spans) if first < end and last > begin}
        found.append(own or {i for i, (first, _) in enumerate(spans) if first == end})
    return found


def true_alignment(tokenizer: Tokenizer, pair: SentencePair) -> Tensor:
    """Which source positions each target position should attend to, by the grammar.

    Returns
    -------
    Tensor of shape (T, S), bool
        True where token s is part of a word that token t translates. Rows and columns of the end marks, and
        rows of words without counterpart, are False.
    """
    sources = words_of_tokens(tokenizer, pair.english, "en")
    targets = words_of_tokens(tokenizer, pair.french, "fr")
    links = set(pair.alignment)
    table = torch.zeros(len(targets) + 1, len(sources) + 1, dtype=torch.bool)
    for t, target_words in enumerate(targets):
        for s, source_words in enumerate(sources):
            table[t, s] = any((i, j) in links for i in source_words for j in target_words)
    return table


def cross_attention(model: Translator, tokenizer: Tokenizer, english: str, french: str) -> Tensor:
    """Weights (L, H, T, S) of cross-attention while a given translation is predicted (teacher forcing).

    Row t has the weights of the step that predicts token t of the target; it sums to 1.
    """
    with eval_mode(model) as device, record_attention(model) as recorded:
        src_ids = torch.tensor([[*tokenizer.encode(english), tokenizer.eos_id]], device=device)
        tgt_ids = torch.tensor([[tokenizer.bos_id, *tokenizer.encode(french)]], device=device)
        model(src_ids, tgt_ids)
    return torch.stack([weights for name, weights in recorded.items() if name.endswith("cross_attn")])[:, 0]


def alignment_mass(model: Translator, tokenizer: Tokenizer, pairs: Sequence[SentencePair]) -> AlignmentMass:
    """How much of the cross-attention of an English-French translator falls on the words being translated."""
    total = torch.zeros(model.config.n_layers, model.config.n_heads, dtype=torch.float64)
    uniform, in_order, n_tokens = 0.0, 0.0, 0
    for pair in pairs:
        truth = true_alignment(tokenizer, pair)  # (T, S)
        place = torch.linspace(0, truth.shape[1] - 1, len(truth)).round().long()  # (T,)
        in_order += truth[torch.arange(len(truth)), place].sum().item()
        aligned = truth.any(dim=1)
        english, french = write_out(pair.english, "en"), write_out(pair.french, "fr")
        weights = cross_attention(model, tokenizer, english, french).cpu().double()  # (L, H, T, S)
        total += (weights * truth).sum(dim=-1)[:, :, aligned].sum(dim=-1)
        uniform += truth[aligned].double().mean(dim=1).sum().item()
        n_tokens += int(aligned.sum())
    if not n_tokens:
        raise ValueError(f"pairs must hold an aligned word, got {len(pairs)} pairs without any")
    return AlignmentMass((total / n_tokens).numpy(), uniform / n_tokens, in_order / n_tokens, n_tokens)
