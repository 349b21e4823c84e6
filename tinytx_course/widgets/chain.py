"""The arithmetic of one query, from q·k to the context, as numbers and in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tinytx_course.widgets.base import fixed

SPELLED = 6  # vectors up to this width are written out


@dataclass(frozen=True, eq=False)
class Chain:
    """What attention does with one query.

    Attributes
    ----------
    q : ndarray of shape (K,)
    k : ndarray of shape (S, K)
    v : ndarray of shape (S, any width)
    seen : bool ndarray of shape (S,)
        True = may attend.
    scaled : bool
        False leaves out the division by √K.

    Examples
    --------
    >>> k, v = np.array([[1.0, 0], [0, 0]]), np.array([[10.0], [20.0]])
    >>> chain = Chain(np.array([2.0, 0]), k, v, np.array([True, False]), scaled=True)
    >>> chain.weights, chain.context
    (array([1., 0.]), array([10.]))
    """

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    seen: np.ndarray
    scaled: bool

    @cached_property
    def products(self) -> np.ndarray:
        """q·k for each key, of shape (S,)."""
        return self.k @ self.q

    @cached_property
    def scores(self) -> np.ndarray:
        """The products, divided by √K where `scaled`, of shape (S,)."""
        return self.products / (math.sqrt(self.q.size) if self.scaled else 1.0)

    @cached_property
    def powers(self) -> np.ndarray:
        """The exponentials of the scores, less the largest allowed one; 0 where blocked. Of shape (S,)."""
        top = self.scores[self.seen].max(initial=np.finfo(float).min)
        return np.where(self.seen, np.exp(np.where(self.seen, self.scores - top, 0.0)), 0.0)

    @cached_property
    def weights(self) -> np.ndarray:
        """The attention weights, of shape (S,): they sum to 1, or are all 0 where all is blocked."""
        return self.powers / (self.powers.sum() or 1.0)

    @cached_property
    def context(self) -> np.ndarray:
        """The mean of the values by the weights."""
        return self.weights @ self.v

    def spell(self, step: int, key: int, asker: str, name: str) -> str:
        """Write out one step for one key, in numbers.

        Parameters
        ----------
        step : int
            0 to 5: q and keys, q·k, divided, masked, softmax, times V.
        key : int
        asker, name : str
            What the query and the key are called.
        """
        score = number(self.scores[key])
        if step == 0:
            return (
                f"{asker} asks with q = {vector(self.q)}; key {name} is {vector(self.k[key])}, "
                f"its value {vector(self.v[key])}."
            )
        if step == 1:
            return f"Key {name}: {self._terms(key)} = {number(self.products[key])}."
        if step == 2:
            if self.scaled:
                return f"Key {name}: {number(self.products[key])} / √{self.q.size} = {score}."
            return f"Key {name}: not divided, the score stays {score}."
        if step == 3 and self.seen[key]:
            return f"Key {name} may be seen: its score stays {score}."
        if step == 3:
            return f"Key {name} is blocked: its score {score} becomes −∞."
        if step == 4:
            return self._spell_softmax(key, name)
        return (
            f"Key {name} gives {number(self.weights[key], 3)} of its value {vector(self.v[key])}. "
            f"All keys together: context {vector(self.context)}."
        )

    def _terms(self, key: int) -> str:
        if self.q.size > SPELLED:
            return f"the sum of {self.q.size} products"
        return " + ".join(f"{factor(a)}·{factor(b)}" for a, b in zip(self.q, self.k[key], strict=True))

    def _spell_softmax(self, key: int, name: str) -> str:
        if not self.seen.any():
            return "Nothing may be seen: every weight is 0."
        if not self.seen[key]:
            return f"Key {name}: exp(−∞) = 0, so its weight is 0."
        top = self.scores[self.seen].max()
        return (
            f"Key {name}: exp({number(self.scores[key])} − {factor(top)}) = {number(self.powers[key], 3)}, "
            f"divided by the sum {number(self.powers.sum(), 3)} over keys: {number(self.weights[key], 3)}."
        )


def number(value: float, digits: int = 2) -> str:
    """Write a number with a real minus sign, and none before zero.

    Examples
    --------
    >>> number(-1.5), number(-0.001)
    ('−1.50', '0.00')
    """
    text = fixed(value, digits)
    return text.replace("-", "−") if float(text) else text.lstrip("-")


def factor(value: float) -> str:
    """Write a number as part of a longer term: a negative one in brackets.

    Examples
    --------
    >>> factor(-1.5)
    '(−1.50)'
    """
    text = number(value)
    return f"({text})" if text.startswith("−") else text


def vector(values: np.ndarray) -> str:
    """Write a short vector out, and count the numbers of a long one.

    Examples
    --------
    >>> vector(np.array([1.0, -2.0])), vector(np.zeros(9))
    ('(1.00, −2.00)', '(9 numbers)')
    """
    if values.size > SPELLED:
        return f"({values.size} numbers)"
    return f"({', '.join(map(number, values))})"
