"""The attention explorer: in every head, the row of each query is a distribution over keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
import traitlets

from tinytx.attention import record_attention
from tinytx.inference import eval_mode
from tinytx.settings import require
from tinytx_course.widgets.base import Explorer, bounded, mask_cells, numbers

_MOST_TOKENS = 128


class AttentionExplorer(Explorer):
    """See `attention`.

    A part is one model, trained or untrained, with all its layers and heads: `sizes` holds L, H, T, S of
    each, `masks` a text of 0 and 1 for each query, `weights` all parts one after the other.
    """

    kind = "attention"
    shares = ("weights",)
    title = traitlets.Unicode("Attention explorer").tag(sync=True)

    names = traitlets.List(traitlets.Unicode()).tag(sync=True)
    query_tokens = traitlets.List(traitlets.List(traitlets.Unicode())).tag(sync=True)
    key_tokens = traitlets.List(traitlets.List(traitlets.Unicode())).tag(sync=True)
    sizes = traitlets.List(traitlets.List(traitlets.Int())).tag(sync=True)
    masks = traitlets.List(traitlets.List(traitlets.Unicode())).tag(sync=True)
    weights = traitlets.Bytes().tag(sync=True)
    part = bounded(0, 0, lambda its: len(its.names) - 1)
    layer = bounded(0, 0, lambda its: its.sizes[0][0] - 1)
    head = bounded(0, 0, lambda its: its.sizes[0][1] - 1)
    query = bounded(0, 0, lambda its: its.sizes[0][2] - 1)
    by_habit = traitlets.Bool(False).tag(sync=True)

    def summary(self) -> str:
        """Return what is shown, and the head and query that are open."""
        n_layers, n_heads, n_queries, n_keys = self.sizes[self.part]
        return (
            "The attention weights of all heads, one head opened, and the row of one query over its keys. "
            f"{n_layers} × {n_heads} heads, {n_queries} queries, {n_keys} keys; query {self.query} "
            f"“{self.query_tokens[self.part][self.query]}”."
        )


def attention(
    source: Any,
    tokens: Sequence[str],
    key_tokens: Sequence[str] | None = None,
    *,
    token_ids: Any = None,
    mask: Any = None,
    untrained: bool = False,
    layer: int = 0,
    head: int = 0,
    query: int = 0,
) -> AttentionExplorer:
    """Explore attention weights: all heads small, one opened, its rows as distributions.

    Parameters
    ----------
    source : Tensor, array, sequence of them, or model
        Weights of shape (T, S), (H, T, S) or (L, H, T, S); a sequence of layers of shape (H, T, S) or
        (1, H, T, S); or a language model, classifier or transformer, which then reads `token_ids`. At most
        12 layers, 12 heads, and 128 tokens a side.
    tokens : sequence of str
        One for each query, T.
    key_tokens : sequence of str, optional
        One for each key, S, where these are other tokens (cross-attention).
    token_ids : sequence or Tensor of int, optional
        What a model reads.
    mask : Tensor or array of bool, broadcastable to (T, S), optional
        True = may attend. Of a causal model it is known; otherwise nothing is masked by default.
    untrained : bool
        Whether the same language model with new random weights is behind a switch.
    layer, head, query : int
        What is open at first.

    Raises
    ------
    TypeError
        If the mask is not boolean.
    ValueError
        If shapes do not fit, a row does not sum to 1 or 0, or something is too large or missing.

    Examples
    --------
    >>> explorer = attention([[1.0, 0.0], [0.25, 0.75]], ["a", "b"], query=1)
    >>> explorer.sizes, explorer.masks
    ([[1, 1, 2, 2]], [['11', '11']])
    """
    sources = {"attention": source}
    if untrained:
        with torch.random.fork_rng():  # the random numbers of a lesson stay what they are
            sources = {"trained": source, "untrained": type(source)(source.config)}
    if mask is None and hasattr(source, "parameters") and getattr(source, "body", source).config.causal:
        mask = np.tri(len(tokens), dtype=bool)
    parts = [
        _part(name, _weights_of(each, token_ids), tokens, key_tokens, mask) for name, each in sources.items()
    ]
    return AttentionExplorer(
        names=[part.name for part in parts],
        query_tokens=[part.queries for part in parts],
        key_tokens=[part.keys for part in parts],
        sizes=[list(part.weights.shape) for part in parts],
        masks=[["".join("01"[cell] for cell in row.astype(int)) for row in part.allowed] for part in parts],
        weights=b"".join(part.weights.tobytes() for part in parts),
        layer=layer,
        head=head,
        query=query,
    )


class _Part(NamedTuple):
    """The weights of one model, (L, H, T, S) float32, and which cells a mask leaves open, (T, S)."""

    name: str
    queries: list[str]
    keys: list[str]
    weights: np.ndarray
    allowed: np.ndarray


def _weights_of(source: Any, token_ids: Any) -> Any:
    """Return weights as they are, or those of each layer of a model that reads the tokens."""
    if not hasattr(source, "parameters"):
        return source
    if token_ids is None:
        raise ValueError("token_ids must say what the model reads, got None")
    body = getattr(source, "body", source)
    with eval_mode(body) as device, record_attention(body) as recorded:
        body(torch.as_tensor(token_ids, device=device).reshape(1, -1))
    return list(recorded.values())


def _part(name: str, weights: Any, queries: Sequence[str], keys: Sequence[str] | None, mask: Any) -> _Part:
    array = _four_axes(weights)
    n_layers, n_heads, n_queries, n_keys = array.shape
    keys = queries if keys is None else keys
    if (n_queries, n_keys) != (len(queries), len(keys)):
        raise ValueError(
            f"weights must have a row for each of {len(queries)} queries and a column for each of "
            f"{len(keys)} keys, got shape {array.shape}"
        )
    if max(n_layers, n_heads) > 12 or max(n_queries, n_keys) > _MOST_TOKENS:
        raise ValueError(
            f"an explorer must have at most 12 layers, 12 heads and {_MOST_TOKENS} tokens, got "
            f"{n_layers} layers, {n_heads} heads, {n_queries} queries and {n_keys} keys"
        )
    sums = array.sum(axis=-1)
    if array.min() < -1e-6 or (abs(sums - 1).clip(max=abs(sums)) > 1e-3).any():
        raise ValueError(
            f"weights must not be negative and each row must sum to 1 (or to 0, for a query that attends to "
            f"nothing), got a least weight of {array.min():.3g} and sums {sums.min():.3g} to {sums.max():.3g}"
        )
    allowed = mask_cells(mask, (n_queries, n_keys))
    return _Part(name, list(map(str, queries)), list(map(str, keys)), array.clip(min=0.0), allowed)


def _four_axes(weights: Any) -> np.ndarray:
    """Return (L, H, T, S) from a list of layers, or from fewer axes; a batch may only hold one row."""
    if isinstance(weights, list | tuple) and hasattr(weights[0], "ndim") and weights[0].ndim >= 3:
        return np.concatenate([_four_axes(layer) for layer in weights])
    n_axes = weights.ndim if hasattr(weights, "ndim") else np.ndim(weights)
    require(2 <= n_axes <= 4, "weights must have 2 to 4 axes, layers, heads, queries and keys", n_axes)
    array = numbers(weights, "weights", n_axes)
    return array.reshape((1,) * (4 - n_axes) + array.shape)
