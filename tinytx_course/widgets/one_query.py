"""The explorer of one query: from q and the keys to the context, step by step, and why scores are divided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import traitlets

from tinytx.settings import require
from tinytx_course.widgets.base import Explorer, bounded, numbers

_LAST_STEP, _WIDEST = 5, 512  # as in js/one_query.js
_MOST_TOKENS, _MOST_NUMBERS = 24, 64
# Five tokens in whole numbers, so that every product can be checked on paper.
_TOKENS = ("the", "cat", "saw", "the", "dog")
_Q = ((1, 0, 1, 0), (0, 2, 0, 1), (2, 0, 1, -1), (1, 0, 1, 0), (0, 1, 1, 2))
_K = ((0, 1, 0, 1), (2, 0, 1, -1), (1, 1, 0, 0), (0, 1, 0, 1), (2, 1, 1, 0))
_V = ((1, 0, 0), (0, 4, 0), (2, 0, 2), (1, 0, 0), (0, 0, 4))


class OneQueryExplorer(Explorer):
    """See `one_query`. Of the vectors drawn at random, `head_dim` is the width."""

    kind = "one_query"
    title = traitlets.Unicode("One query, step by step").tag(sync=True)

    query_tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    key_tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    q = traitlets.Bytes().tag(sync=True)
    k = traitlets.Bytes().tag(sync=True)
    v = traitlets.Bytes().tag(sync=True)
    allowed = traitlets.List(traitlets.Int()).tag(sync=True)  # T · S cells, 1 = may attend
    query = bounded(0, 0, lambda its: len(its.query_tokens) - 1)
    key = bounded(0, 0, lambda its: len(its.key_tokens) - 1)
    step = bounded(1, 0, _LAST_STEP)
    scaled = traitlets.Bool(True).tag(sync=True)
    head_dim = bounded(128, 1, _WIDEST)
    view = traitlets.Enum(["steps", "why"], "steps").tag(sync=True)
    own_q = traitlets.List(traitlets.Float()).tag(sync=True)  # the reader's own, or none

    @traitlets.validate("own_q")
    def _check_own(self, proposal: Any) -> list[float]:
        width = len(self.k) // 4 // len(self.key_tokens)
        values = proposal.value
        if len(values) not in (0, width) or not np.isfinite(values).all():
            raise ValueError(f"own_q must hold {width} finite numbers or none, got {values}")
        return list(values)

    def summary(self) -> str:
        """Return what is shown, and the query that is followed."""
        return (
            "One query through attention in six steps, from q·k to the weighted sum of the values, and what "
            f"the division by √d is for. Query {self.query} “{self.query_tokens[self.query]}”, step "
            f"{self.step + 1}, {len(self.key_tokens)} keys."
        )


def one_query(
    q: Any = None,
    k: Any = None,
    v: Any = None,
    *,
    tokens: Sequence[str] | None = None,
    query: int | None = None,
) -> OneQueryExplorer:
    """Follow one query through attention: q·k, divided by √d, masked, softmaxed, times V.

    The numbers of the query may be changed. A second view has 64 random queries over 8 random keys, all
    entries of variance 1: undivided, their scores spread like √d, and softmax gives nearly all weight to one
    key as d grows.

    Parameters
    ----------
    q : Tensor of shape (T, K), optional
        Queries, at most 24 of at most 64 numbers. Without q, k and v: five tokens with small whole numbers,
        and the causal mask; otherwise nothing is masked.
    k : Tensor of shape (S, K), optional
        Keys.
    v : Tensor of shape (S, any width up to 64), optional
        Values.
    tokens : sequence of str, optional
        Names of queries, and of keys where there are as many.
    query : int, optional
        Which query is followed, by default the middle one.

    Raises
    ------
    ValueError
        If shapes do not fit together, or a number is out of range.

    Examples
    --------
    >>> explorer = one_query([[2.0, 0, 2, 0]], [[1.0, 0, 1, 0], [0, 2, 0, 1]], [[10.0], [20.0]])
    >>> explorer.query_tokens, explorer.key_tokens, explorer.allowed
    (['token 0'], ['token 0', 'token 1'], [1, 1])
    """
    by_hand = q is None and k is None and v is None
    if by_hand:
        q, k, v = _Q, _K, _V
        tokens = _TOKENS if tokens is None else tokens
    q, k, v = (numbers(each, name, 2) for each, name in ((q, "q"), (k, "k"), (v, "v")))
    require(q.shape[1] == k.shape[1], "q and k must be equally wide", f"{q.shape[1]} and {k.shape[1]}")
    require(len(k) == len(v), "k and v must have one row a token", f"{len(k)} and {len(v)}")
    if max(len(q), len(k)) > _MOST_TOKENS or max(q.shape[1], v.shape[1]) > _MOST_NUMBERS:
        raise ValueError(
            f"q, k and v must hold at most {_MOST_TOKENS} tokens of {_MOST_NUMBERS} numbers, "
            f"got shapes {q.shape}, {k.shape}, {v.shape}"
        )
    names = _numbered(len(q)) if tokens is None else list(tokens)
    require(len(names) == len(q), f"tokens must name each of {len(q)} queries", len(names))
    open_cells = np.ones((len(q), len(k)), dtype=int)
    followed = len(q) // 2 if query is None else query
    return OneQueryExplorer(
        query_tokens=names,
        key_tokens=names if len(q) == len(k) else _numbered(len(k)),
        q=q.tobytes(),
        k=k.tobytes(),
        v=v.tobytes(),
        allowed=(np.tril(open_cells) if by_hand else open_cells).ravel().tolist(),
        query=followed,
        key=int(abs(k @ q[followed]).argmax()),  # the most telling one
    )


def _numbered(n_tokens: int) -> list[str]:
    return [f"token {i}" for i in range(n_tokens)]
