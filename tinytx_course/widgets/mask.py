"""The mask explorer: what each query may attend to, its weights, and which outputs an input changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import traitlets

from tinytx_course.widgets.base import Explorer, bounded

_SENTENCE = ("the", "tired", "cat", "sat", "on", "the", "warm", "mat")
_WIDTH = 6  # of the random vectors


class MaskExplorer(Explorer):
    """See `mask`.

    The mask of a state: a cell is open where the causal mask and the window allow it or its key belongs to
    the prefix, and its key is no padding; a cell in `drawn` (query · T + key) is turned over. A window of n
    allows keys less than n away, 0 all. Blocked scores become -inf before softmax or, by mistake, a score of
    0, or weights become 0 after softmax (`where`). The leak test changes the input `moved`.
    """

    kind = "mask"
    title = traitlets.Unicode("Mask explorer").tag(sync=True)

    tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    causal = traitlets.Bool(True).tag(sync=True)
    window = bounded(0, 0, lambda its: len(its.tokens))
    prefix = bounded(0, 0, lambda its: len(its.tokens))
    padding = bounded(0, 0, lambda its: len(its.tokens))
    drawn = traitlets.List(traitlets.Int()).tag(sync=True)
    where = traitlets.Enum(["before", "score", "after"], "before").tag(sync=True)
    layers = bounded(1, 1, 6)
    moved = bounded(0, 0, lambda its: len(its.tokens) - 1)
    inputs = traitlets.Bytes().tag(sync=True)  # (T, D)
    maps = traitlets.Bytes().tag(sync=True)  # (3, D, D): projections to q, k and v
    push = traitlets.Bytes().tag(sync=True)  # (D,): added to the input that is moved

    @traitlets.validate("drawn")
    def _check_drawn(self, proposal: Any) -> list[int]:
        n_cells = len(self.tokens) ** 2
        if any(not 0 <= cell < n_cells for cell in proposal.value):
            raise ValueError(f"drawn must hold cells in 0..{n_cells - 1}, got {proposal.value}")
        return sorted(set(proposal.value))

    def summary(self) -> str:
        """Return what is shown, and the rules of the mask."""
        rules = ["causal"] if self.causal else []
        rules += [
            f"{name} {getattr(self, name)}" for name in ("window", "prefix", "padding") if getattr(self, name)
        ]
        return (
            "Which query may attend to which key, the attention weights, and which outputs change when one "
            f"input is changed. {len(self.tokens)} tokens, mask: {', '.join(rules) or 'none'}."
        )


def mask(tokens: Sequence[str] | None = None, *, padding: int = 0) -> MaskExplorer:
    """Explore masks: combine the usual ones, draw your own, and see what leaks.

    Weights are those of one attention head with random projections. The leak test adds a vector to one input
    and computes all outputs again: an output that changes although the mask hides the input from it, in all
    layers, is a leak.

    Parameters
    ----------
    tokens : sequence of str, optional
        2 to 24 words.
    padding : int
        No query attends to this many last keys.

    Raises
    ------
    ValueError
        If there are too few or too many tokens, or `padding` is out of range.

    Examples
    --------
    >>> explorer = mask(["a", "b", "c"], padding=1)
    >>> explorer.moved, explorer.summary().split(". ")[1]
    (1, '3 tokens, mask: causal, padding 1.')
    """
    words = list(_SENTENCE if tokens is None else tokens)
    if not 2 <= len(words) <= 24:
        raise ValueError(f"tokens must be 2 to 24 words, got {len(words)}")
    random = np.random.default_rng(0)
    drawn = {
        "inputs": random.normal(size=(len(words), _WIDTH)),
        "maps": random.normal(size=(3, _WIDTH, _WIDTH)) * 1.6 / np.sqrt(_WIDTH),
        "push": random.normal(size=_WIDTH),
    }
    return MaskExplorer(
        tokens=words,
        padding=padding,
        moved=len(words) // 2,
        **{name: values.astype(np.float32).tobytes() for name, values in drawn.items()},
    )
