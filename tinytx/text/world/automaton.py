r"""Exact probabilities, forward: what a prefix leaves open.

A state of the whole automaton is a pair: where the sentence stands (a state :math:`q` of the `Network`), and
what is hidden above it (label :math:`z`, number of finished sentences :math:`k`, book :math:`g`), kept as an
array of shape (2, K + 1, G). With one more word :math:`w` the weights move along its arcs,

.. math:: \alpha_{t+1}(q', z, k, g) = \sum_{q \to q' \text{ writes } w} \alpha_t(q, z, k, g) \, P(q \to q'
\mid g)

and the mass that reaches the end of a sentence is shared between the end of the review and the entries of the
next sentence. The weights are scaled after each sentence, so that a review of any length stays within
floating point.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tinytx.text.world.network import Network
from tinytx.text.world.reviews import N_LABELS, ReviewPlan

Mass = dict[int, np.ndarray]  # network state -> probability of what is hidden, (2, K + 1, G)
CACHED_PREFIXES = 4096
ROWS_AT_ONCE = 2048  # prefixes whose next words are computed together


@dataclass
class Forward:
    """All that a prefix leaves open.

    Attributes
    ----------
    mass : mapping from int to ndarray of shape (2, K + 1, G)
        Weight of each state that the prefix may have led to, apart from the end of the review.
    stopped : ndarray of shape (2, K + 1, G)
        Weight of the review ending here.
    log_scale : float
        What all weights are to be multiplied by, as a logarithm.
    """

    mass: Mass
    stopped: np.ndarray
    log_scale: float

    @property
    def total(self) -> float:
        """Sum of all weights: 0 where no review begins like this."""
        return float(sum(hidden.sum() for hidden in self.mass.values()) + self.stopped.sum())

    @property
    def hidden(self) -> np.ndarray:
        """P(label, finished sentences, book | prefix), shape (2, K + 1, G)."""
        weight = sum(self.mass.values(), self.stopped)
        return weight / weight.sum()

    @property
    def log_prob(self) -> float:
        """Log-probability that a review begins with the prefix, in nats."""
        return self.log_scale + float(np.log(total)) if (total := self.total) > 0 else -np.inf

    @property
    def log_prob_of_end(self) -> float:
        """Log-probability that the prefix is a whole review, in nats."""
        return self.log_scale + float(np.log(self.stopped.sum())) if self.stopped.any() else -np.inf


class Automaton:
    """Weighted automaton over the words of one language.

    Parameters
    ----------
    network : Network
        Sentences.
    plan : ReviewPlan
        What is hidden above them.
    """

    def __init__(self, network: Network, plan: ReviewPlan) -> None:
        self.network, self.plan = network, plan
        self.word_ids = network.word_ids
        self._nothing = np.zeros((N_LABELS, plan.most_sentences + 1, network.n_books))
        self._stop = plan.stop[None, :, None]
        self._polarity = plan.polarity_given_label()
        self._cache: dict[tuple[str | None, ...], Forward] = {}

    def start(self) -> Forward:
        """Give the state of affairs before the first word."""
        hidden = np.zeros_like(self._nothing)
        hidden[:, 0] = 1.0 / (N_LABELS * self.network.n_books)
        mass: Mass = {}
        self._enter(None, hidden, mass)
        return Forward(mass, self._nothing, 0.0)

    def _enter(self, previous: int | None, hidden: np.ndarray, mass: Mass) -> None:
        """Spread the mass before a sentence over the entries of the network."""
        if not hidden.any():
            return
        for polarity, entries in enumerate(self.network.entries):
            weighted = hidden * self._polarity[:, polarity, None, None]
            for kind, chance in self.plan.opener_chances(previous, polarity).items():
                _add(mass, entries[kind], chance * weighted)

    @cached_property
    def _steps(self) -> dict[tuple[int, int], list[tuple[int, np.ndarray]]]:
        """Where a word leads from a state, with weights in the shape of what is hidden.

        Products of arrays of equal shape take a third of the time of broadcast ones, and this is what
        reading consists of.
        """
        network = self.network
        weights = np.broadcast_to(
            network.weight[:, None, None, :], (len(network.word), *self._nothing.shape)
        ).copy()
        steps: dict[tuple[int, int], list[tuple[int, np.ndarray]]] = defaultdict(list)
        columns = network.source.tolist(), network.word.tolist(), network.target.tolist(), weights
        for source, word, target, weight in zip(*columns, strict=True):
            steps[source, word].append((target, weight))
        return dict(steps)

    def advance(self, before: Forward, word: str) -> Forward:
        """Read one more word; a word that cannot follow leaves no weight."""
        steps = self._steps
        mass: Mass = {}
        if (word_id := self.word_ids.get(word)) is not None:
            for state, hidden in before.mass.items():
                for target, weight in steps.get((state, word_id), ()):
                    _add(mass, target, hidden * weight)
        return self._pass_on(mass, before.log_scale)

    def advance_any(self, before: Forward) -> Forward:
        """Read one hidden word: the weights of all that may stand there together."""
        network = self.network
        mass: Mass = {}
        for state, hidden in before.mass.items():
            for arc in range(network.first[state], network.first[state + 1]):
                _add(mass, int(network.target[arc]), hidden * network.weight[arc])
        return self._pass_on(mass, before.log_scale)

    def _pass_on(self, mass: Mass, log_scale: float) -> Forward:
        """Go on from the ends of sentences to the next ones, or to the end of the review."""
        stopped = self._nothing
        if any(end in mass for end in self.network.ends):
            total = sum(hidden.sum() for hidden in mass.values())
            mass = {state: hidden / total for state, hidden in mass.items()}
            log_scale += float(np.log(total))
            for polarity, end in enumerate(self.network.ends):
                if end in mass:
                    finished = _one_more_sentence(mass.pop(end))
                    stopped = stopped + finished * self._stop
                    self._enter(polarity, finished * (1.0 - self._stop), mass)
        return Forward(mass, stopped, log_scale)

    def read(self, words: Iterable[str | None], state: Forward | None = None) -> Forward:
        """Read words one by one (None: a hidden word), from the beginning or from where a state stands."""
        state = state or self.start()
        for word in words:
            state = self.advance_any(state) if word is None else self.advance(state, word)
        return state

    def prefixes(self, words: Iterable[str | None]) -> list[Forward]:
        """Read words one by one and give what was open before each of them, and at the end."""
        states = [self.start()]
        for word in words:
            states.append(self.read([word], states[-1]))
        return states

    def forward(self, words: Sequence[str | None]) -> Forward:
        """Read a prefix; where all but its last word was read lately, only that word."""
        key = tuple(words)
        if key in self._cache:
            return self._cache[key]
        before = self._cache.get(key[:-1])
        state = self.read(key) if before is None else self.read(key[-1:], before)
        if len(self._cache) >= CACHED_PREFIXES:
            self._cache.clear()
        self._cache[key] = state
        return state

    def forget(self) -> None:
        """Forget which prefixes were read lately, as a measurement of speed must."""
        self._cache.clear()

    def next_words(self, before: Sequence[Forward]) -> np.ndarray:
        """Give P(next word | prefix) for many prefixes.

        Parameters
        ----------
        before : sequence of Forward
            What each prefix leaves open.

        Returns
        -------
        ndarray of shape (n, V + 1)
            One column a word, and the end of the review in the last; rows sum to 1.
        """
        parts = [
            self._next_words(before[at : at + ROWS_AT_ONCE]) for at in range(0, len(before), ROWS_AT_ONCE)
        ]
        return np.concatenate(parts) if parts else np.zeros((0, len(self.network.words) + 1))

    def _next_words(self, before: Sequence[Forward]) -> np.ndarray:
        n_columns = len(self.network.words) + 1
        states = np.array([state for one in before for state in one.mass], dtype=np.int64)
        owner = np.repeat(np.arange(len(before)), [len(one.mass) for one in before])
        hidden = [hidden for one in before for hidden in one.mass.values()]
        by_book = np.array(hidden).reshape(-1, *self._nothing.shape).sum(axis=(1, 2))  # (states, G)
        rows, arcs = self.network.arcs_from(states)
        value = np.einsum("ag,ag->a", by_book[rows], self.network.weight[arcs])
        cell = owner[rows] * n_columns + self.network.word[arcs]
        chances = np.bincount(cell, value, minlength=len(before) * n_columns)
        chances = chances.astype(float).reshape(-1, n_columns)  # without any arc it would be whole numbers
        chances[:, -1] = np.array([one.stopped for one in before]).sum(axis=(1, 2, 3))
        total = np.bincount(owner, by_book.sum(axis=1), minlength=len(before)) + chances[:, -1]
        return chances / total[:, None]


def _add(mass: Mass, state: int, weight: np.ndarray) -> None:
    mass[state] = mass[state] + weight if state in mass else weight


def _one_more_sentence(hidden: np.ndarray) -> np.ndarray:
    moved = np.zeros_like(hidden)
    moved[:, 1:] = hidden[:, :-1]
    return moved
