"""The training loop: one for every objective, resumable bit for bit."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
import tqdm
from torch import Tensor, nn

from tinytx.training.checkpoint import RunFolder
from tinytx.training.distributed import Processes
from tinytx.training.learners import Learner, ShardedLearner
from tinytx.training.objectives import Objective
from tinytx.training.optim import TRIM_EVERY, trim_memory
from tinytx.training.settings import Layout, TrainingSettings


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

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON can hold them."""
        return dataclasses.asdict(self)


@dataclass
class State:
    """Where training stands; with weights, moments and random state it is all that resuming needs."""

    step: int = 0
    epoch: int = 0
    position: int = 0  # batches of this epoch already used
    losses: list[float] = field(default_factory=list)  # since the last record
    history: History = field(default_factory=History)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> State:
        return cls(**{**fields, "history": History(**fields["history"])})


class TrainingInterrupted(KeyboardInterrupt):
    """Training was stopped by hand, after saving where there was a folder to save into.

    Attributes
    ----------
    happened : str
        What was done and kept; the whole message also says how to go on from Python.
    """

    def __init__(self, happened: str, call: str | None = None) -> None:
        super().__init__(happened if call is None else f"{happened}; to go on: {call}")
        self.happened = happened


@contextlib.contextmanager
def stop_on_ctrl_c(*, patient: bool = False) -> Iterator[threading.Event]:
    """Turn the first Ctrl-C into a flag; the second one stops at once, unless ``patient``.

    One of several processes has to be patient: it may be told twice, by the terminal and by torchrun.
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


def in_notebook() -> bool:
    """Whether this code runs in a Jupyter kernel."""
    shell = sys.modules.get("IPython")
    running = shell.get_ipython() if shell is not None else None
    return running is not None and "IPKernelApp" in running.config


def progress_bar(total: int, *, initial: int = 0, label: str = "", show: bool | None = None) -> Any:
    """A tqdm bar on standard error; ``show=None`` draws it in a terminal or notebook only.

    The environment variable ``TQDM_DISABLE=1`` switches such an automatic bar off.
    """
    notebook = in_notebook()
    make = tqdm.tqdm
    if notebook:
        from tqdm.notebook import tqdm as make  # type: ignore[no-redef]
    settings: dict[str, Any] = {"total": total, "initial": initial, "desc": label, "leave": False}
    if show is not None:
        settings["disable"] = not show
    elif not (notebook or sys.stderr.isatty()):
        settings["disable"] = True
    return make(**settings)


OnStep = Callable[[int, nn.Module], dict[str, Any] | None]


class DivergenceError(ValueError):
    """The loss stopped being a number."""


def train(
    model: nn.Module,
    objective: Objective,
    settings: TrainingSettings,
    *,
    run: RunFolder | None = None,
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
    run : RunFolder, optional
        Where checkpoints go. If it holds one, training goes on from there, to the same bytes as if it had
        never stopped. Of several processes only the first has one.
    layout : Layout, optional
        How a step is laid out in time and over processes. A run may be gone on with in another layout, and
        with another number of processes; the last bits then differ.
    processes : Processes, optional
        Those that train together; by default all that `joined` has brought together.
    on_step : callable, optional
        Called as ``on_step(step, model)`` after every step, the model in evaluation mode and the random
        state shielded; a dict that it returns is kept in the history. Of several processes only the first
        calls it.
    progress : bool, optional
        Show a bar; by default when a person watches.
    label : str
        Words in front of the bar.

    Returns
    -------
    History

    Raises
    ------
    ValueError
        When a model that is sharded should be looked at by ``on_step``, or there is nobody to share it with.
    DivergenceError
        When a loss or gradient is no longer finite; names the step and the last good checkpoint.
    TrainingInterrupted
        On Ctrl-C, at the end of the step, after a checkpoint where there is a folder for it.

    Notes
    -----
    Equal settings, data, first weights, machine, number of threads and version of torch give equal bytes on
    a CPU, in one piece or resumed. Other threads or processes add up in another order, and another version
    or device may choose other kernels: the last bits then differ, and a resumed run says so. GPU kernels that
    add up in the order of arrival promise no equal bytes. A budget in seconds plans its number of steps anew
    in every run; once planned it is stored, and a resumed run follows it.
    """
    processes = processes or Processes.current()
    layout = layout or Layout()
    if layout.shard and on_step is not None:
        raise ValueError("on_step needs a model in one piece, got one that is sharded")
    training = _Training(model, objective, settings, run, layout, processes)
    cuda = [training.device] if training.device.type == "cuda" else []
    show = progress if processes.first else False
    with torch.random.fork_rng(devices=cuda), stop_on_ctrl_c(patient=processes.n > 1) as stopping:
        torch.manual_seed(settings.seed)
        model.train()
        training.restore()
        state = training.state
        with progress_bar(settings.n_steps, initial=state.step, label=label, show=show) as bar:
            for _ in training.steps():
                training.record()
                bar.update()
                if on_step is not None and processes.first:
                    training.call_back(on_step, cuda)
                training.save_if_due(processes.any(stopping.is_set()))
        training.learner.collect()
    model.to(training.device).eval()
    return state.history


class _Training:
    """One training in progress: the model, what it learns from, and where it stands."""

    def __init__(
        self,
        model: nn.Module,
        objective: Objective,
        settings: TrainingSettings,
        run: RunFolder | None,
        layout: Layout,
        processes: Processes,
    ) -> None:
        self.objective = objective
        self.settings = settings
        self.run = run
        self.processes = processes
        # Processes draw apart from each other, and those of a later run from where these stand.
        self.draws_anew = processes.n > 1 or layout.shard
        self.device = next(model.parameters()).device
        kind = ShardedLearner if layout.shard else Learner
        self.learner = kind(model, objective, settings, layout, processes)
        self.state = State()
        self._unread: list[tuple[Tensor, Tensor]] = []  # loss and gradient length of the latest steps

    def restore(self) -> None:
        """Go back to the newest checkpoint of the run, if there is one."""
        found = self.processes.agree(self._restored)
        self.state = State() if found is None else State.from_dict(found)
        self.learner.start()

    def _restored(self) -> dict[str, Any] | None:
        if self.run is None:
            return None
        return self.run.restore(self.learner.model, self.learner.optimizer, self.settings)

    def steps(self) -> Iterator[int]:
        """Make the steps that are left, one at a time."""
        state, settings = self.state, self.settings
        while state.step < settings.n_steps:
            batches = self.objective.epoch_batches(
                seed=settings.seed, epoch=state.epoch, tokens_per_batch=settings.tokens_per_batch
            )
            for indices in batches[state.position :]:
                self._step(indices)
                yield state.step
                if state.step == settings.n_steps:
                    return
            state.epoch, state.position = state.epoch + 1, 0

    def _step(self, indices: list[int]) -> None:
        if self.draws_anew:
            self.processes.draw_anew(self.settings.seed, self.state.step)
        loss = self.learner.backward(indices)
        self.state.step += 1
        self.state.position += 1
        norm = self.learner.update(self.settings.lr_at(self.state.step))
        self._unread.append((loss, norm))
        if self.state.step % TRIM_EVERY == 0 and self.device.type == "cpu":
            trim_memory()

    def record(self) -> None:
        """Read the latest losses and keep their mean when a record is due."""
        state, settings = self.state, self.settings
        due = state.step in (1, settings.n_steps) or state.step % settings.log_every == 0
        # Reading a number from a GPU, or from other processes, waits: there it is done only now and then.
        if due or self.processes.n == 1 and self.device.type == "cpu" or self._save_is_due():
            self._read_losses()
        if due:
            state.history.step.append(state.step)
            state.history.loss.append(sum(state.losses) / len(state.losses))
            state.history.lr.append(settings.lr_at(state.step))
            state.losses.clear()

    def _read_losses(self) -> None:
        if not self._unread:
            return
        first = self.state.step - len(self._unread) + 1
        losses = self.processes.total(torch.stack([loss for loss, _ in self._unread])).tolist()
        for step, (loss, (_, norm)) in enumerate(zip(losses, self._unread, strict=True), start=first):
            if not (math.isfinite(loss) and math.isfinite(norm.item())):
                what = "gradient" if math.isfinite(loss) else "loss"
                good = None if self.run is None else self.run.latest
                saved = (
                    "no checkpoint was written before" if good is None else f"last good checkpoint: {good}"
                )
                raise DivergenceError(f"the {what} must stay finite, got loss {loss} at step {step}; {saved}")
            self.state.losses.append(loss)
        self._unread.clear()

    def call_back(self, on_step: OnStep, cuda: list[torch.device]) -> None:
        """Let the caller look at the model, without any effect on what comes next."""
        model = self.learner.model
        model.eval()
        with torch.random.fork_rng(devices=cuda):
            evaluation = on_step(self.state.step, model)
        model.train()
        if evaluation is not None:
            self.state.history.evaluations.append({"step": self.state.step, **evaluation})

    def _save_is_due(self) -> bool:
        return self.settings.is_scheduled(self.state.step)

    def save_if_due(self, stopping: bool) -> None:
        """Write a checkpoint when the schedule says so, or when a person stops the training."""
        if stopping:
            self._read_losses()
        if stopping or self._save_is_due():
            self.learner.collect()
            if self.run is not None:
                model, optimizer = self.learner.model, self.learner.optimizer
                self.run.save(model, optimizer, self.settings, dataclasses.asdict(self.state))
        if stopping:
            stopped = f"training stopped by hand after step {self.state.step}"
            if self.run is None:
                raise TrainingInterrupted(f"{stopped}: nothing was kept, as there is no folder to save into")
            raise TrainingInterrupted(f"{stopped}: saved in {self.run.latest}", self.run.call)
