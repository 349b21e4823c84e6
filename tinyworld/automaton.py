r"""The weighted automaton: exact forward and backward probabilities, as in a hidden Markov model.

A state of the automaton is a pair: a state :math:`q` of the `Network` of sentences, and the hidden variables
of the review (label :math:`z`, number of finished sentences :math:`k`, book :math:`g`), as an array of shape
(2, K + 1, G). The forward probability of a prefix sums over all paths that write it,

.. math:: \alpha_{t+1}(q', z, k, g) = \sum_{q \to q' \text{ writes } w_{t+1}} \alpha_t(q, z, k, g) \,
P(q \to q' \mid g)

and what reaches the end of a sentence is shared between the end of the review and the entries of the next
sentence. The backward probability sums over all ways to write the rest,

.. math:: \beta_t(q, z, k, g) = \sum_{q \to q' \text{ writes } w_{t+1}} P(q \to q' \mid g) \,
\beta_{t+1}(q', z, k, g)

so the probability of a hidden word is proportional to
:math:`\sum \alpha_t(q) \, P(q \to q') \, \beta_{t+1}(q')` over the arcs that write it. Both are scaled, such
that a review of any length stays within floating point.

References
----------
Rabiner, "A tutorial on hidden Markov models", Proceedings of the IEEE 77(2), 1989, section III.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tinyworld.network import Network
from tinyworld.reviews import N_LABELS, ReviewPlan

Mass = dict[int, np.ndarray]  # network state -> probability of what is hidden, (2, K + 1, G)
CACHED_PREFIXES = 4096
ROWS_AT_ONCE = 2048  # prefixes whose next words are computed together


@dataclass
class Forward:
    """Forward probabilities of a prefix."""

    mass: Mass  # of each state of the network that the prefix can lead to, except the end of the review
    stopped: np.ndarray  # (2, K + 1, G): of the review that ends here
    log_scale: float  # logarithm of the factor of all of them

    @property
    def total(self) -> float:
        """Sum of all probabilities, without the scale; 0 if no review begins with the prefix."""
        return float(sum(hidden.sum() for hidden in self.mass.values()) + self.stopped.sum())

    @property
    def hidden(self) -> np.ndarray:
        """P(label, finished sentences, book | prefix), shape (2, K + 1, G)."""
        weight = sum(self.mass.values(), self.stopped)
        chances: np.ndarray = weight / weight.sum()
        return chances

    @property
    def log_prob(self) -> float:
        """Log-probability that a review begins with the prefix, in nats."""
        return self.log_scale + float(np.log(total)) if (total := self.total) > 0 else -np.inf

    @property
    def log_prob_of_end(self) -> float:
        """Log-probability that the prefix is a whole review, in nats."""
        return self.log_scale + float(np.log(self.stopped.sum())) if self.stopped.any() else -np.inf


class Automaton:
    """Forward pass over the network of the sentences of one language, and the hidden variables of a plan."""

    def __init__(self, network: Network, plan: ReviewPlan) -> None:
        self.network, self.plan = network, plan
        self.word_ids = network.word_ids
        self._nothing = np.zeros((N_LABELS, plan.most_sentences + 1, network.n_books))
        self._stop = plan.stop[None, :, None]
        self._polarity = plan.polarity_given_label()
        self._cache: dict[tuple[str | None, ...], Forward] = {}

    def start(self) -> Forward:
        """Forward probabilities before the first word."""
        hidden = np.zeros_like(self._nothing)
        hidden[:, 0] = 1.0 / (N_LABELS * self.network.n_books)
        mass: Mass = {}
        self._enter(None, hidden, mass)
        return Forward(mass, self._nothing, 0.0)

    def _enter(self, previous: int | None, hidden: np.ndarray, mass: Mass) -> None:
        """Spread the probability before a sentence over the entries of the network."""
        if not hidden.any():
            return
        for polarity, entries in enumerate(self.network.entries):
            weighted = hidden * self._polarity[:, polarity, None, None]
            for kind, chance in self.plan.opener_chances(previous, polarity).items():
                _add(mass, entries[kind], chance * weighted)

    @cached_property
    def _steps(self) -> dict[tuple[int, int], list[tuple[int, np.ndarray]]]:
        """The arcs of each state and word, with weights in the shape of the hidden variables."""
        # Products of arrays of equal shape take a third of the time of broadcast ones.
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
        """Read one more word; after a word that cannot follow, the total is 0."""
        steps = self._steps
        mass: Mass = {}
        if (word_id := self.word_ids.get(word)) is not None:
            for state, hidden in before.mass.items():
                for target, weight in steps.get((state, word_id), ()):
                    _add(mass, target, hidden * weight)
        return self._pass_on(mass, before.log_scale)

    def advance_any(self, before: Forward) -> Forward:
        """Read one hidden word: sum over all words that can follow."""
        network = self.network
        mass: Mass = {}
        for state, hidden in before.mass.items():
            for arc in range(network.first[state], network.first[state + 1]):
                _add(mass, int(network.target[arc]), hidden * network.weight[arc])
        return self._pass_on(mass, before.log_scale)

    def _pass_on(self, mass: Mass, log_scale: float) -> Forward:
        """Pass from the ends of sentences to the next sentences, or to the end of the review."""
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
        """Read words one by one (None: a hidden word), from the beginning or after `state`."""
        state = state or self.start()
        for word in words:
            state = self.advance_any(state) if word is None else self.advance(state, word)
        return state

    def prefixes(self, words: Iterable[str | None]) -> list[Forward]:
        """Forward probabilities before each word (None: a hidden word), and after the last."""
        states = [self.start()]
        for word in words:
            states.append(self.read([word], states[-1]))
        return states

    def forward(self, words: Sequence[str | None]) -> Forward:
        """Forward probabilities of a prefix; cached, so a prefix that is one word longer costs one step."""
        key = tuple(words)
        if key in self._cache:
            return self._cache[key]
        before = self._cache.get(key[:-1])
        state = self.read(key) if before is None else self.read(key[-1:], before)
        if len(self._cache) >= CACHED_PREFIXES:
            self._cache.clear()
        self._cache[key] = state
        return state

    def next_words(self, before: Sequence[Forward]) -> np.ndarray:
        """P(next word | prefix) for n prefixes, (n, V + 1); the last column is the end of the review."""
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


@dataclass
class Layer:
    """Backward probabilities of sorted states, up to a factor: shape (n, 2, K + 1, G)."""

    states: np.ndarray
    weight: np.ndarray

    def find(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which of some states are in the layer, and in which rows."""
        if not len(self.states):
            empty = np.empty(0, dtype=np.int64)
            return empty, empty
        rows = np.minimum(np.searchsorted(self.states, states), len(self.states) - 1)
        inside = np.flatnonzero(self.states[rows] == states)
        return inside, rows[inside]

    def scaled(self) -> Layer:
        """Divided by the largest entry; empty if that is 0."""
        largest = self.weight.max()
        if not largest > 0:
            return Layer(self.states[:0], self.weight[:0])
        return Layer(self.states, self.weight / largest)


class Backward:
    """Backward pass over the same network and plan as an `Automaton`."""

    def __init__(self, network: Network, plan: ReviewPlan) -> None:
        self.network, self.plan = network, plan
        self._shape = (N_LABELS, plan.most_sentences + 1, network.n_books)
        self._stop = plan.stop[None, :, None]
        self._polarity = plan.polarity_given_label()
        self._is_entry = np.zeros(len(network.first), dtype=bool)
        self._is_entry[[state for entries in network.entries for state in entries.values()]] = True
        order = np.argsort(network.word, kind="stable")  # arcs of each word, sorted by source
        self._by_word = np.split(
            order, np.searchsorted(network.word[order], np.arange(1, len(network.words)))
        )

    def layers(self, words: Sequence[str | None], down_to: int = 0) -> list[Layer]:
        """Backward probabilities of a review at each position (None: a hidden word).

        Layer t, from `down_to` on, lies *after* word t - 1 and before the passage to a next sentence; those
        below are empty. The largest entry of each is 1.
        """
        nothing = Layer(np.empty(0, dtype=np.int64), np.empty((0, *self._shape)))
        layers = [nothing] * (len(words) + 1)
        ends = np.array(self.network.ends)
        finished = _one_less_sentence(np.broadcast_to(self._stop, self._shape))
        layers[len(words)] = Layer(ends, np.stack([finished] * len(ends)))
        for position in range(len(words) - 1, down_to - 1, -1):
            layers[position] = self._retreat(layers[position + 1], words[position])
        return layers

    def _retreat(self, after: Layer, word: str | None) -> Layer:
        """Pass one word backward and, if a sentence begins with it, the passage before it."""
        arcs = self._arcs_of(word)
        inside, rows = after.find(self.network.target[arcs])
        arcs = arcs[inside]
        if not len(arcs):
            return Layer(arcs, after.weight[:0])
        flow = after.weight[rows] * self.network.weight[arcs][:, None, None, :]
        source = self.network.source[arcs]
        begins = np.flatnonzero(np.r_[True, source[1:] != source[:-1]])
        return self._before_entries(Layer(source[begins], np.add.reduceat(flow, begins, axis=0))).scaled()

    def _arcs_of(self, word: str | None) -> np.ndarray:
        if word is None:
            return np.arange(len(self.network.word))
        word_id = self.network.word_ids.get(word)
        return np.empty(0, dtype=np.int64) if word_id is None else self._by_word[word_id]

    def _before_entries(self, layer: Layer) -> Layer:
        """Add to a layer the ends of sentences that lead to the entries in it."""
        if not self._is_entry[layer.states].any():
            return layer
        states, weights = [layer.states], [layer.weight]
        for previous, end in enumerate(self.network.ends):
            value = self._entry_value(previous, layer)
            if value is not None:
                states.append(np.array([end]))
                weights.append(_one_less_sentence(value * (1.0 - self._stop))[None])
        order = np.argsort(all_states := np.concatenate(states), kind="stable")
        return Layer(all_states[order], np.concatenate(weights)[order])

    def _entry_value(self, previous: int | None, layer: Layer) -> np.ndarray | None:
        """Backward probability of what is hidden before a sentence; None if no entry is in the layer."""
        value = None
        for polarity, entries in enumerate(self.network.entries):
            for kind, chance in self.plan.opener_chances(previous, polarity).items():
                inside, rows = layer.find(np.array([entries[kind]]))
                if len(rows):
                    part = layer.weight[rows[0]] * (chance * self._polarity[:, polarity, None, None])
                    value = part if value is None else value + part
        return value

    def between(self, before: Forward, after: Layer) -> np.ndarray:
        """P(word | prefix, suffix) up to a factor, shape (V,)."""
        network, n_words = self.network, len(self.network.words)
        rows, arcs = network.arcs_from(np.array(list(before.mass), dtype=np.int64))
        inside, after_rows = after.find(network.target[arcs])
        if not len(inside):
            return np.zeros(n_words)
        rows, arcs = rows[inside], arcs[inside]
        hidden = np.array(list(before.mass.values()))
        value = np.einsum("azkg,azkg,ag->a", hidden[rows], after.weight[after_rows], network.weight[arcs])
        return np.bincount(network.word[arcs], value, minlength=n_words)


def _one_less_sentence(hidden: np.ndarray) -> np.ndarray:
    moved = np.zeros_like(hidden)
    moved[:, :-1] = hidden[:, 1:]
    return moved
