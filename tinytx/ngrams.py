"""An n-gram language model: the baseline that a trained network has to beat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index

import numpy as np

from tinytx.settings import check_whole, require

Sequences = Sequence[Sequence[int]]


@dataclass(frozen=True)
class _Level:
    """Counts for histories of one length, as sorted arrays.

    A history of k tokens is named by its rank among those seen; its key joins the rank of its last k - 1
    tokens with the token before them. A continuation's key joins the rank of a history with a next token.
    """

    history_keys: np.ndarray
    history_counts: np.ndarray  # c(h), how often h was continued
    history_types: np.ndarray  # T(h), by how many different tokens
    next_keys: np.ndarray
    next_counts: np.ndarray  # c(h, w)


class NGramModel:
    r"""n-gram model with interpolated Witten-Bell smoothing.

    .. math:: P(w \mid h) = \frac{c(h, w) + T(h)\, P(w \mid h')}{c(h) + T(h)}

    with c the counts in the training text, T(h) the number of different tokens seen after the history h, and
    h' the history without its oldest token. The empty history backs off to the uniform distribution, a
    history that was never seen to h'.

    Parameters
    ----------
    order, vocab_size : int
        Number n of tokens in the longest counted n-gram, the predicted one included; and of different ids,
        every one of which can be predicted.
    bos_id, eos_id : int
        Added before each sequence, as history of its first token, and after it, to be predicted.

    References
    ----------
    Witten and Bell, "The zero-frequency problem", IEEE Transactions on Information Theory 37(4), 1991
    (method C). Chen and Goodman, arXiv cmp-lg/9606011, section 2.4 (the interpolated form).

    Examples
    --------
    Ids 0 to 3, where 2 opens and 3 closes. In ``0 0 1 3`` four tokens are predicted, three of them different,
    so P(0) = (2 + 3/4) / (4 + 3):

    >>> model = NGramModel(order=1, vocab_size=4).fit([[0, 0, 1]])
    >>> model.next_probs([]).round(4).tolist()
    [0.3929, 0.25, 0.1071, 0.25]
    """

    def __init__(self, order: int, vocab_size: int, *, bos_id: int = 2, eos_id: int = 3) -> None:
        check_whole("order", order, 1)
        within = min(bos_id, eos_id) >= 0 and max(bos_id, eos_id) < vocab_size
        got = f"bos_id={bos_id}, eos_id={eos_id}"
        require(within, f"bos_id and eos_id must be from 0 to {vocab_size - 1}", got)
        self.order, self.vocab_size, self.bos_id, self.eos_id = order, vocab_size, bos_id, eos_id
        self._levels: list[_Level] = []

    def fit(self, sequences: Sequences) -> NGramModel:
        """Count n-grams up to the model's order in sequences of ids, which have no bos and no eos."""
        stream, targets = self._stream(sequences)
        ranks = np.zeros(len(targets), dtype=np.int64)
        levels = []
        for distance in range(self.order):
            keys = ranks if distance == 0 else ranks * self.vocab_size + stream[targets - distance]
            history_keys, ranks, history_counts = np.unique(keys, return_inverse=True, return_counts=True)
            next_keys, next_counts = np.unique(ranks * self.vocab_size + stream[targets], return_counts=True)
            history_types = np.bincount(next_keys // self.vocab_size, minlength=len(history_keys))
            levels.append(_Level(history_keys, history_counts, history_types, next_keys, next_counts))
        self._levels = levels
        return self

    def log_prob(self, sequence: Sequence[int], order: int | None = None) -> np.ndarray:
        """Log-probabilities of a sequence of T tokens and of eos: (T + 1,), in nats.

        Of an `order` smaller than the model's own they are as if it had been fitted with that one.
        """
        stream, targets = self._stream([sequence])
        log_probs: np.ndarray = np.log(self._probs(stream, targets, stream[targets], order))
        return log_probs

    def n_counts(self, order: int | None = None) -> int:
        """How many different n-grams up to an order, by default the model's, were counted."""
        return sum(len(level.next_keys) for level in self._levels[: self._checked(order)])

    def nats_per_token(self, sequences: Sequences, order: int | None = None) -> float:
        """Mean negative log-probability over all tokens of some sequences, eos included; see `log_prob`."""
        stream, targets = self._stream(sequences)
        return float(-np.log(self._probs(stream, targets, stream[targets], order)).mean())

    def next_probs(self, prefix: Sequence[int], order: int | None = None) -> np.ndarray:
        """Probabilities, of shape (V,), of the token after a prefix, which may be empty; eos included."""
        stream, targets = self._stream([prefix])
        every_token = np.arange(self.vocab_size)
        return self._probs(stream, np.full_like(every_token, targets[-1]), every_token, order)

    def _stream(self, sequences: Sequences) -> tuple[np.ndarray, np.ndarray]:
        """All sequences in one array with bos and eos, and the positions in it that are predicted."""
        require(len(sequences), "sequences must hold at least one sequence", "none")
        opening = [self.bos_id] * (self.order - 1)
        lengths = np.array([len(sequence) for sequence in sequences])
        stream = np.fromiter(
            (index(token) for sequence in sequences for token in (*opening, *sequence, self.eos_id)),
            dtype=np.int64,
            count=int(lengths.sum()) + len(lengths) * self.order,
        )
        low, high, last = stream.min(), stream.max(), self.vocab_size - 1
        require(low >= 0 and high <= last, f"ids must be from 0 to {last}", high if high > last else low)
        ends = np.cumsum(lengths + self.order)
        is_target = np.ones(len(stream), dtype=bool)
        for offset in range(self.order - 1):
            is_target[ends - lengths - self.order + offset] = False
        return stream, np.flatnonzero(is_target)

    def _checked(self, order: int | None) -> int:
        require(self._levels, "the model must be fitted first", "no call of fit")
        order = self.order if order is None else order
        require(1 <= order <= self.order, f"order must be from 1 to {self.order}", order)
        return order

    def _probs(
        self, stream: np.ndarray, positions: np.ndarray, tokens: np.ndarray, order: int | None
    ) -> np.ndarray:
        """Probability of each token at its position, given the tokens before."""
        order = self._checked(order)
        probs = np.full(len(positions), 1 / self.vocab_size)
        ranks = np.zeros(len(positions), dtype=np.int64)
        alive = np.arange(len(positions))  # where the history was seen; a longer one can only be rarer
        for distance, level in enumerate(self._levels[:order]):
            if distance:
                keys = ranks * self.vocab_size + stream[positions[alive] - distance]
                ranks, seen = _find(level.history_keys, keys)
                ranks, alive = ranks[seen], alive[seen]
            found, known = _find(level.next_keys, ranks * self.vocab_size + tokens[alive])
            counts = np.where(known, level.next_counts[found], 0)
            n_types = level.history_types[ranks]
            probs[alive] = (counts + n_types * probs[alive]) / (level.history_counts[ranks] + n_types)
        return probs


def _find(sorted_keys: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The index of each key in a sorted array, and whether it is in it."""
    places = np.minimum(np.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)
    return places, sorted_keys[places] == keys
