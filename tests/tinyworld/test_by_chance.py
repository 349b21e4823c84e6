"""What is drawn behaves as the exact chances say, word by word and position by position."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
import pytest

from tinyworld.automaton import Automaton
from tinyworld.reviews import ReviewPlan
from tinyworld.world import World

ENOUGH = 20.0  # a word is judged by itself if the variance of its count is at least this
FALSE_ALARM = 1e-4  # chance of a red test though all is well


@dataclass
class Tally:
    """Counts of each word (and of the end of the review), with what was expected and its variance."""

    seen: np.ndarray
    expected: np.ndarray
    variance: np.ndarray

    @property
    def z(self) -> np.ndarray:
        """One value for each frequent word, one for all the others together."""
        often = self.variance >= ENOUGH
        gap = self.seen - self.expected
        alone = gap[often] / np.sqrt(self.variance[often])
        rest = gap[~often].sum() / np.sqrt(max(self.variance[~often].sum(), 1.0))
        return np.append(alone, rest)


def tally(automaton: Automaton, reviews: Iterable[Sequence[str]], at_once: int = 100) -> Tally:
    """Sum up, over every position of every review, 1[w], p(w) and p(w) (1 - p(w))."""
    listed = list(reviews)
    n_words = len(automaton.network.words)
    seen, expected, squared = np.zeros((3, n_words + 1))
    for start in range(0, len(listed), at_once):
        chunk = listed[start : start + at_once]
        chances = automaton.next_words([state for words in chunk for state in automaton.prefixes(words)])
        said = [[automaton.word_ids[word] for word in words] + [n_words] for words in chunk]
        seen += np.bincount(np.concatenate(said), minlength=n_words + 1)
        expected += chances.sum(axis=0)
        squared += np.einsum("nw,nw->w", chances, chances)
    return Tally(seen, expected, expected - squared)


def looks_normal(z: np.ndarray) -> bool:
    """No single value too far out (Bonferroni), and neither too much nor too little spread overall."""
    furthest = NormalDist().inv_cdf(1.0 - FALSE_ALARM / (2 * len(z)))
    spread = NormalDist().inv_cdf(1.0 - FALSE_ALARM / 2) * np.sqrt(2.0 / len(z))
    return bool(np.abs(z).max() < furthest and abs((z**2).mean() - 1.0) < spread)


def tilted(automaton: Automaton, word: str, factor: float) -> Automaton:
    """Make a word more likely wherever it may stand, and all else a little less."""
    network = automaton.network
    weight = network.weight.copy()
    weight[network.word == automaton.word_ids[word]] *= factor
    total = np.add.reduceat(weight, np.unique(network.source, return_index=True)[1], axis=0)
    weight /= total[np.searchsorted(np.unique(network.source), network.source)]
    return Automaton(replace(network, weight=weight), automaton.plan)


@pytest.mark.parametrize(("n", "wrong"), [(1_000, 1.4), pytest.param(8_000, 1.15, marks=pytest.mark.proof)])
def test_drawn_reviews_follow_the_exact_chances_and_no_others(world, n, wrong):
    reviews = [review.words for review in world.reviews(n, seed=13)]
    found = tally(world.automaton, reviews)
    assert looks_normal(found.z)
    assert abs((found.seen - found.expected)[-1]) < 4.0 * np.sqrt(found.variance[-1])  # of the end
    assert not looks_normal(tally(tilted(world.automaton, "Le", wrong), reviews[:5_000]).z)


@pytest.mark.parametrize("language", ["fr", "en"])
def test_sentence_pairs_follow_the_exact_chances_of_either_language(language):
    world = World(language, plan=ReviewPlan(sentences={3: 1.0}))
    pairs = world.sentence_pairs(2100, seed=14)
    sides = [pair.french if language == "fr" else pair.english for pair in pairs]
    reviews = [sum(sides[i : i + 3], ()) for i in range(0, 2100, 3)]
    found = tally(world.automaton, reviews)
    assert np.isfinite(world.batch_log_prob(reviews)).all()
    assert looks_normal(found.z)


def test_posteriors_are_calibrated(world):
    reviews = world.reviews(1000, seed=15)
    p = np.array([world.label_posterior(review.words) for review in reviews])
    label = np.array([review.label for review in reviews])
    assert abs((label - p).sum()) < 4.0 * np.sqrt((p * (1.0 - p)).sum())
