"""95 % confidence intervals: of a share of right answers (Wilson) and of paired differences (Student's t)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

QUANTILE = 0.975  # both tails of 2.5 % are left out


class Interval(NamedTuple):
    """The two ends of a confidence interval."""

    low: float
    high: float


@dataclass(frozen=True)
class PairedInterval:
    """Mean of n paired differences with its confidence interval."""

    mean: float
    low: float
    high: float
    n: int

    @property
    def excludes_zero(self) -> bool:
        """Whether 0 lies outside the interval."""
        return self.low > 0 or self.high < 0


def wilson_interval(correct: int, n: int) -> Interval:
    r"""Confidence interval of a probability, from ``correct`` successes in ``n`` trials.

    .. math:: \frac{p + z^2/2n \pm z\sqrt{p(1-p)/n + z^2/4n^2}}{1 + z^2/n}

    It lies within [0, 1] and never has width zero.

    References
    ----------
    E. B. Wilson, Journal of the American Statistical Association 22 (1927), 209-212.

    Examples
    --------
    >>> low, high = wilson_interval(8, 10)
    >>> print(f"{low:.3f} {high:.3f}")
    0.490 0.943
    """
    if n < 1 or not 0 <= correct <= n:
        raise ValueError(f"a share needs 0 <= correct <= n and n >= 1, got correct={correct}, n={n}")
    z = statistics.NormalDist().inv_cdf(QUANTILE)
    p, scale = correct / n, 1 + z**2 / n
    middle, half = (p + z**2 / (2 * n)) / scale, z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / scale
    return Interval(max(0.0, middle - half), min(1.0, middle + half))


def paired_interval(differences: Iterable[float]) -> PairedInterval:
    r"""Student's t confidence interval of the mean of at least two paired differences (one a seed, say).

    .. math:: \bar d \pm t_{n-1} \, s / \sqrt{n}

    Examples
    --------
    >>> interval = paired_interval([1.0, 2.0, 3.0])
    >>> print(f"{interval.mean:.1f} {interval.low:.3f} {interval.high:.3f} {interval.excludes_zero}")
    2.0 -0.484 4.484 False
    """
    from scipy.stats import t

    values = [float(value) for value in differences]
    if len(values) < 2:
        raise ValueError(f"a paired interval needs at least 2 differences, got {len(values)}")
    mean = statistics.fmean(values)
    half = float(t.ppf(QUANTILE, len(values) - 1)) * statistics.stdev(values) / math.sqrt(len(values))
    return PairedInterval(mean, mean - half, mean + half, len(values))
