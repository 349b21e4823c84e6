"""How long things take, measured fairly: warm, repeated, and in turn, so that a slow moment hits all."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch

Name = TypeVar("Name", bound=Hashable)


def wait_for(device: torch.device) -> None:
    """Wait until a GPU has done what it was told; a processor is never behind."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


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
        """A quarter of the rounds was quicker."""
        return self._quartile(0)

    @property
    def high(self) -> float:
        """A quarter of the rounds was slower."""
        return self._quartile(2)

    def _quartile(self, which: int) -> float:
        if len(self.seconds) == 1:
            return self.seconds[0]
        return statistics.quantiles(self.seconds, n=4, method="inclusive")[which]


def time_in_turn(
    tasks: Mapping[Name, Callable[[], object]],
    *,
    n_rounds: int = 5,
    min_seconds: float = 0.002,
    clock: Callable[[], float] = time.perf_counter,
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
    clock : callable without arguments
        Says what time it is, in seconds. `time.process_time` stands still while other programs have the
        core, but adds up the time of all threads.

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
        n_calls[name] = max(1, math.ceil(min_seconds / max(_seconds(task, 1, clock), 1e-9)))
    seconds: dict[Name, list[float]] = {name: [] for name in tasks}
    for _ in range(n_rounds):
        for name, task in tasks.items():
            seconds[name].append(_seconds(task, n_calls[name], clock) / n_calls[name])
    return {name: Times(tuple(each)) for name, each in seconds.items()}


def _seconds(task: Callable[[], object], n_calls: int, clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(n_calls):
        task()
    return clock() - start


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


@dataclass(frozen=True)
class Slope:
    """An exponent fitted to measured times, and the ends of its interval."""

    value: float
    low: float
    high: float


def exponent_of_times(
    x: Sequence[float], times: Sequence[Times], confidence: float = 0.95, n_resamples: int = 1000
) -> Slope:
    """Fit an exponent to the medians over all rounds, with a bootstrap interval.

    Parameters
    ----------
    x : sequence of float
        Sizes.
    times : sequence of Times
        One a size, with equally many rounds.
    confidence : float
        Share of the exponents of resampled rounds that lie within the interval.
    n_resamples : int
        How often rounds are drawn with replacement, from a fixed seed.

    Returns
    -------
    Slope
        How well the exponent is known, given that times vary from round to round. That the points lie on a
        line at all it does not say.

    Raises
    ------
    ValueError
        As in `exponent`; also if `confidence` does not lie between 0 and 1.

    References
    ----------
    .. [1] Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, section 13.3.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
    value = exponent(x, [each.median for each in times])
    seconds = np.array([each.seconds for each in times])  # (sizes, rounds)
    n_rounds = seconds.shape[1]
    drawn = np.random.default_rng(0).integers(n_rounds, size=(n_resamples, n_rounds))
    medians = np.log(np.median(seconds[:, drawn], axis=-1))  # (sizes, n_resamples)
    slopes = np.polyfit(np.log(np.asarray(x, dtype=float)), medians, 1)[0]  # (n_resamples,)
    low, high = np.quantile(slopes, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Slope(value, float(low), float(high))


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
