"""From logits to the token that is drawn, stage by stage: what the explorer of sampling shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinytx_course.widgets.saturation import mixed

_CLOSE = 1e-6  # probabilities this close to top-p count as reaching it, whatever the last bits say


@dataclass(frozen=True)
class Stages:
    """One distribution on its way, each an array of shape (V,).

    Attributes
    ----------
    model, heated : ndarray, float64
        Softmax of the logits, and of the logits divided by the temperature.
    by_top_k, by_top_p : ndarray, bool
        Which tokens each of the two cuts away; a token that logits of ``-inf`` forbid is cut by neither.
    final : ndarray, float64
        What is drawn from; sums to 1.
    order : ndarray, int
        The tokens, most probable first.
    """

    model: np.ndarray
    heated: np.ndarray
    by_top_k: np.ndarray
    by_top_p: np.ndarray
    final: np.ndarray
    order: np.ndarray

    @property
    def left(self) -> np.ndarray:
        """Which tokens can be drawn."""
        return (self.model > 0) & ~self.by_top_k & ~self.by_top_p


def stages(logits: np.ndarray, temperature: float, top_k: int, top_p: float) -> Stages:
    """Return every stage from logits of shape (V,) to what is drawn from.

    The same as `tinytx.training.next_token_probs`, which returns the last stage only.

    Examples
    --------
    >>> found = stages(np.log([0.5, 0.3, 0.2]), temperature=1.0, top_k=2, top_p=1.0)
    >>> found.final.round(3)
    array([0.625, 0.375, 0.   ])
    """
    model, heated = _softmax(logits), _softmax(logits / temperature)
    order = np.argsort(-logits, kind="stable")
    rank = np.empty(len(order), int)
    rank[order] = np.arange(len(order))
    before = np.empty(len(order))
    before[order] = np.cumsum(heated[order]) - heated[order]  # probability of all that stand in front
    possible = np.isfinite(logits)
    by_top_k = possible & (rank >= top_k)
    by_top_p = possible & (top_p < 1) & (before >= top_p - _CLOSE)
    kept = np.where(by_top_k | by_top_p, 0.0, heated)
    return Stages(model, heated, by_top_k, by_top_p, kept / kept.sum(), order)


def _softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max())
    return powers / powers.sum()


def draws(found: Stages, n_draws: int, seed: int) -> np.ndarray:
    """Return the tokens that are drawn, of shape (n_draws,).

    Draw i of a seed has its own number between 0 and 1, whatever the distribution: with other settings the
    same luck meets another distribution.
    """
    counts = np.arange(1, n_draws + 1) + 100_003 * seed
    luck = (mixed(counts.astype(np.uint32)).astype(float) + 0.5) / 2.0**32
    ranked = found.order[found.left[found.order]]
    places = np.searchsorted(np.cumsum(found.final[ranked]), luck, side="right")
    return ranked[np.minimum(places, len(ranked) - 1)]


def entropy_in_bits(shares: np.ndarray) -> float:
    """Return the entropy of a distribution.

    Examples
    --------
    >>> entropy_in_bits(np.array([0.5, 0.5, 0.0]))
    1.0
    """
    some = shares[shares > 0]
    return float(-(some * np.log2(some)).sum() + 0.0)
