"""Worker processes that make the batches ahead of a GPU, so that it does not wait for Python.

Workers cut, pad and mask rows, and draw new texts. That changes nothing but the time: the batches are those
of one process, in the same order. They are not pinned: a thread that pins takes time from the one that
trains, and a batch of token ids is small.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import signal
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import DataLoader, Dataset

from tinytx.history import last_good
from tinytx.objectives import FreshObjective, Prepared

if TYPE_CHECKING:
    from tinytx.loop import TrainingStep

Place = tuple[int, int]  # an epoch, and how many of its batches, or which share of them
Made = tuple[int, int, Prepared]  # the epoch and the number of a batch, and what a worker made of it
FEWEST_STEPS = 500  # of a run, for which starting workers pays
AT_ONCE = 16  # batches that a worker hands over together
# One worker draws the new texts of a whole epoch, which takes several times as long as to learn from them.
N_WORKERS, N_DRAWING = 2, 12


class LostWorkerError(ChildProcessError):
    """A worker that makes batches has ended."""


def choose_workers(step: TrainingStep) -> int:
    """How many workers make the batches of a run on a GPU: none for a short one, or without a spare core."""
    # The loss of an objective of another module may not take what a worker has made.
    if step.settings.n_steps < FEWEST_STEPS or type(step.objective).__module__ != Prepared.__module__:
        return 0
    if "fork" not in multiprocessing.get_all_start_methods() or not hasattr(os, "sched_getaffinity"):
        return 0
    n_spare = len(os.sched_getaffinity(0)) // int(os.environ.get("LOCAL_WORLD_SIZE", "1")) - 1
    return max(0, min(N_DRAWING if isinstance(step.objective, FreshObjective) else N_WORKERS, n_spare))


@contextlib.contextmanager
def made_by_workers(step: TrainingStep, learned: Place, checkpoints: Any) -> Iterator[Iterator[Any]]:
    """Epoch, number and rows of each batch after those learned from, without end.

    The workers end with this context. Where one ends before, LostWorkerError says so in one sentence, with
    what is left of the run: torch notices it wherever the training is. Until then torch computes with one
    thread here: on cores that workers use, the threads of one operation wait for each other.
    """
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with contextlib.closing(_batches(step, learned)) as batches:
            yield batches
    except RuntimeError as error:
        if "DataLoader worker" not in str(error):
            raise
        got = " ".join(str(error).split()).partition(". ")[0]
        rule = "workers that make batches must live as long as the run"
        raise LostWorkerError(f"{rule}, got {got}; {last_good(checkpoints)}") from error
    finally:
        torch.set_num_threads(n_threads)


def _batches(step: TrainingStep, learned: Place) -> Generator[Made]:
    shares = _Shares(step, learned[0])
    places = ((epoch, share) for epoch in itertools.count(learned[0]) for share in range(shares.n))
    loader: DataLoader[Any] = DataLoader(
        shares,
        sampler=(
            place for place in places if place[0] > learned[0] or shares.numbers(place[1]).stop > learned[1]
        ),
        batch_size=None,
        collate_fn=lambda share: share,
        num_workers=step.n_workers,
        multiprocessing_context="fork",  # nothing is sent to workers but places
        worker_init_fn=_ignore_ctrl_c,
        generator=torch.Generator(),  # by default it would draw from the numbers of dropout
    )
    shares_made: Any = iter(loader)
    try:
        for share in shares_made:
            yield from (found for found in share if found[:2] > learned)
    finally:  # where an error is raised in the iterator, its traceback would keep the other workers alive
        shares_made._shutdown_workers()


def _ignore_ctrl_c(number: int) -> None:  # the training finishes its step, and ends the workers
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class _Shares(Dataset[list[Made]]):
    """The batches of any epoch in `n` shares: by epoch and number of the share."""

    def __init__(self, step: TrainingStep, epoch: int) -> None:
        self.step, self.epoch = step, epoch
        self.batches = step.batches(epoch)  # that workers begin with
        self.n = 1 if isinstance(step.objective, FreshObjective) else -(-len(self.batches) // AT_ONCE)

    def numbers(self, share: int) -> range:
        """Which batches of the epoch at hand belong to a share, from 0."""
        n = len(self.batches)
        return range(share * n // self.n, (share + 1) * n // self.n)

    def __getitem__(self, place: Place) -> list[Made]:
        epoch, share = place
        if epoch != self.epoch:
            self.epoch, self.batches = epoch, self.step.batches(epoch)
        return [(epoch, i + 1, self._made(self.batches[i])) for i in self.numbers(share)]

    def _made(self, batch: list[int]) -> Prepared:
        objective: Any = self.step.objective
        part = self.step.part(batch)
        part.made = list(objective.batch(part))
        return part
