"""The training loop: one for every objective, deterministic, and resumable to the same bytes.

Several processes hook in as a `TrainingStep`, folders as `Checkpoints`.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from functools import partial
from itertools import count
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from tqdm.auto import tqdm

from tinytx.fast import NO_WAIT, TRIM_EVERY, Compiled, retain_memory, sent, trim_memory
from tinytx.history import DivergenceError, History, State, TrainingInterrupted, last_good
from tinytx.objectives import Objective, Prepared
from tinytx.optim import make_optimizer
from tinytx.prefetching import choose_workers, made_by_workers
from tinytx.settings import Lines, TrainingSettings, choose_precision

OnStep = Callable[[int, nn.Module], dict[str, Any] | None]


class Checkpoints(Protocol):
    """The checkpoints of a run, such as `tinytx_run.runs.Checkpoints`."""

    latest: Any  # the folder of the newest one; None at first

    def save(self, model: nn.Module, optimizer: Any, settings: TrainingSettings, state: Any) -> None: ...

    def restore(self, model: nn.Module, optimizer: Any, settings: TrainingSettings) -> Any: ...


class TrainingStep:
    """One training step: the gradient of a batch by backpropagation, and the update of the weights."""

    def __init__(self, model: nn.Module, objective: Objective, settings: TrainingSettings) -> None:
        self.model, self.objective, self.settings = model, objective, settings
        self.device = next(model.parameters()).device
        self.optimizer: Optimizer = make_optimizer(model, settings)
        self.loss: Callable[[list[int]], Tensor] = partial(objective.loss, model)
        self.in_any_process: Callable[[bool], bool] = bool  # whether it is true in one of several processes
        self.always_ends = False  # whether a second Ctrl-C, too, waits for the end of the step
        on_gpu, n_tokens = self.device.type == "cuda", settings.n_steps * settings.tokens_per_batch
        self._compiled = Compiled(model, n_tokens) if on_gpu else contextlib.nullcontext()
        self._bf16 = choose_precision(settings.precision, self.device) == "bf16"
        self.n_workers = choose_workers(self) if self.device.type in NO_WAIT else 0  # that make the batches
        retain_memory()

    def batches(self, epoch: int) -> list[list[int]]:
        """The rows of each batch of one pass over the data."""
        seed, most = self.settings.seed, self.settings.tokens_per_batch
        return self.objective.epoch_batches(seed=seed, epoch=epoch, tokens_per_batch=most)

    def part(self, batch: list[int]) -> Prepared:
        """The rows of a batch that this process computes: all."""
        return Prepared(batch)

    def backward(self, batch: list[int]) -> Tensor:
        """Compute the gradient of the mean loss of a batch, or of a part by its share; return that loss."""
        bf16 = torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self._bf16)
        with bf16, self._compiled:
            loss = self.loss(batch)
        if (share := getattr(batch, "share", None)) is not None:
            loss = loss * sent(torch.tensor(share), loss.device)
        loss = loss.sum()  # of an objective with two terms; else there is one number
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    def update(self, lr: float) -> Tensor:
        """Clip the gradient, update the weights, clear the gradient; return its norm before clipping."""
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

    On a CPU a run is deterministic, resumed or not: the same settings, data, first weights, machine, number
    of threads and version of torch give the same bytes. Some GPU kernels add in the order of arrival.

    Parameters
    ----------
    model : Module
        On the device to compute on; left in evaluation mode.
    objective, settings : Objective, TrainingSettings
    step : TrainingStep, optional
        Of the same three, as one of several processes makes it.
    checkpoints : Checkpoints, optional
        Training resumes from the newest one, if there is any.
    on_step : callable, optional
        Called as ``on_step(step, model)`` after every step, with the model in evaluation mode and without an
        effect on the random state; a dict that it returns goes into the history.
    progress, label : bool and str, optional
        Whether to show a bar with this label. By default a terminal and a notebook show it, and elsewhere a
        line is printed now and then, unless ``TQDM_DISABLE`` is set.

    Raises
    ------
    DivergenceError
        When a loss, a gradient or a weight is no longer finite; names the step and the last good checkpoint.
    LostWorkerError
        When a worker that makes batches for a GPU ends; names the last good checkpoint.
    TrainingInterrupted
        On Ctrl-C, at the end of the step; a run with checkpoints has saved one.
    """
    step = step or TrainingStep(model, objective, settings)
    state, unread = State(), list[Tensor]()  # loss and gradient norm of the latest steps
    gpus = [step.device] if step.device.type == "cuda" else []
    hidden = (bool(os.environ.get("TQDM_DISABLE")) or None) if progress is None else not progress
    lines = Lines(label, settings.n_steps)
    with (
        contextlib.ExitStack() as stack,
        torch.random.fork_rng(gpus),
        torch.enable_grad(),  # and as before afterwards: a signal may come while torch has gradients off
        _ctrl_c_as_flag(step.always_ends) as ctrl_c,
        tqdm(total=settings.n_steps, desc=label, leave=False, disable=hidden) as bar,
    ):
        torch.manual_seed(settings.seed)
        model.train()
        stack.callback(model.eval)  # however it ends
        if checkpoints and (saved := checkpoints.restore(step.model, step.optimizer, settings)):
            state = State(**{**saved, "history": History(**saved["history"])})
            bar.initial = bar.n = state.step
        learned, numbers = (state.epoch, state.position), range(state.step + 1, settings.n_steps + 1)
        batches: Iterable[tuple[int, int, list[int]]] = (
            (epoch, position, batch)
            for epoch in count(state.epoch)
            for position, batch in enumerate(step.batches(epoch), start=1)
            if (epoch, position) > learned
        )
        if step.n_workers:
            batches = stack.enter_context(made_by_workers(step, learned, checkpoints))
        for number, (epoch, position, batch) in zip(numbers, batches, strict=False):
            lr = settings.lr_at(number)
            unread.append(torch.stack([step.backward(batch), step.update(lr)]))
            state.step, state.epoch, state.position = number, epoch, position
            bar.update()
            if bar.disable and hidden is None:
                lines.say(number)
            is_due = state.step in (1, settings.n_steps) or state.step % settings.log_every == 0
            if is_due or step.device.type not in NO_WAIT:  # reading a number from a GPU waits for it
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
            interrupted = step.in_any_process(ctrl_c.is_set())
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
    for name, weight in model.named_parameters():
        if not weight.isfinite().all():
            got = f"{name} after step {state.step}; {last_good(checkpoints)}"
            raise DivergenceError(f"weights must be finite, got {got}")
    return state.history


def _read(unread: list[Tensor], state: State, checkpoints: Checkpoints | None) -> None:
    """Move the losses of the latest steps into the state; one that is not finite ends the training."""
    numbers = torch.stack(unread).tolist() if unread else []
    for number, (loss, norm) in enumerate(numbers, start=state.step - len(unread) + 1):
        if not math.isfinite(loss + norm):
            got = f"a gradient of length {norm} and loss {loss} at step {number}; {last_good(checkpoints)}"
            raise DivergenceError(f"loss and gradient must be finite, got {got}")
        state.losses.append(loss)
    unread.clear()


@contextlib.contextmanager
def _ctrl_c_as_flag(always_ends: bool) -> Iterator[threading.Event]:
    """Turn the first Ctrl-C into a flag; the second one stops at once, unless a step ``always_ends``."""
    flag = threading.Event()

    def handle(number: int, frame: object) -> None:
        if flag.is_set() and not always_ends:
            raise KeyboardInterrupt
        flag.set()

    is_main = threading.current_thread() is threading.main_thread()  # no other one may handle signals
    before = signal.signal(signal.SIGINT, handle) if is_main else None
    try:
        yield flag
    finally:
        if is_main:
            signal.signal(signal.SIGINT, before)
