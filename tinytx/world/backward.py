r"""Exact probabilities, backward: what all that follows says about a place in the middle.

For every state :math:`q` after word :math:`t`, the chance of the words that follow and of the end,

.. math:: \beta_t(q, z, k, g) = \sum_{q \to q' \text{ writes } w_{t+1}} P(q \to q' \mid g) \, \beta_{t+1}(q',
z, k, g)

so that a hidden word between a prefix and a suffix has a chance in proportion to
:math:`\sum \alpha_t(q) \, P(q \to q') \, \beta_{t+1}(q')` over the arcs that write it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinytx.world.automaton import Forward, Network
from tinytx.world.reviews import N_LABELS, ReviewPlan


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
        """Divide by the largest weight; where that is 0, nothing is left."""
        largest = self.weight.max()
        if not largest > 0:
            return Layer(self.states[:0], self.weight[:0])
        return Layer(self.states, self.weight / largest)


class Backward:
    """Sums from the end of a review over what may stand before.

    Parameters
    ----------
    network : Network
        Sentences.
    plan : ReviewPlan
        What is hidden above them.
    """

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
        """Weigh each state by all that can follow it: the words from there on (None: any word) and the end.

        Returns
        -------
        list of Layer
            At index t, for ``down_to <= t <= len(words)``, the layer *after* word t - 1 and before the
            passage to a next sentence; indices below `down_to` hold empty layers. Each layer is scaled to a
            largest value of 1.
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
        """Pass one word backward, and, where a sentence begins with it, the passage before it."""
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
        """Weigh what is hidden before a sentence by the entries in a layer; None if there is none."""
        value = None
        for polarity, entries in enumerate(self.network.entries):
            for kind, chance in self.plan.opener_chances(previous, polarity).items():
                inside, rows = layer.find(np.array([entries[kind]]))
                if len(rows):
                    part = layer.weight[rows[0]] * (chance * self._polarity[:, polarity, None, None])
                    value = part if value is None else value + part
        return value

    def between(self, before: Forward, after: Layer) -> np.ndarray:
        """Weigh each word that may stand between a prefix and a suffix; shape (V,), not normalised."""
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
