"""Candidates in processes of their own, so that what one package sets for its process changes no other.

One process computes at a time, as it is asked: A B C, A B C, ...
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
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


class Worker:
    """A process that builds candidates and runs each when asked; errors over there are raised here."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool

    def build(self, make: Callable[[], Mapping[str, Candidate]]) -> dict[str, dict[str, Any]]:
        """Build candidates in place of those it had; gives the details of each by name.

        Parameters
        ----------
        make : callable without arguments
            A function of a module, or a `functools.partial` of one: it is called over there.
        """
        return self._pool.submit(_build, make).result()

    def task(self, name: str) -> Callable[[], Spent]:
        """A task here that runs a candidate once over there."""
        return lambda: self._pool.submit(_run, name).result()


@contextmanager
def workers(n: int) -> Iterator[list[Worker]]:
    """Some workers, each with as many threads as torch has here; ended when all is done."""
    context, n_threads = multiprocessing.get_context("spawn"), torch.get_num_threads()
    with ExitStack() as stack:
        pools = [ProcessPoolExecutor(1, context, torch.set_num_threads, (n_threads,)) for _ in range(n)]
        yield [Worker(stack.enter_context(pool)) for pool in pools]


_built: dict[str, Candidate] = {}  # in the process of a worker


def _build(make: Callable[[], Mapping[str, Candidate]]) -> dict[str, dict[str, Any]]:
    _built.clear()
    _built.update(make())
    return {name: each.details for name, each in _built.items()}


def _run(name: str) -> Spent:
    return spend(_built[name].task, 1, torch.cuda.is_available())
