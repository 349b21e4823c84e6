"""The world: reviews and sentence pairs to learn from, and the exact probabilities of all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from random import Random

import numpy as np

from tinyworld.automaton import Automaton, Backward, Forward
from tinyworld.grammar import Grammar
from tinyworld.lexicon import TABLES
from tinyworld.network import Network, build_network
from tinyworld.reviews import Review, ReviewPlan, split_up, write_out
from tinyworld.sampling import PairSampler, ReviewSampler, SentencePair
from tinyworld.tokens import Tokenizer, TokenWorld


@dataclass(frozen=True)
class Estimate:
    """A mean of exact values over drawn reviews.

    Attributes
    ----------
    mean : float
    standard_error : float
        Of the mean, by sampling.
    n : int
        Number of reviews drawn.

    Examples
    --------
    >>> print(Estimate(1.25, 0.01, 2_000))
    1.2500 ± 0.0100 (2,000 reviews)
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
        Given all words before it; the end of the review is one of the outcomes.
    both : ndarray of shape (T,)
        Given all other words, before and after.

    Examples
    --------
    Two sides leave less open than one:

    >>> found = World().entropies(World().reviews(1, seed=3)[0].words)
    >>> bool(found.both.mean() < found.left.mean())
    True
    """

    left: np.ndarray
    both: np.ndarray


def entropy(chances: np.ndarray) -> np.ndarray:
    """Entropy in nats of distributions in the last axis.

    Examples
    --------
    >>> bool(np.isclose(entropy(np.array([0.5, 0.5, 0.0])), np.log(2.0)))
    True
    """
    nats: np.ndarray = -(chances * np.log(np.where(chances > 0, chances, 1.0))).sum(axis=-1)
    return nats


def mean_per_word(values: Sequence[np.ndarray]) -> Estimate:
    """Mean over all words of all reviews, given the values of the words of each; a ratio estimate."""
    sums, counts = np.array([one.sum() for one in values]), np.array([len(one) for one in values])
    mean, n = sums.sum() / counts.sum(), len(values)
    residual = sums - mean * counts
    error = np.sqrt((residual**2).sum() * n / (n - 1)) / counts.sum()
    return Estimate(float(mean), float(error), n)


def _content(tables: Path) -> str:
    files = sorted(tables.glob("*.tsv"))
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


@lru_cache(maxsize=8)
def _compiled(tables: Path, language: str, content: str) -> tuple[Grammar, Network]:
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
        Distribution of the hidden variables.

    Attributes
    ----------
    vocabulary : tuple of str
        All words, sorted.
    automaton, backward : Automaton, Backward
        Forward and backward probabilities.

    Examples
    --------
    >>> world = World()
    >>> review = world.reviews(1, seed=3)[0]
    >>> round(sum(world.next_word(review.words[:4]).values()), 9)
    1.0
    >>> world.log_prob(["Bonjour", "le", "monde"])
    -inf
    """

    def __init__(self, language: str = "fr", tables: Path = TABLES, plan: ReviewPlan | None = None) -> None:
        if language not in ("fr", "en"):
            raise ValueError(f"language must be 'fr' or 'en', got {language!r}")
        self.language, self.plan = language, plan or ReviewPlan()
        self.grammar, network = _compiled(Path(tables), language, _content(Path(tables)))
        kinds = network.entries[0].keys()
        for place, chances in self.plan.openers.items():
            if unknown := sorted(chances.keys() - kinds):
                known = ", ".join(sorted(kinds))
                raise ValueError(f"openers of {place} must be {known}, as in openers.tsv, got {unknown[0]!r}")
        self.vocabulary, self.books = network.words, self.grammar.lexicon.books
        self.automaton = Automaton(network, self.plan)
        self.backward = Backward(network, self.plan)
        self._sampler = ReviewSampler(network, self.plan)
        self._pair_sampler = PairSampler(self.grammar, self.plan)

    def reviews(self, n: int, *, seed: int) -> list[Review]:
        """Draw n reviews with their labels; equal seeds give equal reviews."""
        drawn, labels, books = self._sampler.draw(_count(n), np.random.default_rng(seed))
        words = np.array(self.vocabulary, dtype=object)
        return [
            Review(tuple(words[ids]), label, self.books[book].genre, self.books[book].noun, self.language)
            for ids, label, book in zip(drawn, labels.tolist(), books, strict=True)
        ]

    def sentence_pairs(self, n: int, *, seed: int) -> list[SentencePair]:
        """Draw n sentences in both languages, with the alignment of their words by the grammar."""
        return list(islice(self._pair_sampler.sentences(Random(seed)), _count(n)))

    def pairs(self, n: int, *, seed: int) -> list[tuple[str, str]]:
        """Draw n sentences as (English, French), written as people read them."""
        pairs = self.sentence_pairs(n, seed=seed)
        return [(write_out(pair.english, "en"), write_out(pair.french, "fr")) for pair in pairs]

    def split(self, text: str) -> list[str]:
        """Split text as people write it into the world's words."""
        return split_up(text, self.vocabulary)

    def log_prob(self, words: Sequence[str]) -> float:
        """log P(words is the whole review) in nats; -inf if no review has these words."""
        if isinstance(words, str):
            raise TypeError("words must be a sequence of str, got one str")
        return self.automaton.forward(words).log_prob_of_end

    def batch_log_prob(self, reviews: Iterable[Sequence[str]]) -> np.ndarray:
        """The log-probability of each of many reviews, shape (n,)."""
        return np.array([self.automaton.read(words).log_prob_of_end for words in reviews])

    def next_word(self, prefix: Sequence[str]) -> dict[str | None, float]:
        """The probability of every possible next word, and of the end of the review under None.

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
            If the prefix has a word that is unknown or cannot follow; it is named.
        """
        chances = self.automaton.next_words([self._possible(prefix)])[0]
        words: tuple[str | None, ...] = (*self.vocabulary, None)
        return {words[index]: chance for index, chance in _ranked(chances)}

    def next_words(self, words: Sequence[str]) -> np.ndarray:
        """P(next word) at every position of a review.

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

    def fill(
        self, words: Sequence[str | None], position: int | Sequence[int]
    ) -> dict[str, float] | list[dict[str, float]]:
        """The probability of each word at a hidden position, given all the others, left and right.

        Parameters
        ----------
        words : sequence of str
            A whole review; the words at hidden positions are ignored.
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
        positions = list(position) if isinstance(position, Iterable) else [position]
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
        return filled if isinstance(position, Iterable) else filled[0]

    def label_posterior(self, words: Sequence[str]) -> float:
        """P(label = 1 | the whole review)."""
        return float(self._hidden(words).sum(axis=(1, 2))[1])

    def entropies(self, words: Sequence[str]) -> Entropies:
        """The entropy of each word of a review, given the words to its left, and given both sides."""
        self._hidden(words)
        before, after = self.automaton.prefixes(words), self.backward.layers(words)
        both = []
        for position in range(len(words)):
            chances = self.backward.between(before[position], after[position + 1])
            both.append(entropy(chances / chances.sum()))
        return Entropies(entropy(self.automaton.next_words(before[:-1])), np.array(both))

    def through(self, tokenizer: Tokenizer) -> TokenWorld:
        """The same probabilities for the tokens of a tokenizer."""
        return TokenWorld(self.automaton, self.backward, tokenizer)

    def _hidden(self, words: Sequence[str]) -> np.ndarray:
        stopped = self._possible(words).stopped
        if not stopped.any():
            fewest = min(self.plan.sentences)
            raise ValueError(f"a review must hold {fewest} or more whole sentences, got {' '.join(words)!r}")
        chances: np.ndarray = stopped / stopped.sum()
        return chances

    def _possible(self, prefix: Sequence[str]) -> Forward:
        self._check_known(prefix)
        state = self.automaton.forward(prefix)
        if not state.total > 0:
            known = self.automaton.prefixes(prefix)
            fine = next(length for length, one in enumerate(known[1:]) if not one.total > 0)
            said = f"after {' '.join(prefix[:fine])!r} none continues with {prefix[fine]!r}"
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
