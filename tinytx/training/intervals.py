"""Confidence intervals: for a share of right answers (Wilson) and for paired differences (Student's t)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple


class Interval(NamedTuple):
    """The two ends of a confidence interval."""

    low: float
    high: float


@dataclass(frozen=True)
class PairedInterval:
    """Mean of paired differences with its t-interval."""

    mean: float
    low: float
    high: float
    n: int

    @property
    def excludes_zero(self) -> bool:
        """Whether 0 lies outside the interval."""
        return self.low > 0 or self.high < 0


def _check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")


def wilson_interval(correct: int, n: int, confidence: float = 0.95) -> Interval:
    r"""Interval for a probability of which ``correct`` out of ``n`` draws came out right.

    .. math:: \frac{p + z^2/2n \pm z\sqrt{p(1-p)/n + z^2/4n^2}}{1 + z^2/n}

    Parameters
    ----------
    correct : int
        Number of right answers, 0 to ``n``.
    n : int
        Number of answers, at least 1.
    confidence : float
        Share of such intervals that cover the truth.

    Returns
    -------
    Interval
        Ends within [0, 1]; never of width zero, even when every answer is right.

    References
    ----------
    E. B. Wilson, Journal of the American Statistical Association 22 (1927), 209-212.

    Examples
    --------
    >>> low, high = wilson_interval(8, 10)
    >>> print(f"{low:.3f} {high:.3f}")
    0.490 0.943
    """
    _check_confidence(confidence)
    if n < 1 or not 0 <= correct <= n:
        raise ValueError(f"a share needs 0 <= correct <= n and n >= 1, got correct={correct}, n={n}")
    z = statistics.NormalDist().inv_cdf(0.5 + confidence / 2)
    p = correct / n
    middle = p + z * z / (2 * n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    low = (middle - half) / scale if correct > 0 else 0.0
    high = (middle + half) / scale if correct < n else 1.0
    return Interval(low, high)


def paired_interval(differences: Iterable[float], confidence: float = 0.95) -> PairedInterval:
    r"""Student's t-interval for the mean of paired differences.

    .. math:: \bar d \pm t_{n-1} \, s / \sqrt{n}

    Parameters
    ----------
    differences : iterable of float
        One difference a pair (a seed, say), at least two.
    confidence : float
        Share of such intervals that cover the truth.

    Returns
    -------
    PairedInterval
        Mean, both ends and the number of pairs.

    Examples
    --------
    >>> interval = paired_interval([1.0, 2.0, 3.0])
    >>> print(f"{interval.mean:.1f} {interval.low:.3f} {interval.high:.3f} {interval.excludes_zero}")
    2.0 -0.484 4.484 False
    """
    _check_confidence(confidence)
    values = [float(value) for value in differences]
    if len(values) < 2:
        raise ValueError(f"a paired interval needs at least 2 differences, got {len(values)}")
    mean = statistics.fmean(values)
    half = (
        t_quantile(0.5 + confidence / 2, len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    )
    return PairedInterval(mean, mean - half, mean + half, len(values))


def t_quantile(probability: float, dof: float) -> float:
    """Value below which a Student-t variable with ``dof`` degrees of freedom falls with ``probability``.

    Examples
    --------
    >>> round(t_quantile(0.975, 4), 3)
    2.776
    """
    if not 0 < probability < 1:
        raise ValueError(f"probability must lie between 0 and 1, got {probability}")
    if dof <= 0:
        raise ValueError(f"dof must be positive, got {dof}")
    if probability < 0.5:
        return -t_quantile(1 - probability, dof)
    if probability == 0.5:
        return 0.0
    # With x = dof / (dof + t^2) the upper tail is I_x(dof/2, 1/2) / 2, which falls as t grows.
    tail = 2 * (1 - probability)
    low, high = 0.0, 1.0
    while _beta_share(dof / (dof + high * high), dof / 2, 0.5) > tail:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if _beta_share(dof / (dof + middle * middle), dof / 2, 0.5) > tail:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _beta_share(x: float, a: float, b: float) -> float:
    """Regularised incomplete beta function I_x(a, b)."""
    if x in (0.0, 1.0):
        return x
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast only on this side of the mean
        return 1 - _beta_share(1 - x, b, a)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(log_front) / (a * _beta_fraction(x, a, b))


def _beta_fraction(x: float, a: float, b: float, n_terms: int = 300) -> float:
    """Continued fraction of the incomplete beta function, evaluated by Lentz's method (DLMF 8.17.22)."""
    tiny = 1e-300
    value = c = 1.0
    d = 0.0
    for term in range(1, n_terms):
        m = term // 2
        if term % 2:
            step = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            step = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / ((1 + step * d) or tiny)
        c = (1 + step / c) or tiny
        value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return value
