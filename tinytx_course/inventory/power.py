"""How many learners a comparison of two sittings needs: the power of the paired t test, exactly."""

from __future__ import annotations

import math
from bisect import bisect_left

LEVEL = 0.05  # of a two-sided test
MOST = 2_000  # learners
BEFORE = 0.4  # mean share of right answers before the lessons; guessing among four options alone gives 0.25


def power(n: int, gain: float, spread: float) -> float:
    r"""Probability that a paired t test of n learners finds a normalised gain.

    The differences are taken to be normal, with mean :math:`g (1 - p)`; then t has a noncentral t
    distribution with n - 1 degrees of freedom and noncentrality :math:`\sqrt n \, g (1 - p) / s`, where p is
    `BEFORE`.

    Parameters
    ----------
    n : int
        Learners with both sittings, at least 2.
    gain : float
        g, the share gained of what was missing before.
    spread : float
        s, the standard deviation, over learners, of the difference of their two shares.

    References
    ----------
    J. Cohen, "Statistical Power Analysis for the Behavioral Sciences", second edition (1988), section 2.3.

    Examples
    --------
    >>> print(f"{power(10, 0.0, 0.15):.3f}")
    0.050
    """
    from scipy import stats

    shift = math.sqrt(n) * gain * (1 - BEFORE) / spread
    edge = stats.t.ppf(1 - LEVEL / 2, n - 1)
    return float(stats.nct.sf(edge, n - 1, shift) + stats.nct.cdf(-edge, n - 1, shift))


def learners_needed(gain: float, spread: float, wanted: float = 0.8) -> int | None:
    """The smallest number of learners that finds a gain with this probability; None above 2,000."""
    n = 2 + bisect_left(range(2, MOST + 1), wanted, key=lambda n: power(n, gain, spread))
    return n if n <= MOST else None


def power_table() -> tuple[list[str], list[list[object]]]:
    """Learners needed for a gain, by spread and power: names of columns, and rows."""
    columns = [(spread, wanted) for spread in (0.1, 0.15, 0.25) for wanted in (0.8, 0.9)]
    head = ["normalised gain", *(f"spread {spread}, power {wanted:.0%}" for spread, wanted in columns)]
    return head, [
        [gain, *(learners_needed(gain, *column) or f"over {MOST:,}" for column in columns)]
        for gain in (0.05, 0.1, 0.2, 0.3, 0.5)
    ]
