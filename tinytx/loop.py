"""The training loop: one for every objective, deterministic, and resumable to the same bytes."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from tqdm.auto import tqdm

from tinytx.distributed import Processes, Sharded, require_processes
from tinytx.fast import TRIM_EVERY, retain_memory, trim_memory
from tinytx.objectives import Objective
from tinytx.optim import make_optimizer
from tinytx.settings import Layout, TrainingSettings, choose_precision, mixed_seed

OnStep = Callable[[int, nn.Module], dict[str, Any] | None]


class Checkpoints(Protocol):
    """Where a run is kept, as in `tinytx_run.runs`."""

    latest: Path | None  # last written, or resumed from

    def save(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        settings: TrainingSettings,
        state: dict[str, Any],
    ) -> None: ...

    def restore(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, settings: TrainingSettings
    ) -> dict[str, Any] | None: ...


@dataclass
class History:
    """What happened during training, ready to be drawn.

    Attributes
    ----------
    step, loss, lr : lists, equally long
        One entry a record: the last step of the interval, the mean training loss over it in nats, and the
        learning rate of its last step. The first step has a record of its own.
    evaluations : list of dict
        What the ``on_step`` callback returned, each with its ``step``.
    """

    step: list[int] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)
    lr: list[float] = field(default_factory=list)
    evaluations: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class State:
    """State of the loop; with weights, moments and random state it is all that resuming needs."""

    step: int = 0
    epoch: int = 0
    position: int = 0  # batches of this epoch already used
    losses: list[float] = field(default_factory=list)  # since the last record
    history: History = field(default_factory=History)


class DivergenceError(ValueError):
    """The loss is no longer finite."""


class TrainingInterrupted(KeyboardInterrupt):
    """Ctrl-C stopped the training at the end of a step, after a checkpoint where there is a folder for it.

    ``happened`` says what was saved; the whole message also how to resume.
    """

    def __init__(self, happened: str, how_to_resume: str = "") -> None:
        super().__init__(happened + how_to_resume)
        self.happened = happened


def train(
    model: nn.Module,
    objective: Objective,
    settings: TrainingSettings,
    *,
    checkpoints: Checkpoints | None = None,
    layout: Layout | None = None,
    processes: Processes | None = None,
    on_step: OnStep | None = None,
    progress: bool | None = None,
    label: str = "training",
) -> History:
    """Train a model in place.

    Parameters
    ----------
    model : Module
        On the device to compute on; left in evaluation mode.
    objective : Objective
        Gives batches and losses.
    settings : TrainingSettings
    checkpoints : Checkpoints, optional
        Of the run. If there is one, training resumes from it, to the same bytes as an uninterrupted run. Of
        several processes only the first passes them.
    layout : Layout, optional
        How a batch is split. A run may be resumed with another layout or number of processes; the last bits
        then differ, and so does what is dropped out.
    processes : Processes, optional
        By default all that `joined` has brought together.
    on_step : callable, optional
        Called by the first process as ``on_step(step, model)`` after every step, the model in evaluation
        mode and the random state protected; a dict that it returns goes into the history.
    progress : bool, optional
        Show a bar; by default in a terminal and in a notebook, unless ``TQDM_DISABLE`` is set.
    label : str
        Words in front of the bar.

    Returns
    -------
    History

    Raises
    ------
    ValueError
        When ``on_step`` shall see a sharded model, or a model shall be sharded over one process.
    DivergenceError
        When a loss or gradient is no longer finite; names the step and the last good checkpoint.
    TrainingInterrupted
        On Ctrl-C, at the end of the step, after a checkpoint where there is a folder for it.

    Notes
    -----
    Equal settings, data, first weights, machine, number of threads and version of torch give equal bytes on
    a CPU, uninterrupted or resumed. GPU kernels that add up in the order of arrival are not deterministic.
    """
    layout, processes = layout or Layout(), processes or Processes.current()
    if layout.shard and on_step is not None:
        raise ValueError("on_step needs a model in one piece, got one that is sharded")
    loop = _Loop(TrainingStep(model, objective, settings, layout, processes), checkpoints, on_step)
    with torch.random.fork_rng(devices=loop.cuda), _ctrl_c_as_flag(patient=processes.n > 1) as ctrl_c:
        torch.manual_seed(settings.seed)
        model.train()
        loop.restore()
        hidden = _no_bar(progress) if processes.first else True
        with tqdm(
            total=settings.n_steps, initial=loop.state.step, desc=label, leave=False, disable=hidden
        ) as bar:
            for batch in loop.batches():
                loop.learn(batch)
                bar.update()
                loop.finish_step(ctrl_c)
        loop.step.collect()
    model.to(loop.step.device).eval()
    return loop.state.history


class _Loop:
    """A training in progress: its step, its state, and what happens between two steps."""

    def __init__(self, step: TrainingStep, checkpoints: Checkpoints | None, on_step: OnStep | None) -> None:
        self.step, self.settings, self.processes = step, step.settings, step.processes
        self.checkpoints, self.on_step = checkpoints, on_step
        self.state = State()
        self.cuda = [step.device] if step.device.type == "cuda" else []
        self._unread: list[tuple[Tensor, Tensor]] = []  # loss and gradient norm of the latest steps

    def restore(self) -> None:
        """Load the newest checkpoint of the run, if there is one."""

        def restored() -> dict[str, Any] | None:
            if self.checkpoints is None:
                return None
            return self.checkpoints.restore(self.step.model, self.step.optimizer, self.settings)

        fields = self.processes.agree(restored)
        if fields is not None:
            self.state = State(**{**fields, "history": History(**fields["history"])})
        self.step.start()

    def batches(self) -> Iterator[list[int]]:
        """The batches of the steps that are left."""
        state, settings = self.state, self.settings
        while state.step < settings.n_steps:
            batches = self.step.objective.epoch_batches(
                seed=settings.seed, epoch=state.epoch, tokens_per_batch=settings.tokens_per_batch
            )
            yield from batches[state.position :][: settings.n_steps - state.step]
            state.epoch, state.position = state.epoch + 1, 0

    def learn(self, batch: list[int]) -> None:
        """Make one step."""
        state, settings = self.state, self.settings
        if self.processes.n > 1 or self.step.layout.shard:  # each process has its own dropout
            torch.manual_seed(mixed_seed(settings.seed, state.step, self.processes.rank))
        loss = self.step.backward(batch)
        state.step += 1
        state.position += 1
        self._unread.append((loss, self.step.update(settings.lr_at(state.step))))

    def finish_step(self, ctrl_c: threading.Event) -> None:
        """Record the loss, call ``on_step``, and write a checkpoint when one is due or Ctrl-C was pressed."""
        self._record()
        if self.on_step is not None and self.processes.first:
            self._call_back(self.on_step)
        interrupted = self.processes.any(ctrl_c.is_set())
        if interrupted or self.settings.is_scheduled(self.state.step):
            self._save()
        if interrupted:
            self._stop()
        if self.state.step % TRIM_EVERY == 0:
            trim_memory()

    def _record(self) -> None:
        """Read the latest losses, and put their mean into the history when a record is due."""
        state, settings = self.state, self.settings
        due = state.step in (1, settings.n_steps) or state.step % settings.log_every == 0
        # Reading a number from a GPU, or from other processes, waits: there it is done only now and then.
        if due or self.processes.n == 1 and not self.cuda:
            self._read_losses()
        if due:
            state.history.step.append(state.step)
            state.history.loss.append(sum(state.losses) / len(state.losses))
            state.history.lr.append(settings.lr_at(state.step))
            state.losses.clear()

    def _read_losses(self) -> None:
        """Move the losses of the latest steps into the state; one that is not finite ends the training."""
        if not self._unread:
            return
        losses = self.processes.total(torch.stack([loss for loss, _ in self._unread])).tolist()
        norms = [norm.item() for _, norm in self._unread]
        first = self.state.step - len(losses) + 1
        for step, (loss, norm) in enumerate(zip(losses, norms, strict=True), start=first):
            if not (math.isfinite(loss) and math.isfinite(norm)):
                what, got = "loss", f"loss {loss}"
                if math.isfinite(loss):
                    what, got = "gradient", f"a gradient of length {norm}, loss {loss},"
                latest = None if self.checkpoints is None else self.checkpoints.latest
                good = "no checkpoint was written" if latest is None else f"last good checkpoint: {latest}"
                raise DivergenceError(f"the {what} must be finite, got {got} at step {step}; {good}")
        self.state.losses += losses
        self._unread.clear()

    def _call_back(self, on_step: OnStep) -> None:
        """Let the caller look at the model, without any effect on training."""
        model = self.step.model
        model.eval()
        with torch.random.fork_rng(devices=self.cuda):
            evaluation = on_step(self.state.step, model)
        model.train()
        if evaluation is not None:
            self.state.history.evaluations.append({"step": self.state.step, **evaluation})

    def _save(self) -> None:
        self._read_losses()
        self.step.collect()
        if self.checkpoints is not None:
            state = dataclasses.asdict(self.state)
            self.checkpoints.save(self.step.model, self.step.optimizer, self.settings, state)

    def _stop(self) -> None:
        happened = f"training was interrupted after step {self.state.step}: "
        if self.checkpoints is None:
            raise TrainingInterrupted(happened + "nothing was saved, as the run has no folder")
        happened += f"saved in {self.checkpoints.latest}"
        raise TrainingInterrupted(happened, "; the same call with resume=True continues")


class TrainingStep:
    """One training step: the gradient of a batch by backpropagation, and the update of the weights.

    The parameters are those of `train`. The attributes ``model`` and ``optimizer`` are in one piece, as
    checkpoints hold them; of a sharded model they are up to date only after `collect`.
    """

    def __init__(
        self,
        model: nn.Module,
        objective: Objective,
        settings: TrainingSettings,
        layout: Layout | None = None,
        processes: Processes | None = None,
    ) -> None:
        self.processes, self.layout = processes or Processes(), layout or Layout()
        require_processes(self.layout)
        self.device = next(model.parameters()).device
        self.model = model.to("cpu") if self.layout.shard else model
        self.objective, self.settings = objective, settings
        self.optimizer: torch.optim.Optimizer = make_optimizer(model, settings)
        self._active: torch.optim.Optimizer = self.optimizer
        self._loss: nn.Module = _Loss(model, objective)
        self._sharded: Sharded | None = None
        self._bf16 = choose_precision(settings.precision, self.device) == "bf16"
        retain_memory()

    def start(self) -> None:
        """Give every process the weights of the first; needed once, before the first step."""
        self.processes.share(self.model, self.optimizer)
        if self.layout.shard:
            self._sharded = Sharded(self._loss, self.optimizer, self.settings, self.device)
            self._loss, self._active = self._sharded.module, self._sharded.optimizer
        elif self.processes.n > 1:
            self._loss = DistributedDataParallel(self._loss)

    def backward(self, batch: list[int]) -> Tensor:
        """Compute the gradient of the mean loss of a batch; gives this process's share of that loss.

        The batch is split into micro-batches, ``layout.accumulate`` for each process (gradient accumulation).
        The mean loss of each counts by its share of the batch's predictions, so the gradient is that of the
        whole batch.
        """
        *early, last = self.processes.parts(batch, self.layout.accumulate)
        # Copies exchange their gradients once, with the last micro-batch; a sharded model does with each.
        with getattr(self._loss, "no_sync", contextlib.nullcontext)():
            shares = [self._backward(part, batch) for part in early]
        shares.append(self._backward(last, batch))
        return torch.stack(shares).sum()

    def _backward(self, part: list[int], batch: list[int]) -> Tensor:
        """Add the gradient of a micro-batch; gives its share of the loss of the batch."""
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self._bf16):
            # An empty part adds zeros, for which the other processes wait.
            loss = self._loss(part or batch[:1])
        if len(part) < len(batch):
            loss = loss * self._share(part, batch).to(loss.device)
        share = loss.sum()  # of an objective with two terms; else there is one number
        # torch takes the mean of the gradients of all processes, where their sum is needed.
        (share * self.processes.n if self.processes.n > 1 else share).backward()
        return share.detach()

    def _share(self, part: list[int], batch: list[int]) -> Tensor:
        """Share of a batch's predictions that some of its rows make; one number a term of the loss."""
        if not part:
            return torch.tensor(0.0)
        n_part, n_batch = (torch.tensor(self.objective.n_predictions(rows)) for rows in (part, batch))
        return n_part / n_batch.clamp(min=1)

    def update(self, lr: float) -> Tensor:
        """Clip the gradient, update the weights and clear the gradient; gives its norm before clipping."""
        norm: Any = nn.utils.clip_grad_norm_(self._loss.parameters(), self.settings.clip_norm)
        for group in self._active.param_groups:
            group["lr"] = lr
        self._active.step()
        self._active.zero_grad(set_to_none=True)
        return norm if self._sharded is None else norm.full_tensor()

    def collect(self) -> None:
        """Bring `model` and `optimizer` up to date; every process takes part."""
        if self._sharded is not None:
            self._sharded.collect()


class _Loss(nn.Module):
    """A model and its objective as one module: torch exchanges gradients of what a ``forward`` computes."""

    def __init__(self, model: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.model, self.objective = model, objective

    def forward(self, indices: list[int]) -> Tensor:
        return self.objective.loss(self.model, indices)


def _no_bar(progress: bool | None) -> bool | None:
    """What tqdm takes as ``disable``: None hides the bar where there is no terminal and no notebook."""
    return (bool(os.environ.get("TQDM_DISABLE")) or None) if progress is None else not progress


@contextlib.contextmanager
def _ctrl_c_as_flag(*, patient: bool) -> Iterator[threading.Event]:
    """Turn the first Ctrl-C into a flag; the second one stops at once, unless ``patient``.

    One of several processes has to be patient: the terminal and torchrun may both send the signal.
    """
    flag = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield flag  # only the main thread may handle signals
        return

    def handle(number: int, frame: object) -> None:
        if flag.is_set() and not patient:
            raise KeyboardInterrupt
        flag.set()

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield flag
    finally:
        signal.signal(signal.SIGINT, before)
