"""Where a translator looks: its attention to the source against the alignment that the grammar knows.

Shape letters: T target positions (pieces and the end mark), S source positions, L layers, H heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tinytx.model import Translator
from tinytx.text import Tokenizer
from tinytx.text.world import SentencePair
from tinytx.text.world.typography import write_out


@dataclass(frozen=True)
class AlignmentMass:
    """How much attention falls on the words that the grammar aligns.

    Attributes
    ----------
    mass : ndarray of shape (L, H)
        Mean over the aligned target pieces of the weight on pieces of the words that they translate, in each
        layer and head; from 0 to 1.
    uniform : float
        What attention spread evenly over the source would have.
    n_pieces : int
        Target pieces that the mean is over.
    """

    mass: np.ndarray
    uniform: float
    n_pieces: int


def word_spans(words: Sequence[str], language: str) -> list[tuple[int, int]]:
    """Where each word stands in the text that `write_out` makes of them: (begin, end) in characters.

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


def words_of_pieces(tokenizer: Tokenizer, words: Sequence[str], language: str) -> list[set[int]]:
    """For each piece of the written sentence, the numbers of the words that it writes.

    A piece that is but a space belongs to the word that it begins.
    """
    spans, found, end = word_spans(words, language), [], -1  # the first piece begins with a space of its own
    for piece in tokenizer.pieces(write_out(words, language)):
        begin, end = end, end + len(piece)
        own = {i for i, (first, last) in enumerate(spans) if first < end and last > begin}
        found.append(own or {i for i, (first, _) in enumerate(spans) if first == end})
    return found


def true_alignment(tokenizer: Tokenizer, pair: SentencePair) -> Tensor:
    """Which source positions each target position should look at, by the grammar.

    Parameters
    ----------
    tokenizer : Tokenizer
    pair : SentencePair

    Returns
    -------
    Tensor of shape (T, S), bool
        True where piece s writes a word that piece t translates. Rows and columns of the end marks, and rows
        of words without counterpart, are False.
    """
    sources = words_of_pieces(tokenizer, pair.english, "en")
    targets = words_of_pieces(tokenizer, pair.french, "fr")
    links = set(pair.alignment)
    table = torch.zeros(len(targets) + 1, len(sources) + 1, dtype=torch.bool)
    for t, written in enumerate(targets):
        for s, read in enumerate(sources):
            table[t, s] = any((i, j) in links for i in read for j in written)
    return table


@torch.no_grad()
def cross_attention(model: Translator, tokenizer: Tokenizer, english: str, french: str) -> Tensor:
    """Weights with which a translation is written, its text given.

    Row t holds the weights of the step that predicts piece t of the target.

    Returns
    -------
    Tensor of shape (L, H, T, S)
        Rows sum to 1.
    """
    device = next(model.parameters()).device
    src_ids = torch.tensor([[*tokenizer.encode(english), tokenizer.eos_id]], device=device)
    tgt_ids = torch.tensor([[tokenizer.bos_id, *tokenizer.encode(french)]], device=device)
    was_training = model.training
    model.eval()
    trace = model.trace(src_ids, tgt_ids)
    model.train(was_training)
    return torch.stack(trace.decoder.cross_weights)[:, 0]


def alignment_mass(model: Translator, tokenizer: Tokenizer, pairs: Sequence[SentencePair]) -> AlignmentMass:
    """Measure how much of the attention to the source falls on the words being translated.

    Parameters
    ----------
    model : Translator
        From English into French.
    tokenizer : Tokenizer
    pairs : sequence of SentencePair
        Such as `World.sentence_pairs` draws.

    Returns
    -------
    AlignmentMass
    """
    total = torch.zeros(model.config.n_layers, model.config.n_heads, dtype=torch.float64)
    uniform, n_pieces = 0.0, 0
    for pair in pairs:
        truth = true_alignment(tokenizer, pair)  # (T, S)
        aligned = truth.any(dim=1)
        english, french = write_out(pair.english, "en"), write_out(pair.french, "fr")
        weights = cross_attention(model, tokenizer, english, french).cpu().double()  # (L, H, T, S)
        total += (weights * truth).sum(dim=-1)[:, :, aligned].sum(dim=-1)
        uniform += truth[aligned].double().mean(dim=1).sum().item()
        n_pieces += int(aligned.sum())
    if not n_pieces:
        raise ValueError(f"pairs must hold an aligned word, got {len(pairs)} pairs without any")
    return AlignmentMass((total / n_pieces).numpy(), uniform / n_pieces, n_pieces)
