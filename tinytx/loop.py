"""The training loop: one for every objective, deterministic, and resumable to the same bytes.

It knows neither processes nor folders: these hook in as a `TrainingStep` and as `Checkpoints`.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from tqdm.auto import tqdm

from tinytx.fast import TRIM_EVERY, retain_memory, sent, trim_memory
from tinytx.objectives import Objective
from tinytx.optim import make_optimizer
from tinytx.settings import TrainingSettings, choose_precision, require

OnStep = Callable[[int, nn.Module], dict[str, Any] | None]


class Checkpoints(Protocol):
    """Where a run is kept, as in `tinytx_run.runs`."""

    latest: Any  # where the last one was written, or is resumed from; None at first

    def save(self, model: nn.Module, optimizer: Any, settings: TrainingSettings, state: Any) -> None: ...

    def restore(self, model: nn.Module, optimizer: Any, settings: TrainingSettings) -> Any: ...


@dataclass
class History:
    """What happened during training, ready to be drawn.

    Of each interval, the first of one step only, there is its last ``step``, the mean training ``loss`` in
    nats and the last ``lr``; and of each ``on_step`` what it returned, with its ``step``.
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
    """The loss, or a weight, is no longer finite."""


class TrainingInterrupted(KeyboardInterrupt):
    """Ctrl-C stopped the training at the end of a step; ``happened`` says whether it was saved."""

    def __init__(self, happened: str, how_to_resume: str = "") -> None:
        super().__init__(happened + how_to_resume)
        self.happened = happened


class TrainingStep:
    """One training step: the gradient of a batch by backpropagation, and the update of the weights.

    The ``accumulate`` micro-batches of a batch are computed one after the other (gradient accumulation): only
    one at a time has to fit into memory. The other parameters are those of `train`.
    """

    def __init__(
        self, model: nn.Module, objective: Objective, settings: TrainingSettings, accumulate: int = 1
    ) -> None:
        require(accumulate >= 1, "accumulate must be at least 1", accumulate)
        self.model, self.objective, self.settings = model, objective, settings
        self.accumulate, self.device = accumulate, next(model.parameters()).device
        self.optimizer: Optimizer = make_optimizer(model, settings)
        self.loss: Callable[[list[int]], Tensor] = partial(objective.loss, model)
        self.any: Callable[[bool], bool] = bool  # of several processes: whether it is true in one of them
        self.patient = False  # whether a second Ctrl-C, too, waits for the end of the step
        self._bf16 = choose_precision(settings.precision, self.device) == "bf16"
        retain_memory()

    def backward(self, batch: list[int], parts: list[list[int]] | None = None) -> Tensor:
        """Add the gradient of the mean loss of a batch to those of the weights; gives that loss.

        The mean loss of a micro-batch counts by its share of the batch's predictions, so the gradient is that
        of the whole batch. Where ``parts`` are given, only these micro-batches are computed.
        """
        shares = []
        for part in parts or [batch[at :: self.accumulate] for at in range(self.accumulate)]:
            with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self._bf16):
                loss = self.loss(part or batch[:1])  # of a batch with few rows a part may be empty
            if len(part) < len(batch):
                n_part = torch.tensor(self.objective.n_predictions(part) if part else 0)
                n_batch = torch.tensor(self.objective.n_predictions(batch))
                loss = loss * sent(n_part / n_batch.clamp(min=1), loss.device)
            share = loss.sum()  # of an objective with two terms; else there is one number
            share.backward()  # type: ignore[no-untyped-call]
            shares.append(share.detach())
        return torch.stack(shares).sum()

    def update(self, lr: float) -> Tensor:
        """Clip the gradient, update the weights and clear the gradient; gives its norm before clipping."""
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip_norm)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return norm


def train(
    model: nn.Module,
    objective: Objective,
    settings: TrainingSettings,
    *,
    step: TrainingStep | None = None,
    checkpoints: Checkpoints | None = None,
    on_step: OnStep | None = None,
    progress: bool | None = None,
    label: str = "training",
) -> History:
    """Train a model in place.

    Equal settings, data, first weights, machine, number of threads and version of torch give equal bytes on
    a CPU, uninterrupted or resumed. GPU kernels that add up in the order of arrival are not deterministic.

    Parameters
    ----------
    model : Module
        On the device to compute on; left in evaluation mode.
    objective, settings : Objective, TrainingSettings
    step : TrainingStep, optional
        Of these three, where it has micro-batches or is that of several processes.
    checkpoints : Checkpoints, optional
        Of the run. If there is one, training resumes from it.
    on_step : callable, optional
        Called as ``on_step(step, model)`` after every step, the model in evaluation mode and the random state
        protected; a dict that it returns goes into the history.
    progress, label : bool and str, optional
        Show a bar with these words; by default in a terminal and a notebook unless ``TQDM_DISABLE`` is set.

    Raises
    ------
    DivergenceError
        When a loss, a gradient or a weight is no longer finite; names the step and the last good checkpoint.
    TrainingInterrupted
        On Ctrl-C, at the end of the step, after a checkpoint where there is a folder for it.
    """
    step = step or TrainingStep(model, objective, settings)
    state, unread = State(), list[Tensor]()  # loss and gradient norm of the latest steps
    gpus = [step.device] if step.device.type == "cuda" else []
    hidden = (bool(os.environ.get("TQDM_DISABLE")) or None) if progress is None else not progress
    how = {"seed": settings.seed, "tokens_per_batch": settings.tokens_per_batch}
    with (
        torch.random.fork_rng(gpus),
        _ctrl_c_as_flag(step.patient) as ctrl_c,
        tqdm(total=settings.n_steps, desc=label, leave=False, disable=hidden) as bar,
    ):
        torch.manual_seed(settings.seed)
        model.train()
        if checkpoints and (saved := checkpoints.restore(step.model, step.optimizer, settings)):
            state = State(**{**saved, "history": History(**saved["history"])})
            bar.initial = bar.n = state.step
        while state.step < settings.n_steps:
            batches = objective.epoch_batches(epoch=state.epoch, **how)
            for batch in batches[state.position :][: settings.n_steps - state.step]:
                lr = settings.lr_at(state.step + 1)
                unread.append(torch.stack([step.backward(batch), step.update(lr)]))
                state.step, state.position = state.step + 1, state.position + 1
                bar.update()
                is_due = state.step in (1, settings.n_steps) or state.step % settings.log_every == 0
                if is_due or not gpus:  # reading a number from a GPU waits for it
                    _read(unread, state, checkpoints)
                if is_due:
                    state.history.step.append(state.step)
                    state.history.loss.append(sum(state.losses) / len(state.losses))
                    state.history.lr.append(lr)
                    state.losses.clear()
                if on_step is not None:
                    model.eval()
                    with torch.random.fork_rng(gpus):
                        evaluation = on_step(state.step, model)
                    model.train()
                    if evaluation is not None:
                        state.history.evaluations.append({"step": state.step, **evaluation})
                interrupted = step.any(ctrl_c.is_set())
                if checkpoints and (interrupted or settings.is_scheduled(state.step)):
                    _read(unread, state, checkpoints)
                    checkpoints.save(step.model, step.optimizer, settings, asdict(state))
                if interrupted:
                    latest = getattr(checkpoints, "latest", None)
                    saved = f"saved in {latest}" if latest else "nothing was saved, as the run has no folder"
                    happened = f"training was interrupted after step {state.step}: {saved}"
                    raise TrainingInterrupted(
                        happened, "; the same call with resume=True continues" if latest else ""
                    )
                if state.step % TRIM_EVERY == 0:
                    trim_memory()
            state.epoch, state.position = state.epoch + 1, 0
    for name, weight in model.named_parameters():
        if not weight.isfinite().all():
            raise DivergenceError(f"weights must be finite, got {name} after step {state.step}")
    model.eval()
    return state.history


def _read(unread: list[Tensor], state: State, checkpoints: Checkpoints | None) -> None:
    """Move the losses of the latest steps into the state; one that is not finite ends the training."""
    numbers = torch.stack(unread).tolist() if unread else []
    for number, (loss, norm) in enumerate(numbers, start=state.step - len(unread) + 1):
        if not math.isfinite(loss + norm):
            latest = getattr(checkpoints, "latest", None)
            good = "no checkpoint was written" if latest is None else f"last good checkpoint: {latest}"
            got = f"a gradient of length {norm} and loss {loss} at step {number}"
            raise DivergenceError(f"loss and gradient must be finite, got {got}; {good}")
        state.losses.append(loss)
    unread.clear()


@contextlib.contextmanager
def _ctrl_c_as_flag(patient: bool) -> Iterator[threading.Event]:
    """Turn the first Ctrl-C into a flag; the second one stops at once, unless ``patient``."""
    flag = threading.Event()

    def handle(number: int, frame: object) -> None:
        if flag.is_set() and not patient:
            raise KeyboardInterrupt
        flag.set()

    is_main = threading.current_thread() is threading.main_thread()  # no other one may handle signals
    before = signal.signal(signal.SIGINT, handle) if is_main else None
    try:
        yield flag
    finally:
        if is_main:
            signal.signal(signal.SIGINT, before)
