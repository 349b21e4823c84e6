"""Contestants timed in turn, round after round, so that a slow moment of the machine meets all of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tinytx.training.loop import progress_bar
from tinytx.training.timing import Times

CONFIDENCE = 0.95
N_RESAMPLES = 2000


@dataclass(frozen=True)
class Ratio:
    """How many times as long one contestant takes as another, round by round.

    Attributes
    ----------
    median : float
        The middle of the ratios of all rounds.
    low, high : float
        Ends of its 95 % bootstrap interval: how well it is known, given that rounds differ.
    """

    median: float
    low: float
    high: float

    def to_dict(self) -> dict[str, float]:
        """As JSON can hold it."""
        return {"median": self.median, "low": self.low, "high": self.high}

    def __str__(self) -> str:
        return f"{self.median:.2f} [{self.low:.2f}, {self.high:.2f}]"


@dataclass(frozen=True)
class Spent:
    """What a task says of itself: seconds on the wall and of processor, where it ran in another process."""

    wall: float
    processor: float


@dataclass(frozen=True)
class Turns:
    """What some contestants took, round by round.

    Attributes
    ----------
    wall : mapping of str to Times
        Seconds on the clock on the wall.
    processor : mapping of str to Times
        Seconds of processor time, those of all threads together: they stand still while other programs have
        the cores.
    """

    wall: Mapping[str, Times]
    processor: Mapping[str, Times]

    def ratio(self, slow: str, fast: str) -> Ratio:
        """How many times as long `slow` takes as `fast`, by the clock on the wall."""
        pairs = zip(self.wall[slow].seconds, self.wall[fast].seconds, strict=True)
        return ratio_of([theirs / ours for theirs, ours in pairs])

    def processor_ratio(self, slow: str, fast: str) -> Ratio:
        """The same by processor time."""
        pairs = zip(self.processor[slow].seconds, self.processor[fast].seconds, strict=True)
        return ratio_of([theirs / max(ours, 1e-9) for theirs, ours in pairs])

    def fastest(self, names: Sequence[str]) -> str:
        """The contestant among these with the smallest median."""
        return min(names, key=lambda name: self.wall[name].median)

    def per(self, n_done: Mapping[str, int]) -> Turns:
        """The same for one of the things that each contestant did so many of in a call."""
        return Turns(
            {name: _divided(self.wall[name], n) for name, n in n_done.items()},
            {name: _divided(self.processor[name], n) for name, n in n_done.items()},
        )

    def times_of(self, name: str) -> dict[str, Any]:
        """Times of one contestant as JSON can hold them."""
        return {
            "seconds": self.wall[name].median,
            "processor_seconds": self.processor[name].median,
            "seconds_by_round": list(self.wall[name].seconds),
            "processor_seconds_by_round": list(self.processor[name].seconds),
        }


def _divided(times: Times, n: int) -> Times:
    return Times(tuple(seconds / n for seconds in times.seconds))


def ratio_of(ratios: Sequence[float]) -> Ratio:
    """Median of some ratios, with its bootstrap interval from a fixed seed.

    Examples
    --------
    >>> print(ratio_of([2.0, 2.0, 2.0]))
    2.00 [2.00, 2.00]
    """
    if not ratios:
        raise ValueError("ratios must hold at least one ratio, got none")
    values = np.asarray(ratios)
    drawn = np.random.default_rng(0).integers(len(values), size=(N_RESAMPLES, len(values)))
    medians = np.median(values[drawn], axis=1)  # (N_RESAMPLES,)
    low, high = np.quantile(medians, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Ratio(statistics.median(ratios), float(low), float(high))


def take_turns(
    tasks: Mapping[str, Callable[[], object]],
    *,
    n_rounds: int,
    n_warmup: int = 1,
    n_calls: int = 1,
    device: torch.device | None = None,
    label: str = "",
    progress: bool | None = None,
) -> Turns:
    """Time several tasks in turn: A B C, A B C, ...

    Parameters
    ----------
    tasks : mapping of str to callable without arguments
        One that returns a `Spent` is taken at its word.
    n_rounds : int
        How often each is measured, at least 1.
    n_warmup : int
        Calls of each before the first round, not measured.
    n_calls : int
        Calls in a row that make a round; what is kept is the time of one.
    device : torch.device, optional
        Where they compute; a GPU is waited for before the clock is read.
    label : str
        Words in front of the bar.
    progress : bool, optional
        Show a bar; by default when a person watches.

    Returns
    -------
    Turns

    Raises
    ------
    ValueError
        If there is no task, or no round or no call is asked for.

    Examples
    --------
    >>> turns = take_turns({"short": lambda: sum(range(10)), "long": lambda: sum(range(100_000))}, n_rounds=3)
    >>> turns.ratio("long", "short").median > 1
    True
    """
    if not tasks or n_rounds < 1 or n_calls < 1:
        raise ValueError(
            "at least one task, one round and one call are needed, "
            f"got {len(tasks)} tasks, n_rounds={n_rounds}, n_calls={n_calls}"
        )
    on_gpu = device is not None and device.type == "cuda"
    wall: dict[str, list[float]] = {name: [] for name in tasks}
    processor: dict[str, list[float]] = {name: [] for name in tasks}
    with progress_bar((n_warmup + n_rounds) * len(tasks), label=label, show=progress) as bar:
        for number in range(n_warmup + n_rounds):
            for name, task in tasks.items():
                spent = spend(task, 1 if number < n_warmup else n_calls, on_gpu)
                bar.update()
                if number >= n_warmup:
                    wall[name].append(spent.wall)
                    processor[name].append(spent.processor)
    return Turns(
        {name: Times(tuple(each)) for name, each in wall.items()},
        {name: Times(tuple(each)) for name, each in processor.items()},
    )


def spend(task: Callable[[], object], n_calls: int, on_gpu: bool) -> Spent:
    """Time one call of a task, of several in a row."""
    if on_gpu:
        torch.cuda.synchronize()
    start, of_processor = time.perf_counter(), time.process_time()
    said = [task() for _ in range(n_calls)]
    if on_gpu:
        torch.cuda.synchronize()
    wall, processor = time.perf_counter() - start, time.process_time() - of_processor
    if isinstance(said[0], Spent):
        wall = sum(each.wall for each in said if isinstance(each, Spent))
        processor = sum(each.processor for each in said if isinstance(each, Spent))
    return Spent(wall / n_calls, processor / n_calls)
