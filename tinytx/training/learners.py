"""The gradient of a batch and the update it leads to, computed by one process or by several.

A batch is cut into parts, one or more for each process. The shares of the parts add up to the mean loss of
the batch, so their gradients add up to its gradient: what is learned does not depend on how many compute.
"""

from __future__ import annotations

import contextlib
import copy
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from tinytx.model.encoder_decoder import DecoderBlock
from tinytx.model.transformer import Block
from tinytx.training.distributed import Processes
from tinytx.training.objectives import Objective
from tinytx.training.optim import keep_memory, make_optimizer
from tinytx.training.settings import Layout, TrainingSettings, choose_precision


class LossOf(nn.Module):
    """A model and its objective as one module, whose output is the loss: what torch can spread."""

    def __init__(self, model: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.model = model
        self.objective = objective

    def forward(self, part: list[int], batch: list[int]) -> Tensor:
        """What some rows of a batch add to its mean loss."""
        if len(part) == len(batch):
            return self.objective.loss(self.model, batch)
        if not part:  # nothing to add, but the others wait for gradients, were they zeros
            return self.objective.loss(self.model, batch[:1], batch) * 0.0
        return self.objective.loss(self.model, part, batch)


class Learner:
    """A model that learns: alone, or as one of several copies that are kept equal.

    Parameters
    ----------
    model : Module
        On the device to compute on.
    objective : Objective
    settings : TrainingSettings
    layout : Layout
    processes : Processes

    Attributes
    ----------
    model, optimizer
        In one piece, as checkpoints hold them; up to date after `collect`.
    """

    def __init__(
        self,
        model: nn.Module,
        objective: Objective,
        settings: TrainingSettings,
        layout: Layout,
        processes: Processes,
    ) -> None:
        self.model, self.processes, self.layout = model, processes, layout
        self.settings, self._objective = settings, objective
        self.device = next(model.parameters()).device
        self.optimizer = make_optimizer(model, settings)
        self._computing: torch.optim.Optimizer = self.optimizer
        self._loss: nn.Module = LossOf(model, objective)
        keep_memory()

    def start(self) -> None:
        """Give all processes what the first has, before the first step."""
        self.processes.share(self.model, self.optimizer)
        if self.processes.n > 1:
            self._loss = DistributedDataParallel(self._loss)

    def backward(self, batch: list[int]) -> Tensor:
        """Compute the gradient of the mean loss of a batch; gives what this process adds to that loss."""
        *early, last = self.processes.parts(batch, self.layout.accumulate)
        with self._without_exchange():  # once, with the last part, is enough
            shares = [self._backward(part, batch) for part in early]
        shares.append(self._backward(last, batch))
        return shares[0] if not early else torch.stack(shares).sum()

    def _backward(self, part: list[int], batch: list[int]) -> Tensor:
        bf16 = choose_precision(self.settings.precision, self.device) == "bf16"
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=bf16):
            share = self._loss(part, batch)
        # torch makes the mean of the gradients of all processes, where their sum is wanted.
        (share * self.processes.n if self.processes.n > 1 else share).backward()
        return share.detach()

    def _without_exchange(self) -> contextlib.AbstractContextManager[Any]:
        if isinstance(self._loss, DistributedDataParallel):
            return self._loss.no_sync()
        return contextlib.nullcontext()

    def update(self, lr: float) -> Tensor:
        """Move the weights along the gradient, which is used up; gives how long it was."""
        norm = self._clip()
        for group in self._computing.param_groups:
            group["lr"] = lr
        self._computing.step()
        self._computing.zero_grad(set_to_none=True)
        return norm

    def _clip(self) -> Tensor:
        return nn.utils.clip_grad_norm_(self._loss.parameters(), self.settings.clip_norm)

    def collect(self) -> None:
        """Bring `model` and `optimizer` up to date; every process has to take part."""


class ShardedLearner(Learner):
    """A model of which each process keeps a part of every weight, gradient and moment.

    Blocks are put together when their turn comes and taken apart again. The model in one piece waits in the
    memory of the CPU, and is filled only for checkpoints and at the end.

    Raises
    ------
    ValueError
        When this process was not started by torchrun.

    References
    ----------
    Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models",
    arXiv 1910.02054, section 5.
    """

    def __init__(
        self,
        model: nn.Module,
        objective: Objective,
        settings: TrainingSettings,
        layout: Layout,
        processes: Processes,
    ) -> None:
        if not (dist.is_available() and dist.is_initialized()):
            raise ValueError("shard needs processes to share the model, started by torchrun, got one alone")
        device = next(model.parameters()).device
        super().__init__(model.to("cpu"), objective, settings, layout, processes)
        self.device = device

    def start(self) -> None:
        """Cut a copy of what the first process has into parts, of which each keeps its own."""
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        from torch.distributed.tensor import distribute_tensor

        self.processes.share(self.model, self.optimizer)
        mesh = init_device_mesh(self.device.type, (self.processes.n,))
        self._loss = LossOf(copy.deepcopy(self.model), self._objective)
        for module in list(self._loss.modules()):
            if isinstance(module, Block | DecoderBlock):
                fully_shard(module, mesh=mesh)
        fully_shard(self._loss, mesh=mesh)
        self._computing = make_optimizer(cast(nn.Module, self._loss.model), self.settings)
        for part, whole in self._pairs():
            for key, value in self.optimizer.state.get(whole, {}).items():
                value = value.to(self.device)
                if value.shape == whole.shape:
                    value = distribute_tensor(value, mesh, part.placements)
                self._computing.state[part][key] = value
        self.optimizer.state.clear()

    def _pairs(self) -> Any:
        return zip(self._loss.parameters(), self.model.parameters(), strict=True)

    def _clip(self) -> Tensor:
        return cast(Any, super()._clip()).full_tensor()

    @torch.no_grad()
    def collect(self) -> None:
        """Put the model together, and on the first process its moments too."""
        for part, whole in self._pairs():
            whole.copy_(part.full_tensor())
            for key, value in self._computing.state.get(part, {}).items():
                full = value.full_tensor() if hasattr(value, "full_tensor") else value
                if self.processes.first:
                    self.optimizer.state[whole][key] = full.cpu()
