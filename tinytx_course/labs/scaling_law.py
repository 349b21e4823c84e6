"""A scaling law, fitted as it is usually done: with the entropy bound as a free constant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import least_squares

HUBER = 1e-3  # misses of log L beyond this count linearly, as in the fit of Hoffmann et al.


@dataclass(frozen=True)
class ScalingLaw:
    """``L(N, D) = E + A / N^a + B / D^b``: nats per token of a model of N parameters after D tokens."""

    E: float  # the loss that no model falls below
    A: float
    a: float
    B: float
    b: float

    def __call__(self, n_params: ArrayLike, n_tokens: ArrayLike) -> np.ndarray:
        """The losses that the law predicts."""
        return self.E + self.A * np.asarray(n_params) ** -self.a + self.B * np.asarray(n_tokens) ** -self.b


def fit_law(
    n_params: ArrayLike,
    n_tokens: ArrayLike,
    losses: ArrayLike,
    *,
    constant: bool = True,
    start: ScalingLaw | None = None,
) -> ScalingLaw:
    """Fit a scaling law to the losses of finished models.

    Parameters
    ----------
    n_params, n_tokens, losses : arrays of shape (R,)
        N, D and the held-out loss of each of R runs.
    constant : bool
        False sets E to 0: the law of what remains when a known bound has been subtracted from the losses.
    start : ScalingLaw, optional
        Where the search begins; by default at each of a grid, of which the best fit is taken.

    References
    ----------
    .. [1] Hoffmann et al., "Training Compute-Optimal Large Language Models", arXiv 2203.15556, appendix D.2.

    Examples
    --------
    >>> true = ScalingLaw(E=1.2, A=30.0, a=0.5, B=2e3, b=0.7)
    >>> n, d = np.array([1e4, 1e4, 1e4, 1e5, 1e6, 1e6]), np.array([1e5, 1e6, 1e7, 1e6, 1e5, 1e7])
    >>> round(fit_law(n, d, true(n, d)).E, 3)
    1.2
    """
    log_n, log_d, log_l = (np.log(np.asarray(each, float)) for each in (n_params, n_tokens, losses))
    middle_n, middle_d, level = log_n.mean(), log_d.mean(), log_l.mean()

    def misses(p: np.ndarray) -> np.ndarray:
        log_e, log_a, a, log_b, b = p  # the three terms in the middle of the runs, and the exponents
        terms = [log_a - a * (log_n - middle_n), log_b - b * (log_d - middle_d)]
        return np.logaddexp.reduce([*terms, *[np.full_like(log_n, log_e)] * constant]) - log_l

    low, high = level - 3.0, level - 1.0
    starts = list(product((high, level), (low, high), (0.3, 1.0), (low, high), (0.3, 1.0)))
    if start is not None:
        in_the_middle = np.log(start.A) - start.a * middle_n, np.log(start.B) - start.b * middle_d
        starts = [(np.log(max(start.E, 1e-9)), in_the_middle[0], start.a, in_the_middle[1], start.b)]
    rough = [least_squares(misses, one, x_scale="jac").x for one in starts]
    fits = [least_squares(misses, one, loss="huber", f_scale=HUBER, x_scale="jac") for one in rough]
    log_e, log_a, a, log_b, b = (float(each) for each in min(fits, key=lambda fit: fit.cost).x)
    at_one = np.exp(log_a + a * middle_n), np.exp(log_b + b * middle_d)
    return ScalingLaw(float(np.exp(log_e)) if constant else 0.0, float(at_one[0]), a, float(at_one[1]), b)


def bootstrap(
    n_params: ArrayLike, n_tokens: ArrayLike, losses: ArrayLike, *, n_draws: int = 200, seed: int = 0
) -> list[ScalingLaw]:
    """The laws fitted to as many runs as there are, drawn from them with replacement."""
    runs, rng = np.array([n_params, n_tokens, losses], float), np.random.default_rng(seed)
    whole, n_runs = fit_law(*runs), runs.shape[1]
    return [fit_law(*runs[:, rng.integers(n_runs, size=n_runs)], start=whole) for _ in range(n_draws)]


def range_of(values: Sequence[float]) -> tuple[float, float]:
    """The middle of some values: the ends of the interval that holds 95 % of them."""
    low, high = np.quantile(values, [(1 - 0.95) / 2, (1 + 0.95) / 2])
    return float(low), float(high)
