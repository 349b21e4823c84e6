"""Contestants in processes of their own, so that none changes what another finds.

What a package sets for its process (how memory is kept, for one) is part of its speed, and no affair of the
others. One process computes at a time, as it is told: A B C, A B C, ...
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import torch

from tinytx_course.labs.timing import Spent, spend


@dataclass(frozen=True)
class Contestant:
    """A task that takes turns with others, and what is to be kept about it.

    Attributes
    ----------
    task : callable without arguments
    details : dict
        As JSON can hold it, such as the number of parameters.
    """

    task: Callable[[], object]
    details: dict[str, Any] = field(default_factory=dict)


class Worker:
    """A process that builds contestants and lets them run when told.

    Parameters
    ----------
    n_threads : int
        That torch computes with in it.
    """

    def __init__(self, n_threads: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, n_threads), daemon=True)
        self._process.start()
        theirs.close()

    def build(self, make: Callable[[], Mapping[str, Contestant]]) -> dict[str, dict[str, Any]]:
        """Build contestants in place of those it had; gives the details of each by name.

        Parameters
        ----------
        make : callable without arguments
            A function of a module, or a `functools.partial` of one: it is called over there.

        Raises
        ------
        ImportError
            If a package that it needs is not installed.
        RuntimeError
            For whatever else goes wrong over there.
        """
        return self._ask("build", make)

    def task(self, name: str) -> Callable[[], Spent]:
        """A task here that lets a contestant run once over there."""
        return lambda: self._ask("run", name)

    def _ask(self, what: str, about: Any) -> Any:
        try:
            self._pipe.send((what, about))
            kind, answer = self._pipe.recv()
        except (EOFError, BrokenPipeError) as lost:
            raise RuntimeError("a contestant's process must answer, but it ended") from lost
        if kind == "missing":
            raise ImportError(answer)
        if kind == "failed":
            raise RuntimeError(answer)
        return answer

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.join(timeout=5)
        if self._process.is_alive():
            self._process.terminate()


@contextmanager
def workers(n: int) -> Iterator[list[Worker]]:
    """Some workers, each with as many threads as torch has here; ended when all is done."""
    started = [Worker(torch.get_num_threads()) for _ in range(n)]
    try:
        yield started
    finally:
        for worker in started:
            worker.close()


def _serve(pipe: Connection, n_threads: int) -> None:
    torch.set_num_threads(n_threads)
    contestants: Mapping[str, Contestant] = {}
    while True:
        try:
            what, about = pipe.recv()
        except (EOFError, KeyboardInterrupt):  # the one who asks is gone, or was stopped by hand
            return
        try:
            if what == "build":
                contestants = {}
                contestants = about()
                answer: Any = {name: each.details for name, each in contestants.items()}
            else:
                answer = spend(contestants[about].task, 1, torch.cuda.is_available())
            pipe.send(("done", answer))
        except ImportError as missing:
            pipe.send(("missing", str(missing)))
        except KeyboardInterrupt:
            return
        except Exception as problem:  # told to the one who asked
            pipe.send(("failed", f"{type(problem).__name__}: {problem}"))
