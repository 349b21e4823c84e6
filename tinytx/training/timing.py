"""How long things take, measured fairly: warm, repeated, and in turn, so that a slow moment hits all."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tinytx.training.intervals import PairedInterval, paired_interval

Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True)
class Times:
    """Seconds that one task took, round by round.

    Attributes
    ----------
    seconds : tuple of float
        One a round, for a single call.
    """

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle one, which a slow moment cannot move far."""
        return statistics.median(self.seconds)

    @property
    def low(self) -> float:
        """The quickest."""
        return min(self.seconds)

    @property
    def high(self) -> float:
        """The slowest."""
        return max(self.seconds)


def time_in_turn(
    tasks: Mapping[Name, Callable[[], object]], *, n_rounds: int = 5, min_seconds: float = 0.002
) -> dict[Name, Times]:
    """Time several tasks, one after the other and again: A B C, A B C, ...

    Parameters
    ----------
    tasks : mapping of name to callable without arguments
        Each is called once before, to warm up. They should wait for their own results: what is handed to a
        GPU has to be synchronised within the task.
    n_rounds : int
        How often each task is measured, at least 1.
    min_seconds : float
        A task that is quicker is called several times in a row, so that the clock can see it.

    Returns
    -------
    dict of name to Times

    Raises
    ------
    ValueError
        If there is no task, `n_rounds` is smaller than 1 or `min_seconds` is negative.

    Examples
    --------
    >>> times = time_in_turn({"short": lambda: sum(range(10)), "long": lambda: sum(range(10_000))})
    >>> times["short"].median < times["long"].median
    True
    """
    if not tasks:
        raise ValueError("tasks must hold at least one task, got none")
    if n_rounds < 1 or min_seconds < 0:
        raise ValueError(
            "n_rounds must be at least 1 and min_seconds not negative, "
            f"got n_rounds={n_rounds}, min_seconds={min_seconds}"
        )
    n_calls = {}
    for name, task in tasks.items():
        task()
        n_calls[name] = max(1, math.ceil(min_seconds / max(_seconds(task, 1), 1e-9)))
    seconds: dict[Name, list[float]] = {name: [] for name in tasks}
    for _ in range(n_rounds):
        for name, task in tasks.items():
            seconds[name].append(_seconds(task, n_calls[name]) / n_calls[name])
    return {name: Times(tuple(each)) for name, each in seconds.items()}


def _seconds(task: Callable[[], object], n_calls: int) -> float:
    start = time.perf_counter()
    for _ in range(n_calls):
        task()
    return time.perf_counter() - start


def exponent(x: Sequence[float], y: Sequence[float]) -> float:
    """Fit ``y = c x^p`` by least squares on logarithmic axes and return p.

    Raises
    ------
    ValueError
        If there are not as many y as x, fewer than two different x, or one of them is not positive.

    Examples
    --------
    >>> round(exponent([1, 2, 4], [5, 20, 80]), 6)
    2.0
    """
    if len(x) != len(y) or len(set(x)) < 2:
        raise ValueError(f"a fit needs as many y as x and two different x, got {len(x)} x and {len(y)} y")
    if min(*x, *y) <= 0:
        raise ValueError(f"a fit on logarithmic axes needs positive numbers, got {min(*x, *y)}")
    return statistics.linear_regression([math.log(each) for each in x], [math.log(each) for each in y]).slope


def exponent_of_times(
    x: Sequence[float], times: Sequence[Times], confidence: float = 0.95
) -> PairedInterval:
    """Fit an exponent to each round of measurements by itself, and give the mean with its t-interval.

    Parameters
    ----------
    x : sequence of float
        Sizes.
    times : sequence of Times
        One a size, with equally many rounds, at least two.
    confidence : float
        Share of such intervals that cover the truth.

    Returns
    -------
    PairedInterval
        How well the exponent is known, given that times vary from round to round. That the points lie on a
        line at all it does not say.

    Raises
    ------
    ValueError
        As in `exponent` and `paired_interval`.
    """
    rounds = zip(*(each.seconds for each in times), strict=True)
    return paired_interval([exponent(x, seconds) for seconds in rounds], confidence)


def first_crossing(x: Sequence[float], y: Sequence[float], other: Sequence[float]) -> float | None:
    """Find where y, below `other` at first, comes to lie above it, on straight lines on logarithmic axes.

    Returns
    -------
    float or None
        The x of the crossing; None where y starts above, or stays below to the end.

    Examples
    --------
    >>> round(first_crossing([1, 2, 4, 8], [1, 4, 16, 64], [3, 6, 12, 24]), 6)
    3.0
    """
    ahead = [math.log(mine / theirs) for mine, theirs in zip(y, other, strict=True)]
    if ahead[0] >= 0:
        return None
    for i in range(1, len(ahead)):
        if ahead[i] >= 0:
            share = ahead[i - 1] / (ahead[i - 1] - ahead[i])
            return math.exp(math.log(x[i - 1]) + share * math.log(x[i] / x[i - 1]))
    return None
