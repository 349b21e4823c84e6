"""How many learners a comparison of two sittings needs: the power of the paired t test, exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

LEVEL = 0.05  # of a two-sided test
MOST = 2_000  # learners


@dataclass(frozen=True, kw_only=True)
class Assumptions:
    """What the power follows from.

    Parameters
    ----------
    before : float
        Mean share of right answers before the lessons; guessing among four options alone gives 0.25.
    spread : float
        Standard deviation, over learners, of the difference of their two shares.
    """

    before: float = 0.4
    spread: float = 0.15

    def __post_init__(self) -> None:
        if not 0 <= self.before < 1 or self.spread <= 0:
            raise ValueError(
                f"before must be from 0 to below 1 and spread above 0, got before={self.before}, "
                f"spread={self.spread}"
            )


def power(n: int, gain: float, given: Assumptions) -> float:
    r"""Probability that a paired t test of n learners finds a normalised gain.

    The differences are taken to be normal, with mean :math:`g (1 - p)`; then t has a noncentral t
    distribution with n - 1 degrees of freedom and noncentrality :math:`\sqrt n \, g (1 - p) / s`.

    Parameters
    ----------
    n : int
        Learners with both sittings, at least 2.
    gain : float
        g, the share gained of what was missing before.
    given : Assumptions
        p and s.

    References
    ----------
    J. Cohen, "Statistical Power Analysis for the Behavioral Sciences", second edition (1988), section 2.3.

    Examples
    --------
    >>> print(f"{power(10, 0.0, Assumptions()):.3f}")
    0.050
    """
    from scipy import stats

    if n < 2:
        raise ValueError(f"n must be at least 2, got {n}")
    shift = math.sqrt(n) * gain * (1 - given.before) / given.spread
    edge = stats.t.ppf(1 - LEVEL / 2, n - 1)
    return float(stats.nct.sf(edge, n - 1, shift) + stats.nct.cdf(-edge, n - 1, shift))


def learners_needed(gain: float, given: Assumptions, wanted: float = 0.8) -> int | None:
    """The smallest number of learners that finds a gain with this probability; None above 2,000."""
    high = 2
    while power(high, gain, given) < wanted:
        high *= 2
        if high > 2 * MOST:
            return None
    low = high // 2 + 1  # half as many are too few, or there are no fewer than 2
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if power(middle, gain, given) >= wanted else (middle + 1, high)
    return low if low <= MOST else None


def power_table() -> list[dict[str, Any]]:
    """Learners needed for gains from 0.05 to 0.5, three spreads, and a power of 80 and 90 %."""
    rows = []
    for gain in (0.05, 0.1, 0.2, 0.3, 0.5):
        row: dict[str, Any] = {"gain": gain}
        for spread in (0.1, 0.15, 0.25):
            given = Assumptions(spread=spread)
            row |= {f"{spread}/{wanted}": learners_needed(gain, given, wanted) for wanted in (0.8, 0.9)}
        rows.append(row)
    return rows
