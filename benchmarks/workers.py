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
    """A task that is timed in turn with others, and what is stored about it.

    Attributes
    ----------
    task : callable without arguments
    details : dict
        As JSON can hold it, such as the number of parameters.
    """

    task: Callable[[], object]
    details: dict[str, Any] = field(default_factory=dict)


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
    """Candidates of all processes, by name.

    Attributes
    ----------
    tasks : dict of str to callable
        Each runs its candidate once, over there.
    details : dict of str to dict
        What is stored about each.
    left_out : dict of str to str
        What could not be built as a package is missing, with the reason.
    """

    tasks: dict[str, Callable[[], object]] = field(default_factory=dict)
    details: dict[str, dict[str, Any]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


def build(processes: Sequence[ProcessPoolExecutor], builds: Mapping[str, Build]) -> Built:
    """Build candidates, each in its process in place of those it had; errors over there are raised here.

    Parameters
    ----------
    processes : sequence of ProcessPoolExecutor
        One for each build.
    builds : mapping of str to callable without arguments
        Called over there; the name is for `left_out`.
    """
    built = Built()
    for process, (name, make) in zip(processes, builds.items(), strict=True):
        try:
            details = process.submit(_build, make).result()
        except ImportError as missing:
            built.left_out[name] = str(missing)
            continue
        built.details.update(details)
        built.tasks.update({each: partial(_run_there, process, each) for each in details})
    return built


def _run_there(process: ProcessPoolExecutor, name: str) -> Spent:
    return process.submit(_run, name).result()


_built: dict[str, Candidate] = {}  # in the process of a worker


def _build(make: Build) -> dict[str, dict[str, Any]]:
    _built.clear()
    _built.update(make())
    return {name: each.details for name, each in _built.items()}


def _run(name: str) -> Spent:
    return spend(_built[name].task, 1, torch.cuda.is_available())
