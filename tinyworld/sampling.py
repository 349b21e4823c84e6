"""Sampling: whole reviews from the network, and sentences in both languages with their alignment."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from random import Random

import numpy as np

from tinyworld.grammar import Grammar, capitalised
from tinyworld.network import Network
from tinyworld.reviews import N_LABELS, ReviewPlan

Tagged = list[tuple[str, str | None]]


@dataclass(frozen=True)
class SentencePair:
    """A sentence in both languages.

    Attributes
    ----------
    english, french : tuple of str
        Its words.
    alignment : tuple of (int, int)
        Pairs (position in English, position in French) of words that translate each other, by the grammar.

    Examples
    --------
    >>> from tinyworld.world import World
    >>> pair = World().sentence_pairs(1, seed=3)[0]
    >>> [(pair.english[i], pair.french[j]) for i, j in pair.alignment][:4]
    [('I', "J'"), ('detested', 'détesté'), ('this', 'ce'), ('unreadable', 'illisible')]
    """

    english: tuple[str, ...]
    french: tuple[str, ...]
    alignment: tuple[tuple[int, int], ...]


class ReviewSampler:
    """Draws many reviews in step: in each round, every unfinished review writes one word."""

    def __init__(self, network: Network, plan: ReviewPlan) -> None:
        self._network, self._plan = network, plan
        self._n_states = len(network.first) - 1
        self._cumulative = np.concatenate([self._within_states(book) for book in range(network.n_books)])
        self._entry_states, self._entry_chances = self._entry_table()

    def _within_states(self, book: int) -> np.ndarray:
        """Cumulative probability of the arcs of each state, plus the state: one sorted array."""
        network = self._network
        running = np.cumsum(network.weight[:, book])
        before = np.r_[0.0, running][network.first[network.source]]
        within = running - before
        last = network.first[1:][np.diff(network.first) > 0] - 1
        within[last] = 1.0
        cumulative: np.ndarray = np.minimum(within, 1.0) + network.source + book * self._n_states
        return cumulative

    def _entry_table(self) -> tuple[np.ndarray, np.ndarray]:
        """The entries of the network, and their cumulative chances, (3 previous, 2 labels, entries)."""
        spots = [(p, kind) for p, entries in enumerate(self._network.entries) for kind in entries]
        polarity = self._plan.polarity_given_label()
        chances = np.array(
            [
                [
                    [
                        polarity[label, p] * self._plan.opener_chances(prev, p).get(kind, 0.0)
                        for p, kind in spots
                    ]
                    for label in range(N_LABELS)
                ]
                for prev in (0, 1, None)
            ]
        )
        return np.array([self._network.entries[p][kind] for p, kind in spots]), np.cumsum(chances, axis=-1)

    def draw(self, n: int, rng: np.random.Generator) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
        """Draw n reviews: the word ids of each, their labels, (n,), and their books, (n,)."""
        network, plan = self._network, self._plan
        labels, books = rng.integers(N_LABELS, size=n), rng.integers(network.n_books, size=n)
        counts, chances = zip(*plan.sentences.items(), strict=True)
        left = rng.choice(counts, p=chances, size=n)
        state = self._begin(np.full(n, 2), labels, rng)
        active, columns = np.arange(n), []
        while len(active):
            key = state[active] + books[active] * self._n_states + rng.random(len(active))
            arc = np.searchsorted(self._cumulative, key, side="right") - books[active] * len(network.source)
            column = np.full(n, -1, dtype=np.int32)
            column[active] = network.word[arc]
            columns.append(column)
            state[active] = network.target[arc]
            for polarity, end in enumerate(network.ends):
                ended = active[state[active] == end]
                left[ended] -= 1
                state[ended] = self._begin(np.full(len(ended), polarity), labels[ended], rng)
            active = active[left[active] > 0]
        table = np.stack(columns, axis=1) if columns else np.empty((n, 0), dtype=np.int32)
        lengths = (table >= 0).sum(axis=1)
        return [row[:length] for row, length in zip(table, lengths, strict=True)], labels, books

    def _begin(self, previous: np.ndarray, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        cumulative = self._entry_chances[previous, labels]
        spot = (rng.random(len(labels))[:, None] >= cumulative).sum(axis=1)
        states: np.ndarray = self._entry_states[np.minimum(spot, len(self._entry_states) - 1)]
        return states


class PairSampler:
    """Draws sentences of reviews in both languages."""

    def __init__(self, grammar: Grammar, plan: ReviewPlan) -> None:
        self._grammar, self._plan = grammar, plan
        self._rules = {
            polarity: (rules, list(accumulate(rule.weight for rule in rules)))
            for polarity, rules in grammar.rules.items()
        }
        self._cumulated = cache(self._cumulated_choices)

    def _cumulated_choices(self, polarity: str, index: int, slot: int, book: int) -> list[float]:
        choices = self._rules[polarity][0][index].slots[slot]
        return list(accumulate(choice.weights[book] for choice in choices))

    def sentences(self, random: Random) -> Iterator[SentencePair]:
        """Draw reviews without end, and yield their sentences."""
        plan, polarities = self._plan, tuple(self._rules)
        counts, count_chances = list(plan.sentences), list(plan.sentences.values())
        while True:
            label, book = random.randrange(N_LABELS), random.randrange(len(self._grammar.lexicon.books))
            previous = None
            for _ in range(random.choices(counts, count_chances)[0]):
                polarity = label if random.random() < plan.agreement else 1 - label
                openers = plan.opener_chances(previous, polarity)
                kind = random.choices(list(openers), list(openers.values()))[0]
                yield self._sentence(polarities[polarity], book, kind, random)
                previous = polarity

    def _sentence(self, polarity: str, book: int, kind: str, random: Random) -> SentencePair:
        rules, cumulated = self._rules[polarity]
        index = _pick(cumulated, random)
        rule = rules[index]
        filled = {
            slot: choices[_pick(self._cumulated(polarity, index, slot, book), random)]
            for slot, choices in rule.slots.items()
        }
        openers = [opener for opener in self._grammar.openers if opener.kind == kind]
        opener = random.choice(openers) if openers else None
        written = {language: rule.write(language, filled) for language in ("en", "fr")}
        english, french = (
            opener.tagged(language) + words if opener else capitalised(words)
            for language, words in written.items()
        )
        return align(english, french)


def _pick(cumulated: list[float], random: Random) -> int:
    return min(bisect(cumulated, random.random() * cumulated[-1]), len(cumulated) - 1)


def align(english: Tagged, french: Tagged) -> SentencePair:
    """Pair the words of two sentences that carry the same tag."""
    alignment = tuple(
        (i, j)
        for i, (_, tag) in enumerate(english)
        for j, (_, other) in enumerate(french)
        if tag is not None and tag == other
    )
    return SentencePair(tuple(w for w, _ in english), tuple(w for w, _ in french), alignment)
