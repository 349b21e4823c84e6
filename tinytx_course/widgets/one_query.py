"""The explorer of one query: from q and the keys to the context, step by step, and why scores are divided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import traitlets

from tinytx_course.widgets.base import Explorer, between, fixed, numbers
from tinytx_course.widgets.chain import Chain, number
from tinytx_course.widgets.picture import SOFT, Picture, blues
from tinytx_course.widgets.saturation import N_KEYS, WIDEST, draw_curves, random_weights, sharpness

STEPS = ("q and keys", "q·k", "÷ √d", "mask", "softmax", "× V")
_MOST_TOKENS, _MOST_NUMBERS = 24, 64
# Five tokens in whole numbers, so that every product can be checked on paper.
_TOKENS = ("the", "cat", "saw", "the", "dog")
_Q = ((1, 0, 1, 0), (0, 2, 0, 1), (2, 0, 1, -1), (1, 0, 1, 0), (0, 1, 1, 2))
_K = ((0, 1, 0, 1), (2, 0, 1, -1), (1, 1, 0, 0), (0, 1, 0, 1), (2, 1, 1, 0))
_V = ((1, 0, 0), (0, 4, 0), (2, 0, 2), (1, 0, 0), (0, 0, 4))


class OneQueryExplorer(Explorer):
    """See `one_query`."""

    kind = "one_query"
    title = "One query, step by step"

    query_tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    key_tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    q = traitlets.Bytes().tag(sync=True)
    k = traitlets.Bytes().tag(sync=True)
    v = traitlets.Bytes().tag(sync=True)
    allowed = traitlets.List(traitlets.Int()).tag(sync=True)
    query = traitlets.Int(0).tag(sync=True)
    key = traitlets.Int(0).tag(sync=True)
    step = traitlets.Int(1).tag(sync=True)
    scaled = traitlets.Bool(True).tag(sync=True)
    head_dim = traitlets.Int(128).tag(sync=True)

    @traitlets.validate("query")
    def _check_query(self, proposal: Any) -> int:
        return between(proposal, 0, len(self.query_tokens) - 1)

    @traitlets.validate("key")
    def _check_key(self, proposal: Any) -> int:
        return between(proposal, 0, len(self.key_tokens) - 1)

    @traitlets.validate("step")
    def _check_step(self, proposal: Any) -> int:
        return between(proposal, 0, len(STEPS) - 1)

    @traitlets.validate("head_dim")
    def _check_head_dim(self, proposal: Any) -> int:
        return between(proposal, 1, WIDEST)

    def chain(self) -> Chain:
        """Return the numbers of the chosen query, from its products to its context."""
        n_keys = len(self.key_tokens)
        sides = ((self.q, len(self.query_tokens)), (self.k, n_keys), (self.v, n_keys))
        q, k, v = (
            np.frombuffer(buffer, np.float32).reshape(n_rows, -1).astype(float) for buffer, n_rows in sides
        )
        seen = np.array(self.allowed, bool).reshape(-1, n_keys)[self.query]
        return Chain(q[self.query], k, v, seen, self.scaled)

    def describe(self) -> str:
        """Say what the step does to the chosen key, how sharp the weights are, and what width does."""
        chain = self.chain()
        asker = f"Query {self.query} “{self.query_tokens[self.query]}”"
        text = f"Step {self.step + 1} of {len(STEPS)}, {STEPS[self.step]}. "
        text += chain.spell(self.step, self.key, asker, self._name(self.key)) + " "
        if self.step >= 4 and chain.seen.any():
            top, (most, bits) = chain.weights.max(), sharpness(chain.weights[None])
            first = int(np.flatnonzero(chain.weights > top - 1e-9)[0])  # sums differ in the last bit
            text += (
                f"Largest weight: {number(most)} on key {self._name(first)}; entropy {number(bits)} bits. "
            )
        raw, divided = (sharpness(random_weights(self.head_dim, scaled=each)) for each in (False, True))
        return text + (
            f"Random q and k, d = {self.head_dim}: the largest of {N_KEYS} weights is on average "
            f"{number(raw[0])} undivided and {number(divided[0])} divided by √d; "
            f"entropy {number(raw[1])} and {number(divided[1])} bits."
        )

    def _name(self, key: int) -> str:
        return f"{key} “{self.key_tokens[key]}”"

    def picture(self) -> Picture:
        """Draw the whole way of the query, whatever the step, and the largest weight against the width."""
        chain, row, left, top = self.chain(), 26, 130, 66
        picture = Picture(760, max(top + len(chain.k) * row + 12, 240))
        asker = f"{self.query} “{self.query_tokens[self.query][:12]}”"
        picture.text(12, 14, f"Query {asker}: from products to weights", bold=True)
        heads = ("q·k", "÷ √d" if self.scaled else "undivided", "mask", "weight")
        for x, words in zip((60, 130, 200, 240), heads, strict=True):
            picture.text(left + x, 46, words, anchor="lm" if words == "weight" else "rm", color=SOFT)
        columns = zip(chain.products, chain.scores, chain.seen, chain.weights, strict=True)
        for i, (product, score, seen, weight) in enumerate(columns):
            middle = top + (i + 0.5) * row
            picture.text(left - 12, middle, f"{i} {self.key_tokens[i][:12]}", anchor="rm", bold=i == self.key)
            picture.text(left + 60, middle, number(product), anchor="rm")
            picture.text(left + 130, middle, number(score), anchor="rm")
            if not seen:
                picture.hatch(left + 240, middle - 8, 80, 16)
            picture.text(left + 200, middle, number(score) if seen else "−∞", anchor="rm")
            picture.rect(left + 240, middle - 8, 80 * weight, 16, fill=blues(0.6))
            picture.text(left + 326, middle, fixed(weight, 3) if seen else "blocked")
        draw_curves(picture, 540, 46, 190, 140, self.head_dim)
        return picture


def one_query(
    q: Any = None,
    k: Any = None,
    v: Any = None,
    *,
    mask: Any = None,
    tokens: Sequence[str] | None = None,
    key_tokens: Sequence[str] | None = None,
    query: int | None = None,
    step: int = 1,
    scaled: bool = True,
    head_dim: int = 128,
) -> OneQueryExplorer:
    """Follow one query through attention: q·k, divided by √d, masked, softmaxed, times V.

    Below it 64 random queries ask 8 random keys, all entries of variance 1: undivided their scores spread
    like √d, and softmax gives nearly all to one key as d grows.

    Parameters
    ----------
    q : Tensor of shape (T, K), optional
        Queries, at most 24 of at most 64 numbers. Without q, k and v: five tokens with small whole numbers,
        and the causal mask where none is given.
    k : Tensor of shape (S, K), optional
        Keys.
    v : Tensor of shape (S, any width up to 64), optional
        Values.
    mask : Tensor, bool, broadcastable to (T, S), optional
        True = may attend.
    tokens, key_tokens : sequence of str, optional
        What queries and keys are called; keys are called like the queries where there are as many.
    query : int, optional
        Which query is followed; the middle one when left out.
    step : int
        0 to 5: q and keys, q·k, divided, masked, softmax, times V.
    scaled : bool
        False leaves the division out.
    head_dim : int
        Width of the random vectors, 1 to 512.

    Returns
    -------
    OneQueryExplorer
        Its `chain` holds the numbers of the query as it stands.

    Raises
    ------
    TypeError
        If the mask is not boolean.
    ValueError
        If shapes do not fit together, or a number is out of range.

    Examples
    --------
    >>> explorer = one_query([[2.0, 0, 2, 0]], [[1.0, 0, 1, 0], [0, 2, 0, 1]], [[10.0], [20.0]])
    >>> explorer.chain().products, explorer.chain().scores
    (array([4., 0.]), array([2., 0.]))
    >>> explorer.chain().context.round(3)
    array([11.192])
    """
    if q is None and k is None and v is None:
        q, k, v = _Q, _K, _V
        tokens = _TOKENS if tokens is None else tokens
        mask = np.tri(len(_Q), dtype=bool) if mask is None else mask
    q, k, v = (numbers(each, name, 2) for each, name in ((q, "q"), (k, "k"), (v, "v")))
    if q.shape[1] != k.shape[1]:
        raise ValueError(f"q and k must be equally wide, got {q.shape[1]} and {k.shape[1]}")
    if len(k) != len(v):
        raise ValueError(f"k and v must have one row a token, got {len(k)} and {len(v)}")
    if max(len(q), len(k)) > _MOST_TOKENS or max(q.shape[1], v.shape[1]) > _MOST_NUMBERS:
        raise ValueError(
            f"q, k and v must hold at most {_MOST_TOKENS} tokens of {_MOST_NUMBERS} numbers, "
            f"got shapes {q.shape}, {k.shape}, {v.shape}"
        )
    names = _names(tokens, len(q), "tokens")
    key_names = names if key_tokens is None and len(q) == len(k) else _names(key_tokens, len(k), "key_tokens")
    chosen = len(q) // 2 if query is None else query
    return OneQueryExplorer(
        query_tokens=names,
        key_tokens=key_names,
        q=q.tobytes(),
        k=k.tobytes(),
        v=v.tobytes(),
        allowed=_cells(mask, (len(q), len(k))),
        query=chosen,
        key=min(1, len(k) - 1),
        step=step,
        scaled=scaled,
        head_dim=head_dim,
    )


def _names(tokens: Sequence[str] | None, n_tokens: int, name: str) -> list[str]:
    words = [f"token {i}" for i in range(n_tokens)] if tokens is None else list(tokens)
    if len(words) != n_tokens:
        raise ValueError(f"{name} must name each of {n_tokens} tokens, got {len(words)}")
    return words


def _cells(mask: Any, shape: tuple[int, int]) -> list[int]:
    """Return a mask as 1 and 0, row after row; without one everything is open."""
    cells = np.asarray(True if mask is None else mask.cpu() if hasattr(mask, "cpu") else mask)
    if cells.dtype != bool:
        raise TypeError(f"mask must be bool (True = may attend), got {cells.dtype}")
    try:
        return np.broadcast_to(cells, shape).astype(int).ravel().tolist()
    except ValueError:
        raise ValueError(f"mask must broadcast to {shape}, got shape {cells.shape}") from None
