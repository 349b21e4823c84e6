"""Candidates in processes of their own, so that what one package sets for its process changes no other.

One process computes at a time, as it is asked: A B C, A B C, ...
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from tinytx_course.labs.timing import Spent, spend


@dataclass(frozen=True)
class Candidate:
    """A task that is timed in turn with others, and what is stored about it, as JSON can hold it."""

    task: Callable[[], object]
    details: dict[str, Any]


Build = Callable[[], Mapping[str, Candidate]]  # a function of a module, or a `functools.partial` of one


@contextmanager
def workers(n: int) -> Iterator[list[ProcessPoolExecutor]]:
    """Some processes, each with as many threads as torch has here; ended when all is done."""
    context, n_threads = multiprocessing.get_context("spawn"), torch.get_num_threads()
    with ExitStack() as stack:
        pools = [ProcessPoolExecutor(1, context, torch.set_num_threads, (n_threads,)) for _ in range(n)]
        yield [stack.enter_context(pool) for pool in pools]


@dataclass(frozen=True)
class Built:
    """Candidates in some processes: by name a task that runs it over there, and what is stored about it."""

    tasks: dict[str, Callable[[], Spent]] = field(default_factory=dict)
    details: dict[str, dict[str, Any]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)  # name of a build -> the package that is missing
    peaks: dict[str, Callable[[], float]] = field(default_factory=dict)  # GiB that the last run took of a GPU


def build(processes: Sequence[ProcessPoolExecutor], builds: Mapping[str, Build]) -> Built:
    """Build candidates, one build a process, in place of those it had; errors over there are raised here."""
    built = Built()
    asked = [process.submit(_build, make) for process, make in zip(processes, builds.values(), strict=True)]
    for process, name, answer in zip(processes, builds, asked, strict=True):
        try:
            details = answer.result()
        except ImportError as missing:
            built.left_out[name] = str(missing)
            continue
        built.details.update(details)
        built.tasks.update({each: partial(_asked, process, _run, each) for each in details})
        if torch.cuda.is_available():
            built.peaks.update({each: partial(_asked, process, _peak, each) for each in details})
    return built


def _asked(process: ProcessPoolExecutor, what: Callable[[str], Any], name: str) -> Any:
    return process.submit(what, name).result()


_built: dict[str, Candidate] = {}  # in the process of a worker
_peaks: dict[str, float] = {}


def _build(make: Build) -> dict[str, dict[str, Any]]:
    _built.clear()
    _built.update(make())
    if torch.cuda.is_available():  # what is compiled at the first call is compiled side by side
        for each in _built.values():
            each.task()
    return {name: each.details for name, each in _built.items()}


def _run(name: str) -> Spent:
    task, on_gpu = _built[name].task, torch.cuda.is_available()
    if on_gpu:  # memory that others may use between two runs is reserved anew, untimed
        torch.cuda.reset_peak_memory_stats()
        task()
    spent = spend(task, 1, on_gpu)
    if on_gpu:
        _peaks[name] = torch.cuda.max_memory_allocated() / 2**30
        torch.cuda.empty_cache()
    return spent


def _peak(name: str) -> float:
    return _peaks[name]
