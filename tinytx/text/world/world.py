"""The world as people use it: reviews, sentence pairs and exact questions about them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from random import Random
from typing import overload

import numpy as np

from tinytx.text.world.automaton import Automaton, Forward
from tinytx.text.world.grammar import Grammar
from tinytx.text.world.lexicon import GENRES, TABLES
from tinytx.text.world.network import Network, build_network
from tinytx.text.world.reviews import ReviewPlan
from tinytx.text.world.sampling import PairSampler, ReviewSampler, SentencePair
from tinytx.text.world.typography import split_up, write_out

NextWord = dict[str | None, float]


@dataclass(frozen=True)
class Review:
    """A book review.

    Attributes
    ----------
    words : tuple of str
        Its units: elided articles, words, punctuation marks; joined by single spaces they are what models read.
    label : int
        1 if the review is favourable, else 0.
    genre : str
        Hidden genre of the book, one of `GENRES`.
    language : str
        ``"fr"`` or ``"en"``.
    """

    words: tuple[str, ...]
    label: int
    genre: str
    language: str = "fr"

    @property
    def text(self) -> str:
        """The review as people read it."""
        return write_out(self.words, self.language)


@lru_cache(maxsize=8)
def _compiled(tables: Path, language: str) -> tuple[Grammar, Network]:
    grammar = Grammar(tables)
    return grammar, build_network(grammar, language)


class World:
    """A language of book reviews whose every probability is known.

    Parameters
    ----------
    language : str, default "fr"
        Language of the reviews and of all questions: ``"fr"`` or ``"en"``.
    tables : Path, optional
        Folder with tables of your own, laid out like those of the package.
    plan : ReviewPlan, optional
        Chances above the sentence: how many sentences, how faithful to the label.

    Examples
    --------
    >>> world = World()
    >>> review = world.reviews(1, seed=3)[0]
    >>> sum(world.next_word(review.words[:4]).values())  # doctest: +ELLIPSIS
    1.0...
    >>> world.log_prob(["Bonjour", "le", "monde"])
    -inf
    """

    genres = GENRES

    def __init__(self, language: str = "fr", tables: Path = TABLES, plan: ReviewPlan | None = None) -> None:
        if language not in ("fr", "en"):
            raise ValueError(f"language must be 'fr' or 'en', got {language!r}")
        self.language, self.plan = language, plan or ReviewPlan()
        self._grammar, self._network = _compiled(Path(tables), language)
        self._automaton = Automaton(self._network, self.plan)
        self._sampler = ReviewSampler(self._network, self.plan)
        self._pair_sampler = PairSampler(self._grammar, self.plan)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """All words there are, in sorted order."""
        return tuple(sorted(self._network.words))

    # --- drawing ----------------------------------------------------------------------------------------------

    def reviews(self, n: int, *, seed: int) -> list[Review]:
        """Draw n reviews with their labels; the same seed gives the same reviews."""
        draw = self._sampler.draw(_count(n), np.random.default_rng(seed))
        words = np.array(self._network.words, dtype=object)
        labels, genres = draw.labels.tolist(), [GENRES[genre] for genre in draw.genres]
        return [
            Review(tuple(words[ids]), label, genre, self.language)
            for ids, label, genre in zip(draw.words, labels, genres, strict=True)
        ]

    def sentence_pairs(self, n: int, *, seed: int) -> list[SentencePair]:
        """Draw n sentences of reviews in both languages, with the grammar's own alignment of their words."""
        return list(islice(self._pair_sampler.sentences(Random(seed)), _count(n)))

    def pairs(self, n: int, *, seed: int) -> list[tuple[str, str]]:
        """Draw n sentences as (English, French), written as people read them."""
        return [
            (write_out(pair.english, "en"), write_out(pair.french, "fr")) for pair in self.sentence_pairs(n, seed=seed)
        ]

    def split(self, text: str) -> list[str]:
        """Split text as people write it into the world's words."""
        return split_up(text, self._network.words)

    # --- exact questions --------------------------------------------------------------------------------------

    def log_prob(self, words: Sequence[str]) -> float:
        """Give log P(words is the whole review) in nats; -inf for what no review reads like."""
        return self._read(words).log_prob_of_end

    def batch_log_prob(self, reviews: Iterable[Sequence[str]]) -> np.ndarray:
        """Give the log-probability of each of many reviews, shape (n,)."""
        return np.array([self._automaton.read(words).log_prob_of_end for words in reviews])

    def next_word(self, prefix: Sequence[str]) -> NextWord:
        """Give the probability of every word that may come next, and of the end of the review under None.

        Parameters
        ----------
        prefix : sequence of str
            First words of a review; may be empty.

        Returns
        -------
        dict from str or None to float
            Sums to 1.

        Raises
        ------
        ValueError
            If the prefix holds a word that the world does not know, or that cannot stand there; it is named.
        """
        state = self._possible(prefix)
        found = self._named(self._automaton.next_word(state))
        end = float(state.stopped.sum()) / state.total
        return {**found, None: end} if end > 0 else dict(found)

    @overload
    def fill(self, words: Sequence[str | None], position: int) -> dict[str, float]: ...
    @overload
    def fill(self, words: Sequence[str | None], position: Sequence[int]) -> list[dict[str, float]]: ...

    def fill(
        self, words: Sequence[str | None], position: int | Sequence[int]
    ) -> dict[str, float] | list[dict[str, float]]:
        """Give the probability of each word at a hidden position, given all the others, left and right.

        Parameters
        ----------
        words : sequence of str
            A whole review; what stands at the hidden positions is not looked at.
        position : int or sequence of int
            Which word is hidden, or which words are; several are hidden all at once.

        Returns
        -------
        dict from str to float, or list of them
            For each hidden position its distribution, which sums to 1.

        Raises
        ------
        ValueError
            If no word makes the rest a review, or a visible word is unknown.
        """
        positions = [position] if isinstance(position, int) else list(position)
        if out := [p for p in positions if not 0 <= p < len(words)]:
            raise ValueError(f"positions must lie in 0 to {len(words) - 1}, got {out}")
        hidden = set(positions)
        visible = [None if index in hidden else word for index, word in enumerate(words)]
        self._check_known([word for word in visible if word is not None])
        after = self._automaton.backward(visible, down_to=min(hidden) + 1)
        filled = []
        for place in positions:
            chances = self._automaton.between(self._automaton.forward(visible[:place]), after[place + 1])
            if not chances.sum() > 0:
                raise ValueError(f"no word at position {place} makes this a review: {' '.join(w or '_' for w in visible)}")
            filled.append(self._named(chances / chances.sum()))
        return filled[0] if isinstance(position, int) else filled

    def label_posterior(self, words: Sequence[str]) -> float:
        """Give P(label = 1 | the whole review)."""
        return float(self._hidden(words).sum(axis=(1, 2))[1])

    def genre_posterior(self, words: Sequence[str]) -> dict[str, float]:
        """Give P(genre | the whole review) for each of `genres`."""
        return dict(zip(GENRES, self._hidden(words).sum(axis=(0, 1)).tolist(), strict=True))

    # --- within -----------------------------------------------------------------------------------------------

    def _read(self, words: Sequence[str]) -> Forward:
        return self._automaton.forward(words)

    def _hidden(self, words: Sequence[str]) -> np.ndarray:
        stopped = self._possible(words).stopped
        if not stopped.any():
            raise ValueError(f"a whole review must end with a sentence and hold two or more, got {' '.join(words)!r}")
        return stopped / stopped.sum()

    def _possible(self, prefix: Sequence[str]) -> Forward:
        self._check_known(prefix)
        state = self._read(prefix)
        if not state.total > 0:
            fine = next(n for n in range(len(prefix)) if not self._read(prefix[: n + 1]).total > 0)
            raise ValueError(f"a prefix must begin some review, but after {' '.join(prefix[:fine])!r} none goes on with {prefix[fine]!r}")
        return state

    def _check_known(self, words: Sequence[str]) -> None:
        for word in words:
            if word not in self._automaton.word_ids:
                raise ValueError(f"words must be in the vocabulary of the world, got {word!r}")

    def _named(self, chances: np.ndarray) -> dict[str, float]:
        return {self._network.words[index]: float(chances[index]) for index in np.flatnonzero(chances)}


def _count(n: int) -> int:
    if n < 0:
        raise ValueError(f"n must be 0 or more, got {n}")
    return n
