"""The mask explorer: who may look at whom, what softmax makes of it, and which outputs an input moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import traitlets

from tinytx_course.widgets.base import Explorer, between, fixed, listed
from tinytx_course.widgets.picture import ACCENT, SOFT, WARN, Picture, blues

_SENTENCE = ("the", "tired", "cat", "sat", "on", "the", "warm", "mat")
_MOVED = 1e-9  # below this a difference is rounding


class MaskExplorer(Explorer):
    """See `mask`."""

    kind = "mask"
    title = "Mask explorer"

    tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    causal = traitlets.Bool(True).tag(sync=True)
    window = traitlets.Int(0).tag(sync=True)
    prefix = traitlets.Int(0).tag(sync=True)
    padding = traitlets.Int(0).tag(sync=True)
    drawn = traitlets.List(traitlets.Int()).tag(sync=True)
    where = traitlets.Enum(["before", "after"], "before").tag(sync=True)
    layers = traitlets.Int(1).tag(sync=True)
    moved = traitlets.Int(0).tag(sync=True)
    inputs = traitlets.Bytes().tag(sync=True)
    maps = traitlets.Bytes().tag(sync=True)
    push = traitlets.Bytes().tag(sync=True)

    @traitlets.validate("window", "prefix", "padding")
    def _check_count(self, proposal: Any) -> int:
        return between(proposal, 0, len(self.tokens))

    @traitlets.validate("moved")
    def _check_moved(self, proposal: Any) -> int:
        return between(proposal, 0, len(self.tokens) - 1)

    @traitlets.validate("layers")
    def _check_layers(self, proposal: Any) -> int:
        return between(proposal, 1, 6)

    @traitlets.validate("drawn")
    def _check_drawn(self, proposal: Any) -> list[int]:
        n_cells = len(self.tokens) ** 2
        if any(not 0 <= cell < n_cells for cell in proposal.value):
            raise ValueError(f"drawn must hold cells in 0..{n_cells - 1}, got {proposal.value}")
        return sorted(set(proposal.value))

    def allowed(self) -> np.ndarray:
        """Return the mask, bool of shape (T, T), True = may attend."""
        n_tokens = len(self.tokens)
        query, key = np.mgrid[:n_tokens, :n_tokens]
        allowed = np.ones((n_tokens, n_tokens), bool)
        if self.causal:
            allowed &= key <= query
        if self.window:
            allowed &= abs(query - key) < self.window
        allowed |= key < self.prefix
        allowed &= key < n_tokens - self.padding
        allowed.flat[self.drawn] ^= True
        return allowed

    def weights(self, x: np.ndarray | None = None) -> np.ndarray:
        """Return the attention weights (T, T) over vectors x of shape (T, D), by default the tokens' own."""
        x = self._vectors() if x is None else x
        q_map, k_map, _ = self._maps()
        scores = (x @ q_map) @ (x @ k_map).T / np.sqrt(x.shape[1])  # (T, T)
        allowed = self.allowed()
        shown = allowed if self.where == "before" else np.ones_like(allowed)
        top = np.where(shown, scores, -np.inf).max(axis=1, keepdims=True, initial=np.finfo(float).min)
        powers = np.where(shown, np.exp(np.where(shown, scores - top, 0.0)), 0.0)
        sums = powers.sum(axis=1, keepdims=True)
        return np.divide(powers, sums, out=np.zeros_like(powers), where=sums > 0) * allowed

    def moves(self) -> np.ndarray:
        """Return by how much each output moves, of shape (T,), when one input is pushed aside.

        The largest change over the width, after `layers` layers of attention with a residual connection.
        """
        x, pushed = self._vectors(), self._vectors()
        pushed[self.moved] += np.frombuffer(self.push, np.float32)
        v_map = self._maps()[2]
        for _ in range(self.layers):
            x, pushed = (each + self.weights(each) @ (each @ v_map) for each in (x, pushed))
        return abs(x - pushed).max(axis=1)

    def reach(self) -> np.ndarray:
        """Return which outputs the mask lets the moved input reach, bool of shape (T,)."""
        steps = self.allowed() | np.eye(len(self.tokens), dtype=bool)
        return np.linalg.matrix_power(steps.astype(int), self.layers)[:, self.moved] > 0

    def describe(self) -> str:
        """Say what is open, what the rows sum to, and which outputs move."""
        allowed, moving, reach = self.allowed(), self.moves() > _MOVED, self.reach()
        rules = ["causal"] if self.causal else []
        rules += [f"window {self.window}"] if self.window else []
        rules += [f"prefix {self.prefix}"] if self.prefix else []
        rules += [f"padding {self.padding}"] if self.padding else []
        rules += [f"{len(self.drawn)} cells drawn"] if self.drawn else []
        where = "−∞ before softmax" if self.where == "before" else "0 after softmax"
        sums = [fixed(total, 2) for total in self.weights().sum(axis=1)]
        ahead = [i for i in range(self.moved) if moving[i] and reach[i]]
        leaks = [i for i in range(len(moving)) if moving[i] and not reach[i]]
        text = (
            f"Mask ({', '.join(rules) or 'none'}): {allowed.sum()} of {allowed.size} cells open. "
            f"Blocked by {where}: rows sum to {min(sums)} up to {max(sums)}. "
            f"Moving input {self.moved} “{self.tokens[self.moved]}” "
            f"moves outputs {listed(np.flatnonzero(moving).tolist())}"
        )
        text += f"; {listed(ahead)} see ahead of their place" if ahead else ""
        return text + (f"; LEAK: the mask hides it from {listed(leaks)}." if leaks else "; no leak.")

    def _vectors(self) -> np.ndarray:
        return np.frombuffer(self.inputs, np.float32).reshape(len(self.tokens), -1).astype(float)  # (T, D)

    def _maps(self) -> np.ndarray:
        width = len(self.push) // 4
        return np.frombuffer(self.maps, np.float32).reshape(3, width, width).astype(float)

    def picture(self) -> Picture:
        """Draw the mask, the weights with the sums of rows, and the outputs that move."""
        size, left, top = 24, 92, 96
        n_tokens, allowed, weights = len(self.tokens), self.allowed(), self.weights()
        side = size * n_tokens
        second = left + side + 30
        third = second + side + 110
        picture = Picture(third + 190, top + side + 14)
        for x, words in ((left, "Who may look at whom"), (second, "Weights"), (third, "Outputs that move")):
            picture.text(x, 12, words, bold=True)
        for i, token in enumerate(self.tokens):
            middle = top + (i + 0.5) * size
            picture.text(left - 8, middle, token[:11], anchor="rm")
            for x in (left, second):
                picture.text_up(x + (i + 0.5) * size, top - 6, token[:9])
        picture.cells(left, top, size, 0.75 * allowed, ~allowed)
        picture.cells(second, top, size, weights, ~allowed)
        for i, (total, much) in enumerate(zip(weights.sum(axis=1), self.moves(), strict=True)):
            middle = top + (i + 0.5) * size
            picture.rect(second + side + 8, middle - 6, 40 * total, 12, fill=blues(0.6))
            picture.text(second + side + 54, middle, fixed(total, 2))
            word = "still" if much <= _MOVED else "moves" if self.reach()[i] else "LEAK"
            color = {"still": SOFT, "moves": ACCENT, "LEAK": WARN}[word]
            if much > _MOVED:
                picture.rect(third, middle - 6, 12, 12, fill=color)
            picture.text(third + 20, middle, f"{self.tokens[i][:9]} {word}", color=color, bold=word == "LEAK")
        return picture


def mask(
    tokens: Sequence[str] | None = None,
    *,
    causal: bool = True,
    window: int = 0,
    prefix: int = 0,
    padding: int = 0,
    where: str = "before",
    moved: int | None = None,
    layers: int = 1,
    seed: int = 0,
) -> MaskExplorer:
    """Explore masks: combine the usual ones, draw your own, and see what leaks.

    A cell is open where the causal mask and the window allow it or its key belongs to the prefix, and its
    key is no padding; a click turns it over. Weights are those of one head of attention with random maps.
    The leak test pushes one input aside and computes all outputs again: an output that moves although the
    mask hides the input from it, in all layers, is a leak.

    Parameters
    ----------
    tokens : sequence of str, optional
        2 to 24 words.
    causal : bool
        True hides what comes later.
    window : int
        A query sees keys less than this far away; 0 for no window.
    prefix : int
        This many first keys are seen by all.
    padding : int
        This many last keys are seen by nobody.
    where : {"before", "after"}
        Whether blocked scores become -inf before softmax, or blocked weights 0 after it.
    moved : int, optional
        Which input the leak test moves; the middle one when left out.
    layers : int
        1 to 6.
    seed : int
        Of the vectors and maps.

    Returns
    -------
    MaskExplorer
        Its `allowed` is the mask as it stands, to be used elsewhere.

    Raises
    ------
    ValueError
        If there are too few or too many tokens, or a number is out of range.

    Examples
    --------
    >>> explorer = mask(["a", "b", "c"])
    >>> explorer.allowed().astype(int)
    array([[1, 0, 0],
           [1, 1, 0],
           [1, 1, 1]])
    >>> explorer.moves() > 0
    array([False,  True,  True])
    >>> explorer.where = "after"  # no weight on what is hidden, and yet it moves the sum
    >>> explorer.moves() > 0
    array([ True,  True,  True])
    """
    words = list(tokens) if tokens is not None else list(_SENTENCE)
    if not 2 <= len(words) <= 24:
        raise ValueError(f"tokens must be 2 to 24 words, got {len(words)}")
    width = 6
    random = np.random.default_rng(seed)
    made = {
        "inputs": random.normal(size=(len(words), width)),
        "maps": random.normal(size=(3, width, width)) * 1.6 / np.sqrt(width),
        "push": random.normal(size=width),
    }
    buffers = {name: values.astype(np.float32).tobytes() for name, values in made.items()}
    return MaskExplorer(
        tokens=words,
        causal=causal,
        window=window,
        prefix=prefix,
        padding=padding,
        where=where,
        layers=layers,
        moved=len(words) // 2 if moved is None else moved,
        **buffers,
    )
