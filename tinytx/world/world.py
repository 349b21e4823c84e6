"""The world as people use it: reviews, sentence pairs and exact questions about them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, overload

import numpy as np

from tinytx.world.automaton import Automaton, Forward, Network, build_network
from tinytx.world.backward import Backward
from tinytx.world.grammar import Grammar
from tinytx.world.lexicon import GENRES, TABLES
from tinytx.world.reviews import Review, ReviewPlan
from tinytx.world.sampling import PairSampler, ReviewSampler, SentencePair
from tinytx.world.tokens import TokenWorld
from tinytx.world.typography import split_up, write_out

if TYPE_CHECKING:
    from tinytx.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Estimate:
    """A mean of exact values over drawn reviews.

    Attributes
    ----------
    mean : float
    standard_error : float
        What chance in the drawing contributes.
    n : int
        Number of reviews drawn.
    """

    mean: float
    standard_error: float
    n: int

    def __str__(self) -> str:
        return f"{self.mean:.4f} ± {self.standard_error:.4f} ({self.n:,} reviews)"


@dataclass(frozen=True)
class Entropies:
    """How uncertain each word of a review is, in nats.

    Attributes
    ----------
    left : ndarray of shape (T,)
        Given all words before it; that the review may have ended there is one of the outcomes.
    both : ndarray of shape (T,)
        Given all other words, before and after.
    """

    left: np.ndarray
    both: np.ndarray


def entropy(chances: np.ndarray) -> np.ndarray:
    """Give the entropy in nats of distributions in the last axis.

    Examples
    --------
    >>> bool(np.isclose(entropy(np.array([0.5, 0.5, 0.0])), np.log(2.0)))
    True
    """
    return -(chances * np.log(np.where(chances > 0, chances, 1.0))).sum(axis=-1)


def entropies(automaton: Automaton, backward: Backward, words: Sequence[str]) -> Entropies:
    """Give the entropy at each word of a review, sharing one forward and one backward pass."""
    before, after = automaton.prefixes(words), backward.layers(words)
    both = []
    for position in range(len(words)):
        chances = backward.between(before[position], after[position + 1])
        both.append(entropy(chances / chances.sum()))
    return Entropies(entropy(automaton.next_words(before[:-1])), np.array(both))


def mean_per_word(values: Sequence[np.ndarray]) -> Estimate:
    """Average over all words of all reviews, given the values of the words of each."""
    sums, counts = np.array([one.sum() for one in values]), np.array([len(one) for one in values])
    mean, n = sums.sum() / counts.sum(), len(values)
    residual = sums - mean * counts
    error = np.sqrt((residual**2).sum() * n / (n - 1)) / counts.sum()
    return Estimate(float(mean), float(error), n)


def entropy_per_word(automaton: Automaton, reviews: Sequence[Sequence[str]]) -> Estimate:
    """Average the entropy of the next word, or end, over all places of all reviews.

    Its expectation is that of ``-log P(review)`` per prediction, but it varies less from review to review.
    """
    return mean_per_word([entropy(automaton.next_words(automaton.prefixes(words))) for words in reviews])


def best_accuracy(
    automaton: Automaton, reviews: Sequence[Sequence[str]], n_sentences: int | None
) -> Estimate:
    """Average max(p, 1 - p), where p is the chance of label 1 given the first sentences of each review."""
    states = (_after(automaton, words, n_sentences) for words in reviews)
    certainty = np.array([state.hidden.sum(axis=(1, 2)).max() for state in states])
    return Estimate(float(certainty.mean()), float(certainty.std(ddof=1) / len(reviews) ** 0.5), len(reviews))


def _after(automaton: Automaton, words: Sequence[str], n_sentences: int | None) -> Forward:
    state = automaton.start()
    for word in words:
        if n_sentences is not None and _finished(state) >= n_sentences:
            break
        state = automaton.advance(state, word)
    return state


def _finished(state: Forward) -> int:
    """Say how many sentences have ended, as far as the words tell."""
    return int(state.hidden.sum(axis=(0, 2)).argmax())


NextWord = dict[str | None, float]


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

    Attributes
    ----------
    vocabulary : tuple of str
        All words there are, in sorted order.
    automaton, backward : Automaton, Backward
        Sums over all that may be hidden, for those who want more than the questions asked here.

    Examples
    --------
    >>> world = World()
    >>> review = world.reviews(1, seed=3)[0]
    >>> round(sum(world.next_word(review.words[:4]).values()), 9)
    1.0
    >>> world.log_prob(["Bonjour", "le", "monde"])
    -inf
    """

    genres = GENRES

    def __init__(self, language: str = "fr", tables: Path = TABLES, plan: ReviewPlan | None = None) -> None:
        if language not in ("fr", "en"):
            raise ValueError(f"language must be 'fr' or 'en', got {language!r}")
        self.language, self.plan = language, plan or ReviewPlan()
        self.grammar, network = _compiled(Path(tables), language)
        self.vocabulary, self.books = network.words, self.grammar.lexicon.books
        self.automaton = Automaton(network, self.plan)
        self.backward = Backward(network, self.plan)
        self._sampler = ReviewSampler(network, self.plan)
        self._pair_sampler = PairSampler(self.grammar, self.plan)

    # --- drawing ------------------------------------------------------------------------------------

    def reviews(self, n: int, *, seed: int) -> list[Review]:
        """Draw n reviews with their labels; the same seed gives the same reviews."""
        draw = self._sampler.draw(_count(n), np.random.default_rng(seed))
        words = np.array(self.vocabulary, dtype=object)
        labels, books = draw.labels.tolist(), [self.books[book] for book in draw.books]
        return [
            Review(tuple(words[ids]), label, book.genre, book.noun, self.language)
            for ids, label, book in zip(draw.words, labels, books, strict=True)
        ]

    def sentence_pairs(self, n: int, *, seed: int) -> list[SentencePair]:
        """Draw n sentences of reviews in both languages, with the grammar's own alignment of their words."""
        return list(islice(self._pair_sampler.sentences(Random(seed)), _count(n)))

    def pairs(self, n: int, *, seed: int) -> list[tuple[str, str]]:
        """Draw n sentences as (English, French), written as people read them."""
        pairs = self.sentence_pairs(n, seed=seed)
        return [(write_out(pair.english, "en"), write_out(pair.french, "fr")) for pair in pairs]

    def split(self, text: str) -> list[str]:
        """Split text as people write it into the world's words."""
        return split_up(text, self.vocabulary)

    # --- exact questions ----------------------------------------------------------------------------

    def log_prob(self, words: Sequence[str]) -> float:
        """Give log P(words is the whole review) in nats; -inf for what no review reads like."""
        return self.automaton.forward(words).log_prob_of_end

    def batch_log_prob(self, reviews: Iterable[Sequence[str]]) -> np.ndarray:
        """Give the log-probability of each of many reviews, shape (n,)."""
        return np.array([self.automaton.read(words).log_prob_of_end for words in reviews])

    def next_word(self, prefix: Sequence[str]) -> NextWord:
        """Give the probability of every word that may come next, and of the end of the review under None.

        Parameters
        ----------
        prefix : sequence of str
            First words of a review; may be empty.

        Returns
        -------
        dict from str or None to float
            Sums to 1; the most probable word comes first. None is there only if the review may end here.

        Raises
        ------
        ValueError
            If the prefix holds a word that the world does not know, or that cannot stand there; it is named.
        """
        chances = self.automaton.next_words([self._possible(prefix)])[0]
        words: tuple[str | None, ...] = (*self.vocabulary, None)
        return {words[index]: chance for index, chance in _ranked(chances)}

    def next_words(self, words: Sequence[str]) -> np.ndarray:
        """Give P(next word) at every place of a review.

        Parameters
        ----------
        words : sequence of str
            A whole review, or its beginning.

        Returns
        -------
        ndarray of shape (T + 1, V + 1)
            Row t: after t words. Columns: the words of `vocabulary`, then the end of the review; rows sum to
            1.
        """
        self._possible(words)
        return self.automaton.next_words(self.automaton.prefixes(words))

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
            For each hidden position its distribution, which sums to 1; the most probable word comes first.

        Raises
        ------
        ValueError
            If no word makes the rest a review, or a visible word is unknown.
        """
        positions = [position] if isinstance(position, int) else list(position)
        if out := [p for p in positions if not 0 <= p < len(words)]:
            raise ValueError(f"positions must lie in 0 to {len(words) - 1}, got {out}")
        if not positions:
            return []
        hidden = set(positions)
        visible = [None if index in hidden else word for index, word in enumerate(words)]
        self._check_known([word for word in visible if word is not None])
        after = self.backward.layers(visible, down_to=min(hidden) + 1)
        filled = []
        for place in positions:
            chances = self.backward.between(self.automaton.forward(visible[:place]), after[place + 1])
            if not chances.sum() > 0:
                shown = " ".join(word or "_" for word in visible)
                raise ValueError(f"some word must make this a review, but none does at {place}: {shown}")
            found = _ranked(chances / chances.sum())
            filled.append({self.vocabulary[index]: chance for index, chance in found})
        return filled[0] if isinstance(position, int) else filled

    def label_posterior(self, words: Sequence[str]) -> float:
        """Give P(label = 1 | the whole review)."""
        return float(self._hidden(words).sum(axis=(1, 2))[1])

    def genre_posterior(self, words: Sequence[str]) -> dict[str, float]:
        """Give P(genre | the whole review) for each of `genres`."""
        chances = dict.fromkeys(GENRES, 0.0)
        for book, chance in zip(self.books, self._hidden(words).sum(axis=(0, 1)).tolist(), strict=True):
            chances[book.genre] += chance
        return chances

    def entropies(self, words: Sequence[str]) -> Entropies:
        """Give how uncertain each word of a review is, given what stands left, and given both sides."""
        self._hidden(words)
        return entropies(self.automaton, self.backward, words)

    def through(self, tokenizer: Tokenizer) -> TokenWorld:
        """Ask the same questions about the pieces that a tokenizer makes of the words."""
        return TokenWorld(self.automaton, self.backward, tokenizer)

    # --- expectations -------------------------------------------------------------------------------

    def entropy_per_word(self, *, n: int = 1000, seed: int = 0) -> Estimate:
        """Estimate the nats that the best model loses per prediction (each word, and the end of a review)."""
        return entropy_per_word(self.automaton, self._drawn(n, seed))

    def mean_conditional_entropy(self, sides: str = "left", *, n: int = 200, seed: int = 0) -> Estimate:
        """Estimate the entropy of a word in nats, given all to its ``"left"``, or given ``"both"`` sides."""
        if sides not in ("left", "both"):
            raise ValueError(f"sides must be 'left' or 'both', got {sides!r}")
        found = [self.entropies(words) for words in self._drawn(n, seed)]
        return mean_per_word([one.left if sides == "left" else one.both for one in found])

    def best_accuracy(self, n_sentences: int | None = None, *, n: int = 1000, seed: int = 0) -> Estimate:
        """Estimate how often the best guess of the label is right, after the first `n_sentences` or all."""
        if n_sentences is not None and n_sentences < 0:
            raise ValueError(f"n_sentences must be 0 or more, got {n_sentences}")
        return best_accuracy(self.automaton, self._drawn(n, seed), n_sentences)

    # --- within -------------------------------------------------------------------------------------

    def _drawn(self, n: int, seed: int) -> list[tuple[str, ...]]:
        if n < 2:
            raise ValueError(f"n must be 2 or more, got {n}")
        return [review.words for review in self.reviews(n, seed=seed)]

    def _hidden(self, words: Sequence[str]) -> np.ndarray:
        stopped = self._possible(words).stopped
        if not stopped.any():
            fewest = min(self.plan.sentences)
            raise ValueError(f"a review must hold {fewest} or more whole sentences, got {' '.join(words)!r}")
        return stopped / stopped.sum()

    def _possible(self, prefix: Sequence[str]) -> Forward:
        self._check_known(prefix)
        state = self.automaton.forward(prefix)
        if not state.total > 0:
            known = self.automaton.prefixes(prefix)
            fine = next(length for length, one in enumerate(known[1:]) if not one.total > 0)
            said = f"after {' '.join(prefix[:fine])!r} none goes on with {prefix[fine]!r}"
            raise ValueError(f"a prefix must begin some review, but {said}")
        return state

    def _check_known(self, words: Iterable[str]) -> None:
        for word in words:
            if word not in self.automaton.word_ids:
                raise ValueError(f"words must be in the vocabulary of the world, got {word!r}")


def _ranked(chances: np.ndarray) -> list[tuple[int, float]]:
    possible = np.flatnonzero(chances)
    order = possible[np.argsort(-chances[possible], kind="stable")]
    return list(zip(order.tolist(), chances[order].tolist(), strict=True))


def _count(n: int) -> int:
    if n < 0:
        raise ValueError(f"n must be 0 or more, got {n}")
    return n
