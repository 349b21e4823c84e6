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
from torch.nn.parallel import DistributedDataParallel

from tinytx import loop
from tinytx.history import History
from tinytx.loop import Checkpoints, OnStep, TrainingStep
from tinytx.objectives import Objective, Prepared
from tinytx.optim import make_optimizer
from tinytx.settings import TrainingSettings, choose_device, mixed_seed, require

# How long a process waits for one that is alive but does not answer: longer than any evaluation, which the
# first makes while the others wait. One that has died is noticed at once.
PATIENCE = datetime.timedelta(hours=2)

T = TypeVar("T")


@dataclass(frozen=True)
class Processes:
    """The processes that train together, seen from one of them.

    ``rank`` is the number of this one, from 0, and ``n`` how many there are.
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

    def total(self, values: Tensor) -> Tensor:
        """Sums over all processes of what each of them passes, in double precision."""
        values = values.double()
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


def train(
    model: nn.Module,
    objective: Objective,
    settings: TrainingSettings,
    *,
    checkpoints: Checkpoints | None = None,
    shard: bool = False,
    on_step: OnStep | None = None,
    progress: bool | None = None,
    label: str = "training",
) -> History:
    """`tinytx.loop.train` by all processes that `joined` has brought together, each on a part of a batch.

    With ``shard`` each of them keeps only its part of weights, gradients and moments, and blocks are put
    together while they compute (fully sharded data parallelism); else each keeps all of it. The first alone
    passes checkpoints, calls ``on_step`` and shows a bar. A run may be resumed otherwise, or by another
    number of processes; the last bits then differ, and so does what is dropped out. In a masked batch of
    `HybridObjective` a row sees its own end mark only next to a longer row, so parts differ a little from
    the whole. Raises ValueError when ``on_step`` shall see a sharded model, or a model shall be sharded over
    one process.
    """
    processes = Processes.current()
    if shard and on_step is not None:
        raise ValueError("on_step needs a model in one piece, got one that is sharded")
    require_processes(shard)
    kind = ShardedStep if shard else SharedStep if processes.n > 1 else TrainingStep
    step = kind(model, objective, settings)
    if isinstance(step, SharedStep):
        step.checkpoints, checkpoints = checkpoints, step
    if not processes.first:
        on_step, progress = None, False
    how: dict[str, Any] = {"on_step": on_step, "progress": progress, "label": label}
    history = loop.train(model, objective, settings, step=step, checkpoints=checkpoints, **how)
    model.to(step.device)
    return history


class _Loss(nn.Module):
    """A model and its objective as one module: torch exchanges gradients of what a ``forward`` computes."""

    def __init__(self, model: nn.Module, objective: Objective, n_processes: int) -> None:
        super().__init__()
        self.model, self.objective, self.n_processes = model, objective, n_processes

    def forward(self, indices: list[int]) -> Tensor:
        # torch takes the mean of the gradients of all processes, where their sum is needed.
        return self.objective.loss(self.model, indices) * self.n_processes


class SharedStep(TrainingStep):
    """A training step of several processes, of which each has a copy of the model.

    To the loop it is also what keeps the run: all processes resume from what the first one restores.
    """

    checkpoints: Checkpoints | None = None  # of the first process
    latest: Any = None

    def __init__(self, *of_one: Any) -> None:
        super().__init__(*of_one)
        self.processes, self.n_done = Processes.current(), 0
        # The terminal and torchrun may both send Ctrl-C.
        self.in_any_process, self.always_ends = self.processes.any, self.processes.n > 1

    def restore(self, model: nn.Module, optimizer: Any, settings: TrainingSettings) -> Any:
        """Give all processes what the first restores; needed once, before the first step."""
        run, processes = self.checkpoints, self.processes
        saved = processes.agree(lambda: run and run.restore(model, optimizer, settings))
        self.n_done, self.latest = saved["step"] if saved else 0, getattr(run, "latest", None)
        if processes.n > 1:
            parameters = list(model.parameters())
            moments = processes.agree(lambda: [_on(optimizer.state.get(p, {}), "cpu") for p in parameters])
            for parameter, its_moments in zip(parameters, moments, strict=True):
                dist.broadcast(parameter.data, src=0)
                if its_moments and not processes.first:
                    optimizer.state[parameter] = _on(its_moments, parameter.device)
        self.connect(_Loss(model, self.objective, processes.n))
        return saved

    def connect(self, loss: _Loss) -> None:
        """Let the processes add up their gradients."""
        self.loss = DistributedDataParallel(loss)

    def save(self, model: nn.Module, optimizer: Any, settings: TrainingSettings, state: Any) -> None:
        """Write a checkpoint in the first process."""
        if self.checkpoints is not None:
            self.checkpoints.save(model, optimizer, settings, state)
            self.latest = self.checkpoints.latest

    def part(self, batch: list[int]) -> Prepared:
        """The rows of a batch that this process computes, and their share of its predictions.

        A batch with fewer rows than processes leaves some of them a row whose share is 0.
        """
        own = batch[self.processes.rank :: self.processes.n]  # dealt out like cards: rows of all lengths
        counts = [torch.tensor(self.objective.n_predictions(rows) if rows else 0) for rows in (own, batch)]
        return Prepared(own or batch[:1], (counts[0] / counts[1].clamp(min=1)).tolist())

    def backward(self, batch: list[int]) -> Tensor:
        """Compute the gradient of the mean loss of a batch, of which each process computes its own part."""
        torch.manual_seed(mixed_seed(self.settings.seed, self.n_done, self.processes.rank))  # own dropout
        self.n_done += 1
        loss = super().backward(batch if isinstance(batch, Prepared) else self.part(batch))
        return self.processes.total(loss / self.processes.n)


class ShardedStep(SharedStep):
    """A training step of several processes, of which each has a part of every weight, gradient and moment.

    Blocks are put together when their turn comes and taken apart again (fully sharded data parallelism). The
    model in one piece waits in the memory of the CPU, and is filled only for checkpoints.

    References
    ----------
    Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models",
    arXiv 1910.02054, section 5.
    """

    def __init__(self, *of_one: Any) -> None:
        super().__init__(*of_one)
        self.whole, self.whole_optimizer = self.model.to("cpu"), self.optimizer

    def connect(self, loss: _Loss) -> None:
        """Take a copy of the model apart; its moments are moved into the parts."""
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        from torch.distributed.tensor import distribute_tensor

        mesh = init_device_mesh(self.device.type, (dist.get_world_size(),))
        # An objective has state, its epoch, and all data: there is one only.
        self.loss = parts = copy.deepcopy(loss, {id(self.objective): self.objective})
        for blocks in [module for module in parts.modules() if isinstance(module, nn.ModuleList)]:
            for block in blocks:
                fully_shard(block, mesh=mesh)
        fully_shard(parts, mesh=mesh)
        self.model = parts.model
        self.optimizer = make_optimizer(self.model, self.settings)
        for part, parameter in self._pairs():
            for key, value in _on(self.whole_optimizer.state.get(parameter, {}), self.device).items():
                is_whole = value.shape == parameter.shape  # else a counter of steps
                self.optimizer.state[part][key] = (
                    distribute_tensor(value, mesh, part.placements) if is_whole else value
                )
        self.whole_optimizer.state.clear()

    def _pairs(self) -> Iterator[tuple[Any, nn.Parameter]]:
        return zip(self.model.parameters(), self.whole.parameters(), strict=True)

    @torch.no_grad()
    def save(self, model: nn.Module, optimizer: Any, settings: TrainingSettings, state: Any) -> None:
        """Put the model together, and on the first process its moments too, which writes a checkpoint."""
        for part, parameter in self._pairs():
            parameter.copy_(part.full_tensor())
            for key, value in self.optimizer.state.get(part, {}).items():
                full = value.full_tensor() if hasattr(value, "full_tensor") else value
                if self.processes.first:
                    self.whole_optimizer.state[parameter][key] = full.cpu()
        super().save(self.whole, self.whole_optimizer, settings, state)

    def update(self, lr: float) -> Tensor:
        """Clip the gradient, update the weights and clear the gradient; gives its norm before clipping."""
        return cast(Any, super().update(lr)).full_tensor()


def _on(moments: dict[str, Tensor], device: torch.device | str) -> dict[str, Tensor]:
    return {key: value.to(device) for key, value in moments.items()}


def require_processes(shard: bool) -> None:
    """Raise ValueError where one process alone would have to share a model with others."""
    if shard and not (dist.is_available() and dist.is_initialized()):
        raise ValueError("shard needs several processes, started by torchrun, got one")


@contextlib.contextmanager
def joined(device: str = "auto") -> Iterator[Processes]:
    """Bring together the processes that ``torchrun`` started; without it, one works alone.

    On GPUs each process takes one of its own and they talk by NCCL, else by gloo.
    """
    if not (dist.is_available() and dist.is_torchelastic_launched()):
        yield Processes()
        return
    backend = "gloo"
    if choose_device(device).type == "cuda":
        n_local, n_gpus = int(os.environ["LOCAL_WORLD_SIZE"]), torch.cuda.device_count()
        rule = "processes must be at most as many as GPUs (or use --device cpu)"
        require(n_local <= n_gpus, rule, f"{n_local} on {n_gpus}")
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        backend = "cpu:gloo,cuda:nccl"
    dist.init_process_group(backend, timeout=PATIENCE)
    try:
        yield Processes.current()
    except RuntimeError as error:
        if not (isinstance(error, dist.DistError) or "gloo" in str(error) or "NCCL" in str(error)):
            raise
        raise ConnectionError(
            "another process of this run has ended, as torchrun reports below; "
            "its checkpoints stay usable: the same command with --resume continues from the newest"
        ) from error
    # After an error nothing is closed in order: that could wait for a process that is gone.
    dist.destroy_process_group()
