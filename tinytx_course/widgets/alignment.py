"""The alignment explorer: which source words each target word attends to, and which it translates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import traitlets

from tinytx.encoder_decoder import Translator
from tinytx.tokenizer import Tokenizer
from tinytx_course.labs.lesson_11 import cross_attention, words_of_tokens
from tinytx_course.widgets.base import Explorer, bounded
from tinyworld.reviews import write_out
from tinyworld.sampling import SentencePair

_MOST_PAIRS = 8
_END = "(end mark)"


class AlignmentExplorer(Explorer):
    """See `alignment`.

    `weights` holds, pair after pair, the weights (L, H, target words, source words and end mark).
    """

    kind = "alignment"
    shares = ("weights",)
    title = traitlets.Unicode("Alignment explorer").tag(sync=True)

    sources = traitlets.List(traitlets.List(traitlets.Unicode())).tag(sync=True)
    targets = traitlets.List(traitlets.List(traitlets.Unicode())).tag(sync=True)
    links = traitlets.List(traitlets.List()).tag(sync=True)  # [source word, target word]
    weights = traitlets.Bytes().tag(sync=True)
    n_layers = traitlets.Int(1).tag(sync=True)
    n_heads = traitlets.Int(1).tag(sync=True)
    pair = bounded(0, 0, lambda its: len(its.sources) - 1)
    layer = bounded(0, 0, lambda its: its.n_layers - 1)
    head = bounded(0, 0, lambda its: its.n_heads)  # n_heads: their mean
    word = bounded(0, 0, lambda its: max(map(len, its.targets)) - 1)

    def summary(self) -> str:
        """Return what is shown, and which sentence is open."""
        return (
            "Cross-attention as lines between the words of a sentence and of its translation, with the true "
            f"alignment as outlines. Sentence {self.pair + 1} of {len(self.sources)}: "
            f"“{' '.join(self.targets[self.pair])}”."
        )


def alignment(model: Translator, tokenizer: Tokenizer, pairs: Sequence[SentencePair]) -> AlignmentExplorer:
    """Compare the cross-attention of an English-French translator with the alignment by the grammar.

    Attention to a word is the sum over its tokens; that of a word, the mean over its tokens.

    Parameters
    ----------
    model : Translator
    tokenizer : Tokenizer
        The one that the model was trained with.
    pairs : sequence of SentencePair
        At most 8, from `World.sentence_pairs`.

    Raises
    ------
    ValueError
        If there are too few or too many pairs.
    """
    if not 1 <= len(pairs) <= _MOST_PAIRS:
        raise ValueError(f"pairs must be 1 to {_MOST_PAIRS}, got {len(pairs)}")
    return AlignmentExplorer(
        sources=[[*pair.english, _END] for pair in pairs],
        targets=[list(pair.french) for pair in pairs],
        links=[[list(link) for link in pair.alignment] for pair in pairs],
        weights=b"".join(word_weights(model, tokenizer, pair).tobytes() for pair in pairs),
        n_layers=model.config.n_layers,
        n_heads=model.config.n_heads,
    )


def word_weights(model: Translator, tokenizer: Tokenizer, pair: SentencePair) -> np.ndarray:
    """Cross-attention between words, (L, H, target words, source words + 1) float32; rows sum to 1."""
    english, french = write_out(pair.english, "en"), write_out(pair.french, "fr")
    weights = cross_attention(model, tokenizer, english, french).float().cpu().numpy()  # (L, H, T, S)
    source = _membership(tokenizer, pair.english, "en")  # (S - 1, source words)
    source = np.block([[source, np.zeros((len(source), 1))], [np.zeros(source.shape[1]), 1.0]])
    target = _membership(tokenizer, pair.french, "fr")
    target /= target.sum(axis=0)
    by_word = np.einsum("lhts,tw,sv->lhwv", weights[:, :, :-1], target, source)
    return by_word.clip(0, 1).astype(np.float32)


def _membership(tokenizer: Tokenizer, words: Sequence[str], language: str) -> np.ndarray:
    """Share of each token in each word, (tokens, words): 1 in all, shared by the words that it is part of."""
    owners = words_of_tokens(tokenizer, words, language)
    table = np.zeros((len(owners), len(words)))
    for row, own in zip(table, owners, strict=True):
        row[list(own)] = 1 / len(own)
    return table
