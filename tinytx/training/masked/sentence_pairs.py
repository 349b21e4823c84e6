"""Pairs of sentences for the question whether one follows the other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinytx.text import Tokenizer
from tinytx.text.lossless import SPACE_MARK

_SENTENCE_END = re.compile(r"(?<=[.!?…]) ")


@dataclass(frozen=True)
class Passage:
    """Some sentences of one text, as ids.

    Attributes
    ----------
    text : int
        Number of the text.
    ids : tuple of int
    cuts : tuple of int
        Where it may be cut in two: before its second sentence, its third, and so on; a passage of one
        sentence may be cut before the word next to its middle.
    """

    text: int
    ids: tuple[int, ...]
    cuts: tuple[int, ...]


@dataclass(frozen=True)
class PairsOfSentences:
    """Two pieces of text each, and whether the second was taken from elsewhere.

    Attributes
    ----------
    firsts, seconds : list of N tuples of int
    labels : list of N int
        0 where the second follows the first, 1 where it comes from another text.
    """

    firsts: list[tuple[int, ...]]
    seconds: list[tuple[int, ...]]
    labels: list[int]


def split_sentences(text: str) -> list[str]:
    """Cut a text after marks that end a sentence and are followed by a space; joined by spaces it is whole.

    Examples
    --------
    >>> split_sentences("Un beau livre . Lisez-le !")
    ['Un beau livre .', 'Lisez-le !']
    """
    return _SENTENCE_END.split(text)


def make_passages(tokenizer: Tokenizer, texts: Sequence[str], room: int) -> list[Passage]:
    """Put as many sentences of each text together as fit into so many ids; what cannot be cut is left out.

    Parameters
    ----------
    tokenizer : Tokenizer
    texts : sequence of str
    room : int
        Most ids of a passage, at least 2. A longer sentence is cut into windows.
    """
    if room < 2:
        raise ValueError(f"room for two sentences must be at least 2 ids, got {room}")
    sentences = [split_sentences(text) for text in texts]
    encoded = iter(tokenizer.encode_batch([one for group in sentences for one in group]))
    begins = word_starts(tokenizer)
    found = []
    for number, group in enumerate(sentences):
        ids: list[int] = []
        cuts: list[int] = []
        for sentence in (next(encoded) for _ in group):
            for window in (sentence[at : at + room] for at in range(0, len(sentence), room)):
                if len(ids) + len(window) > room:
                    found.append(_passage(number, ids, cuts, begins))
                    ids, cuts = [], []
                if ids:
                    cuts.append(len(ids))
                ids.extend(window)
        found.append(_passage(number, ids, cuts, begins))
    return [passage for passage in found if passage.cuts]


def _passage(number: int, ids: list[int], cuts: list[int], begins: np.ndarray) -> Passage:
    if not cuts:
        middle = len(ids) / 2
        places = [place for place in range(1, len(ids)) if begins[ids[place]]]
        cuts = [min(places, key=lambda place: abs(place - middle))] if places else []
    return Passage(number, tuple(ids), tuple(cuts))


def draw_pairs(passages: Sequence[Passage], room: int, rng: np.random.Generator) -> PairsOfSentences:
    """Cut each passage in two, and exchange the second part for that of another text half of the time.

    Parameters
    ----------
    passages : sequence of Passage
        From two texts at least.
    room : int
        Most ids of both parts together; of a second part that is too long the beginning is kept.
    rng : numpy.random.Generator

    Returns
    -------
    PairsOfSentences
        One pair a passage, in their order.
    """
    texts = np.array([passage.text for passage in passages])
    if len(set(texts.tolist())) < 2:
        raise ValueError(
            f"pairs of sentences need two texts that can be cut at least, got {len(set(texts.tolist()))}"
        )
    n = len(passages)
    draws = rng.random(n).tolist()
    cuts = [one.cuts[int(draw * len(one.cuts))] for one, draw in zip(passages, draws, strict=True)]
    labels = (rng.random(n) < 0.5).astype(int)
    partners = np.where(labels == 1, rng.integers(n, size=n), np.arange(n))
    while (same := (labels == 1) & (texts[partners] == texts)).any():
        partners[same] = rng.integers(n, size=int(same.sum()))
    firsts = [passage.ids[:cut] for passage, cut in zip(passages, cuts, strict=True)]
    seconds = [
        passages[j].ids[cuts[j] :][: room - len(first)]
        for first, j in zip(firsts, partners.tolist(), strict=True)
    ]
    return PairsOfSentences(firsts, seconds, labels.tolist())


def word_starts(tokenizer: Tokenizer) -> np.ndarray:
    """Which ids begin a word; shape (V,), bool."""
    return np.array([tokenizer.piece(one).startswith(SPACE_MARK) for one in range(tokenizer.vocab_size)])
