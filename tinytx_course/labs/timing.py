"""Timing in turn: A B C, A B C, ..., so that a slow moment of the machine meets all tasks alike."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from tqdm.auto import tqdm

CONFIDENCE = 0.95
N_RESAMPLES = 2000

Tasks = Mapping[Any, Callable[[], object]]


@dataclass(frozen=True)
class Times:
    """Seconds of one call of a task, round by round."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle one, which a slow moment cannot move far."""
        return statistics.median(self.seconds)

    @property
    def low(self) -> float:
        """The lower quartile."""
        return float(np.quantile(self.seconds, 0.25))

    @property
    def high(self) -> float:
        """The upper quartile."""
        return float(np.quantile(self.seconds, 0.75))


@dataclass(frozen=True)
class Estimate:
    """A measured value with its 95 % bootstrap confidence interval over rounds."""

    median: float
    low: float
    high: float

    def to_dict(self) -> dict[str, float]:
        """As JSON can hold it."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.median:.2f} [{self.low:.2f}, {self.high:.2f}]"


@dataclass(frozen=True)
class Spent:
    """Seconds on the wall and of the processor; a task that ran in another process returns its own."""

    wall: float
    processor: float


@dataclass(frozen=True)
class Turns:
    """Times of some tasks by name, measured in turn.

    Processor time is summed over all threads; it does not pass while other programs have the cores.
    """

    wall: Mapping[Any, Times]
    processor: Mapping[Any, Times]

    def ratio(self, slow: Hashable, fast: Hashable) -> Estimate:
        """How many times as long `slow` takes as `fast`, on the wall, round by round."""
        pairs = zip(self.wall[slow].seconds, self.wall[fast].seconds, strict=True)
        return ratio_of([a / max(b, 1e-9) for a, b in pairs])

    def fastest(self, names: Sequence[str]) -> str:
        """The task among these with the smallest median."""
        return min(names, key=lambda name: self.wall[name].median)

    def per(self, n_done: Mapping[str, int]) -> Turns:
        """The same for one of the items that each task handles so many of in a call."""
        wall, processor = (
            {name: Times(tuple(seconds / n for seconds in times[name].seconds)) for name, n in n_done.items()}
            for times in (self.wall, self.processor)
        )
        return Turns(wall, processor)

    def times_of(self, name: str) -> dict[str, Any]:
        """Times of one task as JSON can hold them."""
        return {
            "seconds": self.wall[name].median,
            "processor_seconds": self.processor[name].median,
            "seconds_by_round": list(self.wall[name].seconds),
            "processor_seconds_by_round": list(self.processor[name].seconds),
        }


def ratio_of(ratios: Sequence[float]) -> Estimate:
    """Median of some ratios, with its bootstrap interval from a fixed seed.

    Examples
    --------
    >>> print(ratio_of([2.0, 2.0, 2.0]))
    2.00 [2.00, 2.00]
    """
    if not ratios:
        raise ValueError("ratios must hold at least one ratio, got none")
    # Rounds drawn with replacement: Efron and Tibshirani, An Introduction to the Bootstrap (1993), 13.3.
    drawn = np.random.default_rng(0).choice(ratios, size=(N_RESAMPLES, len(ratios)))
    ends = np.quantile(np.median(drawn, axis=1), [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Estimate(statistics.median(ratios), *ends.tolist())


def take_turns(
    tasks: Tasks,
    *,
    n_rounds: int,
    n_warmup: int = 1,
    min_seconds: float = 0.0,
    device: torch.device | None = None,
    label: str = "",
    progress: bool | None = None,
) -> Turns:
    """Time several tasks in turn.

    Parameters
    ----------
    tasks : mapping of name to callable without arguments
        One that returns a `Spent` supplies its own times.
    n_rounds, n_warmup : int
        How often each is measured, and called before that.
    min_seconds : float
        A quicker task is called more often in a round, until the clock can see it; the result is the time of
        one call.
    device : torch.device, optional
        A GPU is synchronised before the clock is read.
    label : str
        Text in front of the progress bar.
    progress : bool, optional
        Show the bar; by default in a terminal.

    Examples
    --------
    >>> tasks = {"short": lambda: sum(range(10)), "long": lambda: sum(range(100_000))}
    >>> take_turns(tasks, n_rounds=3, min_seconds=0.002).ratio("long", "short").median > 1
    True
    """
    if not tasks or n_rounds < 1:
        got = f"{len(tasks)} tasks, n_rounds={n_rounds}"
        raise ValueError(f"at least one task and one round are needed, got {got}")
    on_gpu = device is not None and device.type == "cuda"
    calls = dict.fromkeys(tasks, 1)
    rounds: dict[Any, list[Spent]] = {name: [] for name in tasks}
    hidden = None if progress is None else not progress
    turns = [(number, name) for number in range(n_warmup + n_rounds) for name in tasks]
    for number, name in tqdm(turns, desc=label, leave=False, disable=hidden):
        if number < n_warmup:
            spend(tasks[name], 1, on_gpu)
            continue
        if number == n_warmup and min_seconds:
            once = max(spend(tasks[name], 1, on_gpu).wall, 1e-9)
            calls[name] = math.ceil(min_seconds / once)
        rounds[name].append(spend(tasks[name], calls[name], on_gpu))
    return Turns(
        {name: Times(tuple(spent.wall for spent in each)) for name, each in rounds.items()},
        {name: Times(tuple(spent.processor for spent in each)) for name, each in rounds.items()},
    )


def spend(task: Callable[[], object], n_calls: int, on_gpu: bool) -> Spent:
    """Mean time of one call of a task, over several in a row."""
    if on_gpu:
        torch.cuda.synchronize()
    wall, processor = time.perf_counter(), time.process_time()
    results = [task() for _ in range(n_calls)]
    if on_gpu:
        torch.cuda.synchronize()
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    if isinstance(results[0], Spent):
        own = [each for each in results if isinstance(each, Spent)]
        wall, processor = sum(each.wall for each in own), sum(each.processor for each in own)
    return Spent(wall / n_calls, processor / n_calls)
