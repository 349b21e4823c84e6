"""Attention weights with the words they belong to: from a model, from what it traced, or from numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinytx_course.widgets.base import numbers


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """Attention of one kind: all its layers and heads.

    Attributes
    ----------
    name : str
    queries, keys : list of str
    weights : ndarray of shape (L, H, T, S), float32
        Layers, heads, queries, keys; rows sum to 1, or are zero.
    allowed : ndarray of shape (T, S), bool
        True = may attend.
    """

    name: str
    queries: list[str]
    keys: list[str]
    weights: np.ndarray
    allowed: np.ndarray


def parts_of(
    source: Any,
    tokens: Sequence[str],
    key_tokens: Sequence[str] | None,
    token_ids: Any = None,
    key_ids: Any = None,
    mask: Any = None,
) -> list[Part]:
    """Collect the attention in a source. Parameters, and what is refused, as in `attention`."""
    if hasattr(source, "parameters"):  # a model: tensors and arrays have a `trace`, of another kind
        if token_ids is None:
            raise ValueError("token_ids must say what the model reads, got None")
        if hasattr(source, "encoder") and key_ids is None:
            raise ValueError("key_ids must say what the translator reads, got None")
        source, causal = _traced(source, token_ids, key_ids)
        if causal and mask is None:
            mask = np.tri(len(tokens), dtype=bool)
    if hasattr(source, "encoder"):
        if key_tokens is None:
            raise ValueError("key_tokens must name the tokens that a translator reads, got None")
        causal_mask = np.tri(len(tokens), dtype=bool)
        return [
            _part("target to source", source.decoder.cross_weights, tokens, key_tokens, mask),
            _part("source to source", source.encoder.attn_weights, key_tokens, None, None),
            _part("target to target", source.decoder.attn_weights, tokens, None, causal_mask),
        ]
    return [_part("attention", getattr(source, "attn_weights", source), tokens, key_tokens, mask)]


def _traced(model: Any, token_ids: Any, key_ids: Any) -> tuple[Any, bool]:
    """Let a model read, and return its trace and whether it looks back only."""
    import torch

    body = getattr(model, "body", model)
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            device = next(body.parameters()).device
            read = [torch.as_tensor(ids, device=device).reshape(1, -1) for ids in (key_ids, token_ids)
                    if ids is not None]  # fmt: skip
            return body.trace(*read), body.config.causal and not hasattr(body, "encoder")
    finally:
        model.train(training)


def _part(
    name: str, weights: Any, queries: Sequence[str], keys: Sequence[str] | None, mask: Any
) -> Part:  # fmt: skip
    array = _four_axes(weights)
    keys = queries if keys is None else keys
    wanted = (len(queries), len(keys))
    if array.shape[2:] != wanted:
        raise ValueError(
            f"weights must have a row for each of {wanted[0]} queries and a column for each of {wanted[1]} "
            f"keys, got shape {array.shape}"
        )
    sums = array.sum(axis=-1)
    if array.min() < -1e-6 or (abs(sums - 1).clip(max=abs(sums)) > 1e-3).any():
        raise ValueError(
            f"weights must not be negative and each row must sum to 1 (or to 0, for a query that may see "
            f"nothing), got a least weight of {array.min():.3g} and sums {sums.min():.3g} to {sums.max():.3g}"
        )
    return Part(
        name=name,
        queries=[str(token) for token in queries],
        keys=[str(token) for token in keys],
        weights=array.clip(min=0.0),
        allowed=_allowed(mask, wanted),
    )


def _four_axes(weights: Any) -> np.ndarray:
    """Return (L, H, T, S) from a list of layers, or from fewer axes; a batch may only hold one row."""
    if isinstance(weights, list | tuple) and hasattr(weights[0], "ndim") and weights[0].ndim >= 3:
        return np.concatenate([_four_axes(layer) for layer in weights])
    n_axes = weights.ndim if hasattr(weights, "ndim") else np.ndim(weights)
    if not 2 <= n_axes <= 4:
        raise ValueError(f"weights must have 2 to 4 axes, layers, heads, queries and keys, got {n_axes}")
    array = numbers(weights, "weights", n_axes)
    return array.reshape((1,) * (4 - n_axes) + array.shape)


def _allowed(mask: Any, shape: tuple[int, int]) -> np.ndarray:
    if mask is None:
        return np.ones(shape, bool)
    array = mask.cpu().numpy() if hasattr(mask, "cpu") else np.asarray(mask)
    if array.dtype != bool:
        raise TypeError(f"mask must be boolean (True = may attend), got {array.dtype}")
    try:
        return np.broadcast_to(array.reshape(array.shape[-2:]), shape)
    except ValueError as problem:
        raise ValueError(f"mask must broadcast to {shape}, got {array.shape}") from problem
