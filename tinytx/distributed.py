"""Several processes that train one model together: data parallel, each on a part of every batch.

``torchrun --nproc-per-node=2 -m tinytx_run.cli pretrain ...`` starts the same command twice. Both processes
have all data and the same plan. Each computes the gradient of a part of every batch, and the gradients are
added up. Only the first process writes, reports and evaluates.
"""

from __future__ import annotations

import contextlib
import copy
import datetime
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn

from tinytx.optim import make_optimizer
from tinytx.settings import Layout, TrainingSettings, choose_device

# How long a process waits for one that is alive but does not answer: longer than any evaluation, which the
# first makes while the others wait. One that has died is noticed at once.
PATIENCE = datetime.timedelta(hours=2)

T = TypeVar("T")


class LostProcessError(ConnectionError):
    """Another process of the same training has ended, so that this one cannot continue."""


@dataclass(frozen=True)
class Processes:
    """The processes that train together, seen from one of them.

    ``rank`` is the number of this one, from 0, and ``n`` how many there are.

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
        together = dist.is_available() and dist.is_initialized()
        return cls(dist.get_rank(), dist.get_world_size()) if together else cls()

    @property
    def first(self) -> bool:
        """Whether this is the one that writes and reports."""
        return self.rank == 0

    def parts(self, batch: list[int], accumulate: int) -> list[list[int]]:
        """The micro-batches that this process computes, one after the other.

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
        """What the first process decides; bad input that it meets is raised in all."""
        if self.n == 1:
            return decide()
        answer: list[Any] = [None, None]  # what was decided, and an error in its place
        if self.first:
            try:
                answer[0] = decide()
            except (ValueError, OSError) as error:
                answer[1] = error
        dist.broadcast_object_list(answer, src=0)
        decided, refusal = answer
        if refusal is not None:
            raise refusal
        return decided

    def share(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        """Give all processes the weights and moments that the first has."""
        if self.n == 1:
            return
        parameters = list(model.parameters())
        all_moments = self.agree(lambda: [_on(optimizer.state.get(p, {}), "cpu") for p in parameters])
        for parameter, moments in zip(parameters, all_moments, strict=True):
            dist.broadcast(parameter.data, src=0)
            if moments and not self.first:
                optimizer.state[parameter] = _on(moments, parameter.device)


def _on(moments: dict[str, Tensor], device: torch.device | str) -> dict[str, Tensor]:
    return {key: value.to(device) for key, value in moments.items()}


class Sharded:
    """A copy of a model of which each process has a part of every weight, gradient and moment.

    Blocks are put together when their turn comes and taken apart again (fully sharded data parallelism). The
    model in one piece waits in the memory of the CPU, and is filled only for checkpoints and at the end.

    Parameters
    ----------
    whole : Module
        On the CPU: what training computes with, a module with a ``model`` and an ``objective``.
    optimizer : Optimizer
        Of ``whole``; its moments are moved into the parts.
    settings : TrainingSettings
    device : torch.device
        Where the parts compute.

    References
    ----------
    Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models",
    arXiv 1910.02054, section 5.
    """

    def __init__(
        self,
        whole: nn.Module,
        optimizer: torch.optim.Optimizer,
        settings: TrainingSettings,
        device: torch.device,
    ) -> None:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        from torch.distributed.tensor import distribute_tensor

        mesh = init_device_mesh(device.type, (dist.get_world_size(),))
        self._whole, self._whole_optimizer = whole, optimizer
        # An objective has state, its epoch, and all data: there is one only.
        self.module = copy.deepcopy(whole, {id(whole.objective): whole.objective})
        for blocks in [module for module in self.module.modules() if isinstance(module, nn.ModuleList)]:
            for block in blocks:
                fully_shard(block, mesh=mesh)
        fully_shard(self.module, mesh=mesh)
        self.optimizer = make_optimizer(cast(nn.Module, self.module.model), settings)
        for part, parameter in self._pairs():
            for key, value in _on(optimizer.state.get(parameter, {}), device).items():
                is_whole = value.shape == parameter.shape  # else a counter of steps
                self.optimizer.state[part][key] = (
                    distribute_tensor(value, mesh, part.placements) if is_whole else value
                )
        optimizer.state.clear()

    def _pairs(self) -> Iterator[tuple[Any, nn.Parameter]]:
        return zip(self.module.parameters(), self._whole.parameters(), strict=True)

    @torch.no_grad()
    def collect(self) -> None:
        """Put the model together, and on the first process its moments too; every process takes part."""
        for part, parameter in self._pairs():
            parameter.copy_(part.full_tensor())
            for key, value in self.optimizer.state.get(part, {}).items():
                full = value.full_tensor() if hasattr(value, "full_tensor") else value
                if dist.get_rank() == 0:
                    self._whole_optimizer.state[parameter][key] = full.cpu()


def require_processes(layout: Layout | None) -> None:
    """Raise ValueError where one process alone would have to share a model with others."""
    if layout is not None and layout.shard and not (dist.is_available() and dist.is_initialized()):
        raise ValueError("shard needs several processes, started by torchrun, got one")


@contextlib.contextmanager
def joined(device: str = "auto") -> Iterator[Processes]:
    """Bring together the processes that ``torchrun`` started; without it, one works alone.

    On GPUs each process takes one of its own and they talk by NCCL, else by gloo.

    Raises
    ------
    ValueError
        When a machine has more processes than GPUs.
    LostProcessError
        When another process ends, for whatever reason. What was saved before stays usable.
    """
    if not (dist.is_available() and dist.is_torchelastic_launched()):
        yield Processes()
        return
    backend = "gloo"
    if choose_device(device).type == "cuda":
        n_local, n_gpus = int(os.environ["LOCAL_WORLD_SIZE"]), torch.cuda.device_count()
        if n_local > n_gpus:
            raise ValueError(
                f"processes must be at most as many as GPUs (or use --device cpu), got {n_local} on {n_gpus}"
            )
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        backend = "cpu:gloo,cuda:nccl"
    dist.init_process_group(backend, timeout=PATIENCE)
    try:
        yield Processes.current()
    except RuntimeError as error:
        if not (isinstance(error, dist.DistError) or "gloo" in str(error) or "NCCL" in str(error)):
            raise
        raise LostProcessError(
            "another process of this run has ended, as torchrun reports below; "
            "its checkpoints stay usable: the same command with --resume continues from the newest"
        ) from error
    # After an error nothing is closed in order: that could wait for a process that is gone.
    dist.destroy_process_group()
