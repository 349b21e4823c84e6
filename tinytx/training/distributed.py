"""Several processes that train one model together: which one am I, and what do all of them agree on?

``torchrun --nproc-per-node=2 -m tinytx.cli pretrain ...`` starts the same command twice. Both processes know
the whole data and the same plan; each computes a part of every batch, and the gradients of the parts are
added up. Only the first of them writes, reports and evaluates.
"""

from __future__ import annotations

import contextlib
import datetime
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from tinytx.training.settings import choose_device

# How long a process waits for one that is alive but does not answer: longer than any evaluation, which the
# first makes while the others wait. One that has died is noticed at once.
PATIENCE = datetime.timedelta(hours=2)

T = TypeVar("T")


class LostProcessError(ConnectionError):
    """Another process of the same training has ended, so that this one cannot go on."""


@dataclass(frozen=True)
class Processes:
    """The processes that train together, seen from one of them.

    Parameters
    ----------
    rank : int
        Number of this one, from 0.
    n : int
        How many there are.

    Examples
    --------
    >>> Processes().parts([7, 8, 9], accumulate=1)
    [[7, 8, 9]]
    >>> Processes(rank=1, n=2).parts([5, 6, 7, 8, 9], accumulate=2)
    [[6], [8]]
    """

    rank: int = 0
    n: int = 1

    @classmethod
    def current(cls) -> Processes:
        """Those that `joined` has brought together; one alone where nothing was joined."""
        if dist.is_available() and dist.is_initialized():
            return cls(dist.get_rank(), dist.get_world_size())
        return cls()

    @property
    def first(self) -> bool:
        """Whether this is the one that writes and reports."""
        return self.rank == 0

    def parts(self, batch: list[int], accumulate: int) -> list[list[int]]:
        """The parts of a batch that this process computes, one after the other.

        Rows are dealt out like cards, so that all parts have rows of all lengths. A batch with fewer rows
        than parts leaves some of them empty.
        """
        n_parts = self.n * accumulate
        return [batch[at::n_parts] for at in range(self.rank, n_parts, self.n)]

    def total(self, values: Tensor) -> Tensor:
        """Sums over all processes of what each of them passes, in double precision on the CPU."""
        values = values.cpu().double()
        if self.n > 1:
            dist.all_reduce(values)
        return values

    def any(self, flag: bool) -> bool:
        """Whether it is true in any process."""
        return bool(self.total(torch.tensor(float(flag))) > 0)

    def agree(self, decide: Callable[[], T]) -> T:
        """What the first process finds; bad input that it meets is raised in all."""
        if self.n == 1:
            return decide()
        found: list[Any] = [None, None]
        if self.first:
            try:
                found[0] = decide()
            except (ValueError, OSError) as error:
                found[1] = error
        dist.broadcast_object_list(found, src=0)
        if found[1] is not None:
            raise found[1]
        return cast(T, found[0])

    def draw_anew(self, seed: int, step: int) -> None:
        """Set the random state as a function of seed, step and process: each draws dropout of its own."""
        state = np.random.SeedSequence([seed, step, self.rank]).generate_state(1, np.uint64)
        torch.manual_seed(int(state[0]) >> 1)

    def share(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        """Give all processes the weights and moments that the first has."""
        if self.n == 1:
            return
        parameters = list(model.parameters())
        kinds = self.agree(lambda: [_kinds(optimizer.state.get(one, {})) for one in parameters])
        for parameter, kind in zip(parameters, kinds, strict=True):
            dist.broadcast(parameter.data, src=0)
            if kind and not self.first:
                optimizer.state[parameter] = {
                    key: torch.empty(shape, dtype=dtype, device=device)
                    for key, (shape, dtype, device) in kind.items()
                }
            for key in kind:
                dist.broadcast(optimizer.state[parameter][key], src=0)


def _kinds(state: dict[str, Tensor]) -> dict[str, tuple[torch.Size, torch.dtype, str]]:
    return {key: (value.shape, value.dtype, value.device.type) for key, value in state.items()}


def started_by_torchrun() -> bool:
    """Whether this process is one of those that ``torchrun`` started."""
    return dist.is_available() and dist.is_torchelastic_launched()


@contextlib.contextmanager
def joined(device: str = "auto") -> Iterator[Processes]:
    """Bring together the processes that ``torchrun`` started; without it, one works alone.

    Parameters
    ----------
    device : {"auto", "cpu", "cuda"}
        On GPUs each process takes one of its own and they talk by NCCL, else by gloo.

    Raises
    ------
    ValueError
        When a machine has more processes than GPUs.
    LostProcessError
        When another process ends, for whatever reason. What was saved before stays usable.
    """
    if not started_by_torchrun():
        yield Processes()
        return
    backend = "gloo"
    if choose_device(device).type == "cuda":
        local, n_local = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
        if n_local > torch.cuda.device_count():
            raise ValueError(
                "processes must be at most as many as GPUs (or use --device cpu), "
                f"got {n_local} on {torch.cuda.device_count()}"
            )
        torch.cuda.set_device(local)
        backend = "cpu:gloo,cuda:nccl"
    dist.init_process_group(backend, timeout=PATIENCE)
    try:
        yield Processes.current()
    except RuntimeError as error:
        if not _is_about_another(error):
            raise
        raise LostProcessError(
            "another process of this run has ended, as torchrun says below; "
            "what was saved before is kept: the same command with --resume goes on from there"
        ) from error
    # After an error nothing is closed in order: that could wait for a process that is gone.
    dist.destroy_process_group()


def _is_about_another(error: RuntimeError) -> bool:
    words = str(error)
    return isinstance(error, dist.DistError) or "gloo" in words or "NCCL" in words
