"""What a masked language model reads: hidden tokens, and pairs of sentences."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tinytx.text.tokenizer import SPACE_MARK, Tokenizer

IGNORED = -100  # a label where nothing is predicted; the losses of torch skip it
HIDDEN, EXCHANGED = 0.8, 0.1  # of the drawn tokens; the rest stays as it is


@dataclass(frozen=True, kw_only=True)
class Masking:
    """How a masked language model is trained.

    Parameters
    ----------
    p : float
        Share of the tokens that are drawn.
    whole_words : bool
        True draws words, with all their pieces, in place of single pieces.
    next_sentence : bool
        True shows pairs of sentences and asks whether the second follows the first.
    transform : bool
        Whether the model has the transform of `MaskedHead`.
    """

    p: float = 0.15
    whole_words: bool = False
    next_sentence: bool = False
    transform: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.p < 1:
            raise ValueError(f"p must lie between 0 and 1, got {self.p}")

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON can hold them."""
        return dataclasses.asdict(self)

    def replace(self, **changes: Any) -> Masking:
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)


def mask_tokens(
    token_ids: Tensor,
    *,
    mask_id: int,
    special_ids: Sequence[int],
    vocab_size: int,
    p: float = 0.15,
    words: Tensor | None = None,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, Tensor]:
    """Draw tokens to be predicted; of these hide 80 %, exchange 10 % and leave 10 %.

    Parameters
    ----------
    token_ids : Tensor of any shape, integer
    mask_id : int
        The id of a hidden token.
    special_ids : sequence of int
        Ids that are never drawn and never put in.
    vocab_size : int
        V; an exchanged token becomes any id below V but the special ones and `mask_id`.
    p : float
        Chance of each token to be drawn.
    words : Tensor of the shape of `token_ids`, optional
        A number from 0 up for the word that each token belongs to. Whole words are then drawn; what becomes
        of their pieces is drawn one by one.
    generator : torch.Generator, optional
        torch's own where not given.

    Returns
    -------
    inputs : Tensor of the shape of `token_ids`
        The input itself is left alone.
    labels : Tensor of the same shape
        The original id where one was drawn, and -100 elsewhere.

    References
    ----------
    Devlin et al., "BERT", arXiv 1810.04805, section 3.1 and appendix A.1; whole words as in its authors'
    later code.

    Examples
    --------
    >>> rule = dict(mask_id=4, special_ids=[0], vocab_size=9)
    >>> inputs, labels = mask_tokens(torch.tensor([[7, 8, 0]]), **rule, p=1.0)
    >>> labels
    tensor([[   7,    8, -100]])
    """
    known = set(special_ids) | {mask_id}
    ordinary = torch.tensor([one for one in range(vocab_size) if one not in known])
    if not len(ordinary):
        raise ValueError(f"vocab_size must leave ids that are not special, got vocab_size={vocab_size}")
    may = ~torch.isin(token_ids, torch.tensor(sorted(known)))
    if words is None:
        drawn = may & (torch.rand(token_ids.shape, generator=generator) < p)
    else:
        n_words = int(words.max()) + 1
        drawn = may & (torch.rand(n_words, generator=generator) < p)[words]
    fate = torch.rand(token_ids.shape, generator=generator)
    others = ordinary[torch.randint(len(ordinary), token_ids.shape, generator=generator)]
    inputs = torch.where(drawn & (fate < HIDDEN), mask_id, token_ids)
    exchanged = drawn & (fate >= HIDDEN) & (fate < HIDDEN + EXCHANGED)
    inputs = torch.where(exchanged, others.to(token_ids.dtype), inputs)
    return inputs, torch.where(drawn, token_ids, IGNORED)


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
        Most ids of both parts together; a second part that is too long loses its end.
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
