"""Exact probabilities: forward and backward sums over the network of sentences and the latent choices above it.

A state of the whole automaton is a pair: where the sentence stands (a state of the `Network`), and what is hidden
above it (label, number of finished sentences, genre), kept as an array of shape (2, K + 1, G). The sums are scaled
after each word, so that a review of any length stays within floating point.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tinytx.text.world.lexicon import GENRES
from tinytx.text.world.network import Network
from tinytx.text.world.reviews import N_LABELS, ReviewPlan

Mass = dict[int, np.ndarray]  # network state -> probability of what is hidden, (2, K + 1, G)
CACHED_PREFIXES = 4096


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
        What all weights are to be multiplied by, as a logarithm; they are scaled to 1 after each sentence.
    """

    mass: Mass
    stopped: np.ndarray
    log_scale: float

    @property
    def total(self) -> float:
        """Sum of all weights: 0 where no review begins like this."""
        return float(sum(hidden.sum() for hidden in self.mass.values()) + self.stopped.sum())

    @property
    def log_prob(self) -> float:
        """Log-probability of the prefix in nats."""
        return self.log_scale + float(np.log(self.total)) if self.mass or self.stopped.any() else -np.inf

    @property
    def log_prob_of_end(self) -> float:
        """Log-probability of the prefix as a whole review in nats."""
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
        self.word_ids = {word: index for index, word in enumerate(network.words)}
        self._nothing = np.zeros((N_LABELS, plan.most_sentences + 1, len(GENRES)))
        self._stop = plan.stop[None, :, None]
        self._polarity = plan.polarity_given_label()
        self._is_entry = np.zeros(len(network.first), dtype=bool)
        self._is_entry[[state for entries in network.entries for state in entries.values()]] = True
        self._by_word = _arcs_by_word(network)
        self._follow: dict[int, dict[int, list[tuple[int, np.ndarray]]]] = {}
        self._cache: dict[tuple[str | None, ...], Forward] = {}

    # --- forward ----------------------------------------------------------------------------------------------

    def start(self) -> Forward:
        """Give the state of affairs before the first word."""
        hidden = np.zeros_like(self._nothing)
        hidden[:, 0] = 1.0 / (N_LABELS * len(GENRES))
        mass: Mass = {}
        self._enter(None, hidden, mass)
        return Forward(mass, self._nothing, 0.0)

    def _enter(self, previous: int | None, hidden: np.ndarray, mass: Mass) -> None:
        """Spread the mass before a sentence over the entries of the network."""
        for polarity, entries in enumerate(self.network.entries):
            weighted = hidden * self._polarity[:, polarity, None, None]
            for kind, chance in self.plan.opener_chances(previous, polarity).items():
                entry = entries[kind]
                mass[entry] = mass.get(entry, 0.0) + chance * weighted

    def _arcs_by_word(self, state: int) -> dict[int, list[tuple[int, np.ndarray]]]:
        if state not in self._follow:
            network, follow = self.network, {}
            for arc in range(network.first[state], network.first[state + 1]):
                follow.setdefault(int(network.word[arc]), []).append((int(network.target[arc]), network.weight[arc]))
            self._follow[state] = follow
        return self._follow[state]

    def advance(self, before: Forward, word: str) -> Forward:
        """Read one more word; a word that cannot follow leaves no weight."""
        mass: Mass = {}
        if (word_id := self.word_ids.get(word)) is not None:
            for state, hidden in before.mass.items():
                for target, weight in self._arcs_by_word(state).get(word_id, ()):
                    moved = hidden * weight
                    mass[target] = mass[target] + moved if target in mass else moved
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

    def advance_any(self, before: Forward) -> Forward:
        """Read one hidden word: the weights of all that may stand there together."""
        network, mass = self.network, {}
        for state, hidden in before.mass.items():
            for arc in range(network.first[state], network.first[state + 1]):
                target, moved = int(network.target[arc]), hidden * network.weight[arc]
                mass[target] = mass[target] + moved if target in mass else moved
        return self._pass_on(mass, before.log_scale)

    def read(self, words: Iterable[str | None], state: Forward | None = None) -> Forward:
        """Read words one by one (None: a hidden word), from the beginning or from where a state stands."""
        state = state or self.start()
        for word in words:
            state = self.advance_any(state) if word is None else self.advance(state, word)
        return state

    def forward(self, words: Sequence[str | None]) -> Forward:
        """Read a prefix, going on from the longest part of it that was read lately."""
        key = tuple(words)
        known = next((length for length in range(len(key), 0, -1) if key[:length] in self._cache), 0)
        state = self.read(key[known:], self._cache.get(key[:known]))
        if len(self._cache) >= CACHED_PREFIXES:
            self._cache.clear()
        self._cache[key] = state
        return state

    def next_word(self, before: Forward) -> np.ndarray:
        """Give P(next word | prefix) over the vocabulary, shape (V,); what is missing to 1 is the end."""
        network, chances = self.network, np.zeros(len(self.network.words))
        for state, hidden in before.mass.items():
            span = slice(network.first[state], network.first[state + 1])
            chances += np.bincount(
                network.word[span], network.weight[span] @ hidden.sum(axis=(0, 1)), minlength=len(chances)
            )
        return chances / before.total

    # --- backward ---------------------------------------------------------------------------------------------

    def backward(self, words: Sequence[str | None], down_to: int = 0) -> list[Layer]:
        """Weigh each state by all that can follow it: the words from there on (None: any word) and the end.

        Returns
        -------
        list of Layer
            At index t, for ``down_to <= t <= len(words)``, the layer *after* word t - 1 and before the passage to
            a next sentence; indices below `down_to` hold empty layers. Each layer is scaled to a largest value of 1.
        """
        shape = self._nothing.shape
        ends = np.array(self.network.ends)
        layers = [Layer(np.empty(0, dtype=np.int64), np.empty((0, *shape)))] * (len(words) + 1)
        stop = np.broadcast_to(self._stop, shape)
        layers[len(words)] = Layer(ends, np.stack([_one_less_sentence(stop)] * len(ends)))
        for position in range(len(words) - 1, down_to - 1, -1):
            layers[position] = self._retreat(layers[position + 1], words[position])
        return layers

    def _retreat(self, after: Layer, word: str | None) -> Layer:
        """Pass one word backward, and, where a sentence begins with it, the passage before it."""
        arcs = self._arcs_of(word)
        inside, rows = after.find(self.network.target[arcs])
        arcs = arcs[inside]
        if not len(arcs):
            return Layer(arcs, after.weight[:0])
        flow = after.weight[rows] * self.network.weight[arcs][:, None, None, :]
        source = self.network.source[arcs]  # sorted, as the arcs of a word are
        begins = np.flatnonzero(np.r_[True, source[1:] != source[:-1]])
        return self._before_entries(Layer(source[begins], np.add.reduceat(flow, begins, axis=0))).scaled()

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
        """Weigh what is hidden before a sentence by the entries in a layer; None if there is none."""
        value = None
        for polarity, entries in enumerate(self.network.entries):
            for kind, chance in self.plan.opener_chances(previous, polarity).items():
                inside, rows = layer.find(np.array([entries[kind]]))
                if len(rows):
                    part = layer.weight[rows[0]] * (chance * self._polarity[:, polarity, None, None])
                    value = part if value is None else value + part
        return value

    def _arcs_of(self, word: str | None) -> np.ndarray:
        if word is None:
            return np.arange(len(self.network.word))
        word_id = self.word_ids.get(word)
        return np.empty(0, dtype=np.int64) if word_id is None else self._by_word[word_id]

    def between(self, before: Forward, after: Layer) -> np.ndarray:
        """Weigh each word that may stand between a prefix and a suffix; shape (V,), not normalised."""
        network, chances = self.network, np.zeros(len(self.network.words))
        for state, hidden in before.mass.items():
            arcs = np.arange(network.first[state], network.first[state + 1])
            inside, rows = after.find(network.target[arcs])
            arcs = arcs[inside]
            value = np.einsum("zkg,azkg,ag->a", hidden, after.weight[rows], network.weight[arcs])
            chances += np.bincount(network.word[arcs], value, minlength=len(chances))
        return chances


@dataclass
class Layer:
    """States (sorted) and, for each, a weight for everything hidden: shape (n, 2, K + 1, G)."""

    states: np.ndarray
    weight: np.ndarray

    def find(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Say which of some states are here, and in which rows."""
        if not len(self.states):
            empty = np.empty(0, dtype=np.int64)
            return empty, empty
        rows = np.minimum(np.searchsorted(self.states, states), len(self.states) - 1)
        inside = np.flatnonzero(self.states[rows] == states)
        return inside, rows[inside]

    def scaled(self) -> Layer:
        """Divide by the largest weight."""
        return Layer(self.states, self.weight / self.weight.max())


def _arcs_by_word(network: Network) -> list[np.ndarray]:
    order = np.argsort(network.word, kind="stable")
    return np.split(order, np.searchsorted(network.word[order], np.arange(1, len(network.words))))


def _one_more_sentence(hidden: np.ndarray) -> np.ndarray:
    moved = np.zeros_like(hidden)
    moved[:, 1:] = hidden[:, :-1]
    return moved


def _one_less_sentence(hidden: np.ndarray) -> np.ndarray:
    moved = np.zeros_like(hidden)
    moved[:, :-1] = hidden[:, 1:]
    return moved
