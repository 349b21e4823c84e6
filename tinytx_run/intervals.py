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
    """Wilson's confidence interval of a probability, from ``correct`` successes in ``n`` trials.

    It lies within [0, 1] and never has width zero.

    Examples
    --------
    >>> low, high = wilson_interval(8, 10)
    >>> print(f"{low:.3f} {high:.3f}")
    0.490 0.943
    """
    from scipy.stats import binomtest  # here, so that what needs no interval does without the package

    if n < 1 or not 0 <= correct <= n:
        raise ValueError(f"a share needs 0 <= correct <= n and n >= 1, got correct={correct}, n={n}")
    return Interval(*map(float, binomtest(correct, n).proportion_ci(method="wilson")))


def paired_interval(
    differences: Iterable[float], n_comparisons: int = 1, *, test_share: float = 0.0
) -> PairedInterval:
    r"""Student's t confidence interval of the mean of at least two paired differences (one a seed, say).

    .. math:: \bar d \pm t_{n-1} \, s \sqrt{1/n + n_\text{test} / n_\text{train}}

    The second term is for training sets that overlap, as those of folds do (Nadeau and Bengio's corrected
    resampled t-test): with k folds `test_share` is 1 / (k - 1), tested texts by those that may be learned
    from. It is 0 where no two differences share a training text, as with seeds of a generated language.

    Where it is one of several, it widens by Bonferroni's correction: each of m intervals may miss with a
    probability of 0.05 / m, so all m hold together with 0.95 or more.

    References
    ----------
    C. Nadeau and Y. Bengio, "Inference for the Generalization Error", Machine Learning 52 (2003), 239-281,
    section 3.

    Examples
    --------
    >>> for interval in (paired_interval([1.0, 2.0, 3.0]), paired_interval([1.0, 2.0, 3.0], n_comparisons=9)):
    ...     print(f"{interval.mean:.1f} {interval.low:.3f} {interval.high:.3f} {interval.excludes_zero}")
    2.0 -0.484 4.484 False
    2.0 -5.714 9.714 False
    """
    from scipy.stats import t

    values = [float(value) for value in differences]
    if len(values) < 2:
        raise ValueError(f"a paired interval needs at least 2 differences, got {len(values)}")
    if not all(map(math.isfinite, values)):
        raise ValueError(f"differences must be finite numbers, got {values}")
    if n_comparisons < 1:
        raise ValueError(f"n_comparisons must be at least 1, got {n_comparisons}")
    if not 0 <= test_share < math.inf:
        raise ValueError(f"test_share must be 0 or more, got {test_share}")
    mean, quantile = statistics.fmean(values), 1 - (1 - QUANTILE) / n_comparisons
    error = statistics.stdev(values) * math.sqrt(1 / len(values) + test_share)
    half = float(t.ppf(quantile, len(values) - 1)) * error
    return PairedInterval(mean, mean - half, mean + half, len(values))
