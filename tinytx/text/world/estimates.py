r"""Entropies of one review, and expectations over the language as means over drawn reviews.

Every value that is averaged is exact: only which reviews are drawn is left to chance, and the standard error
says how much that matters. A mean per word over reviews of different lengths is a ratio of sums, :math:`r =
\sum_i x_i / \sum_i n_i`, whose standard error follows from the residuals :math:`x_i - r \, n_i`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinytx.text.world.automaton import Automaton, Forward
from tinytx.text.world.backward import Backward


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
