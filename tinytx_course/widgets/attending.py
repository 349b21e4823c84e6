"""Attention weights with the words they belong to: from a model, or from numbers."""

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
    if hasattr(source, "parameters"):  # a model
        if token_ids is None:
            raise ValueError("token_ids must say what the model reads, got None")
        if hasattr(source, "encoder") and key_ids is None:
            raise ValueError("key_ids must say what the translator reads, got None")
        weights = _recorded(source, token_ids, key_ids)
        causal_mask = np.tri(len(tokens), dtype=bool)
        if hasattr(source, "encoder"):
            if key_tokens is None:
                raise ValueError("key_tokens must name the tokens that a translator reads, got None")
            return [
                _part("target to source", weights["cross_attn"], tokens, key_tokens, mask),
                _part("source to source", weights["encoder"], key_tokens, None, None),
                _part("target to target", weights["attn"], tokens, None, causal_mask),
            ]
        causal = getattr(source, "body", source).config.causal
        source, mask = weights["attn"], causal_mask if causal and mask is None else mask
    return [_part("attention", source, tokens, key_tokens, mask)]


def _recorded(model: Any, token_ids: Any, key_ids: Any) -> dict[str, list[Any]]:
    """Attention weights of each layer, by kind: "encoder", "cross_attn", and "attn" for all other."""
    import torch

    from tinytx.model.attention import record_attention

    body = getattr(model, "body", model)
    training = model.training
    model.eval()
    try:
        with torch.no_grad(), record_attention(body) as recorded:
            device = next(body.parameters()).device
            body(*(torch.as_tensor(ids, device=device).reshape(1, -1) for ids in (key_ids, token_ids)
                   if ids is not None))  # fmt: skip
    finally:
        model.train(training)
    weights: dict[str, list[Any]] = {}
    for name, layer in recorded.items():
        kind = "encoder" if name.startswith("encoder") else name.rpartition(".")[2]
        weights.setdefault(kind, []).append(layer)
    return weights


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
