"""The attention explorer: every row of every head is a distribution over the tokens it looks at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import traitlets

from tinytx_course.widgets.attending import Part, parts_of
from tinytx_course.widgets.base import Explorer, between, fixed, percent
from tinytx_course.widgets.picture import ACCENT, SOFT, Picture

MOST_TOKENS = 128


class AttentionExplorer(Explorer):
    """See `attention`."""

    kind = "attention"
    title = "Attention explorer"
    shares = ("weights",)

    names = traitlets.List(traitlets.Unicode()).tag(sync=True)
    query_tokens = traitlets.List(traitlets.List(traitlets.Unicode())).tag(sync=True)
    key_tokens = traitlets.List(traitlets.List(traitlets.Unicode())).tag(sync=True)
    sizes = traitlets.List(traitlets.List(traitlets.Int())).tag(sync=True)
    masks = traitlets.List(traitlets.List(traitlets.Unicode())).tag(sync=True)
    weights = traitlets.Bytes().tag(sync=True)
    part = traitlets.Int(0).tag(sync=True)
    layer = traitlets.Int(0).tag(sync=True)
    head = traitlets.Int(0).tag(sync=True)
    query = traitlets.Int(0).tag(sync=True)

    @traitlets.validate("part")
    def _check_part(self, proposal: Any) -> int:
        return between(proposal, 0, len(self.names) - 1)

    @traitlets.validate("layer")
    def _check_layer(self, proposal: Any) -> int:
        return between(proposal, 0, max(size[0] for size in self.sizes) - 1)

    @traitlets.validate("head")
    def _check_head(self, proposal: Any) -> int:
        return between(proposal, 0, max(size[1] for size in self.sizes) - 1)

    @traitlets.validate("query")
    def _check_query(self, proposal: Any) -> int:
        return between(proposal, 0, max(size[2] for size in self.sizes) - 1)

    def place(self) -> tuple[int, int, int]:
        """Return layer, head and query of the row that is open; a shorter part shows its last one."""
        n_layers, n_heads, n_queries, _ = self.sizes[self.part]
        return min(self.layer, n_layers - 1), min(self.head, n_heads - 1), min(self.query, n_queries - 1)

    def open_part(self) -> np.ndarray:
        """Return the weights (L, H, T, S) of the part that is open."""
        start = sum(int(np.prod(size)) for size in self.sizes[: self.part])
        size = self.sizes[self.part]
        values = np.frombuffer(self.weights, np.float32, count=int(np.prod(size)), offset=4 * start)
        return values.reshape(size)

    def allowed(self) -> np.ndarray:
        """Return which cells of the open part a mask leaves open, bool of shape (T, S)."""
        return np.array([[cell == "1" for cell in row] for row in self.masks[self.part]])

    def entropies(self) -> np.ndarray:
        """Return the entropy of each row of the open head, in bits, of shape (T,)."""
        layer, head, _ = self.place()
        rows = self.open_part()[layer, head].astype(float)
        return -(rows * np.log2(rows, out=np.zeros_like(rows), where=rows > 0)).sum(axis=1)

    def describe(self) -> str:
        """Say what the open query looks at most, and how spread out its weights are."""
        layer, head, query = self.place()
        row = self.open_part()[layer, head, query]
        keys, n_open = self.key_tokens[self.part], int(self.allowed()[query].sum())
        name = self.names[self.part]
        text = (
            f"{name[0].upper()}{name[1:]}, layer {layer}, head {head}: "
            f"query {query} “{self.query_tokens[self.part][query]}” "
        )
        if not row.any():
            return text + "may look at nothing."
        first, *others = np.argsort(-row, kind="stable")[:3]
        most = [first, *(key for key in others if row[key] >= 0.005)]
        looks = ", ".join(f"{key} “{keys[key]}” {percent(row[key])}" for key in most)
        bits, limit = fixed(self.entropies()[query], 2), fixed(np.log2(n_open), 2)
        return text + f"looks at {looks}. Entropy {bits} of at most {limit} bits over {n_open} open keys."

    def picture(self) -> Picture:
        """Draw all heads small, the open one large, and its row as bars."""
        layer, head, query = self.place()
        weights, allowed = self.open_part(), self.allowed()
        n_layers, n_heads, n_queries, n_keys = weights.shape
        thumb = min(44, 320 / n_heads) / max(n_queries, n_keys)
        cell = max(2, min(22, 480 // max(n_queries, n_keys)))
        left, top = 20 + n_heads * (n_keys * thumb + 6) + 90, 90
        bars = left + n_keys * cell + 26
        height = max(
            top + max(n_queries * cell, 17 * min(n_keys, 24)), 30 + n_layers * (n_queries * thumb + 6)
        )
        picture = Picture(round(bars + 190), round(height + 12))
        picture.text(10, 12, f"{n_layers} layers (down), {n_heads} heads (across)", bold=True)
        for i, j in np.ndindex(n_layers, n_heads):
            x, y = 12 + j * (n_keys * thumb + 6), 28 + i * (n_queries * thumb + 6)
            picture.cells(x, y, thumb, weights[i, j], ~allowed)
            if (i, j) == (layer, head):
                picture.rect(x - 3, y - 3, n_keys * thumb + 5, n_queries * thumb + 5, outline=ACCENT, line=2)
        picture.text(left, 12, f"layer {layer}, head {head}", bold=True)
        picture.cells(left, top, cell, weights[layer, head], ~allowed)
        queries, keys = self.query_tokens[self.part], self.key_tokens[self.part]
        if cell >= 12:
            for i, token in enumerate(queries):
                color = ACCENT if i == query else SOFT
                picture.text(
                    left - 6, top + (i + 0.5) * cell, token[:10], anchor="rm", color=color, bold=i == query
                )
            for j, token in enumerate(keys):
                picture.text_up(left + (j + 0.5) * cell, top - 5, token[:9])
        picture.rect(left - 1, top + query * cell - 1, n_keys * cell + 1, cell + 1, outline=ACCENT, line=2)
        picture.text(bars, top - 14, f"“{queries[query][:14]}” looks at", bold=True)
        row = weights[layer, head, query]
        for line, j in enumerate(sorted(np.argsort(-row, kind="stable")[:24])):
            y = top + 10 + 17 * line
            picture.text(bars + 60, y, keys[j][:8], anchor="rm", size=11)
            if not allowed[query, j]:
                picture.hatch(bars + 66, y - 5, 20, 10)
                continue
            picture.rect(bars + 66, y - 5, 70 * row[j], 10, fill=ACCENT)
            picture.text(bars + 72 + 70 * row[j], y, percent(row[j]), size=11)
        return picture


def attention(
    source: Any,
    tokens: Sequence[str],
    key_tokens: Sequence[str] | None = None,
    *,
    token_ids: Any = None,
    key_ids: Any = None,
    mask: Any = None,
    layer: int = 0,
    head: int = 0,
    query: int = 0,
) -> AttentionExplorer:
    """Explore who looks at whom: all heads small, one opened, its rows as distributions.

    Parameters
    ----------
    source : Tensor, array, sequence of them, or model
        Weights of shape (T, S), (H, T, S) or (L, H, T, S); a sequence of layers of shape (H, T, S) or
        (1, H, T, S); or a language model, classifier, transformer or translator, which then reads
        `token_ids`. At most 12 layers, 12 heads, and 128 tokens a side.
    tokens : sequence of str
        One for each query, T; of a translator, the target.
    key_tokens : sequence of str, optional
        One for each key, S, where these are other tokens (cross-attention); of a translator, the source.
    token_ids, key_ids : sequence or Tensor of int, optional
        What a model reads: its tokens (of a translator, the target), and the source of a translator.
    mask : Tensor or array of bool, broadcastable to (T, S), optional
        True = may attend. Of a model it is known; otherwise nothing counts as masked where it is left out.
    layer, head, query : int
        What is open at first.

    Returns
    -------
    AttentionExplorer

    Raises
    ------
    TypeError
        If the mask is not boolean.
    ValueError
        If shapes do not fit, a row does not sum to 1 or 0, or something is too large or missing.

    Examples
    --------
    >>> weights = [[1.0, 0.0], [0.25, 0.75]]
    >>> attention(weights, ["a", "b"], query=1).describe()
    'Attention, layer 0, head 0: query 1 “b” looks at 1 “b” 75%, 0 “a” 25%. Entropy 0.81 of at most 1.00 bits over 2 open keys.'
    """  # noqa: E501
    parts = parts_of(source, tokens, key_tokens, token_ids, key_ids, mask)
    for part in parts:
        _check_size(part)
    return AttentionExplorer(
        names=[part.name for part in parts],
        query_tokens=[part.queries for part in parts],
        key_tokens=[part.keys for part in parts],
        sizes=[list(part.weights.shape) for part in parts],
        masks=[["".join("01"[cell] for cell in row.astype(int)) for row in part.allowed] for part in parts],
        weights=b"".join(part.weights.astype(np.float32).tobytes() for part in parts),
        layer=layer,
        head=head,
        query=query,
    )


def _check_size(part: Part) -> None:
    n_layers, n_heads, n_queries, n_keys = part.weights.shape
    if max(n_layers, n_heads) > 12 or max(n_queries, n_keys) > MOST_TOKENS:
        raise ValueError(
            f"an explorer must have at most 12 layers, 12 heads and {MOST_TOKENS} tokens, got "
            f"{n_layers} layers, {n_heads} heads, {n_queries} queries and {n_keys} keys"
        )
