"""The training loop: one for every objective, resumable bit for bit."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from tinytx.training.interrupts import stop_on_ctrl_c
from tinytx.training.objectives import Objective
from tinytx.training.optimizers import make_optimizer
from tinytx.training.progress import progress_bar
from tinytx.training.runfolder import RunFolder
from tinytx.training.settings import TrainingSettings, choose_precision

OnStep = Callable[[int, nn.Module], dict[str, Any] | None]


class DivergenceError(ValueError):
    """The loss stopped being a number."""


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
class _State:
    """Where training stands; with weights, moments and random state it is all that resuming needs."""

    step: int = 0
    epoch: int = 0
    position: int = 0  # batches of this epoch already used
    losses: list[float] = field(default_factory=list)  # since the last record
    history: History = field(default_factory=History)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> _State:
        return cls(**{**fields, "history": History(**fields["history"])})


def train(
    model: nn.Module,
    objective: Objective,
    settings: TrainingSettings,
    *,
    run: RunFolder | None = None,
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
        never stopped.
    on_step : callable, optional
        Called as ``on_step(step, model)`` after every step, the model in evaluation mode and the random
        state shielded; a dict that it returns is kept in the history.
    progress : bool, optional
        Show a bar; by default when a person watches.
    label : str
        Words in front of the bar.

    Returns
    -------
    History

    Raises
    ------
    DivergenceError
        When a loss or gradient is no longer finite; names the step and the last good checkpoint.
    TrainingInterrupted
        On Ctrl-C, at the end of the step, after a checkpoint where there is a folder for it.

    Notes
    -----
    Equal settings, data, first weights, machine, number of threads and version of torch give equal bytes, in
    one piece or resumed. Other threads add up in another order, and another version or device may choose
    other kernels: the last bits then differ, and a resumed run says so. On a GPU some gradients (of
    embeddings, for one) are added up in the order in which they arrive, so that two runs may differ even there,
    unless `torch.use_deterministic_algorithms` is on. A budget in seconds plans its steps anew in each run; once
    planned they are stored, and a resumed run follows them.
    """
    training = _Training(model, objective, settings, run)
    cuda = [training.device] if training.device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda), stop_on_ctrl_c() as stopping:
        torch.manual_seed(settings.seed)
        training.restore()
        state = training.state
        with progress_bar(settings.n_steps, initial=state.step, label=label, show=progress) as bar:
            model.train()
            for _ in training.steps():
                training.record()
                bar.update()
                if on_step is not None:
                    training.call_back(on_step, cuda)
                training.save_if_due(stopping.is_set())
    model.eval()
    return state.history


class _Training:
    """One training in progress: the model, what it learns from, and where it stands."""

    def __init__(
        self, model: nn.Module, objective: Objective, settings: TrainingSettings, run: RunFolder | None
    ) -> None:
        self.model = model
        self.objective = objective
        self.settings = settings
        self.run = run
        self.optimizer = make_optimizer(model, settings)
        self.device = next(model.parameters()).device
        self.state = _State()
        self._unread: list[tuple[Tensor, Tensor]] = []  # loss and gradient length of the latest steps

    def restore(self) -> None:
        """Go back to the newest checkpoint of the run, if there is one."""
        if self.run is not None:
            found = self.run.restore(self.model, self.optimizer, self.settings)
            self.state = _State() if found is None else _State.from_dict(found)

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
        bf16 = choose_precision(self.settings.precision, self.device) == "bf16"
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=bf16):
            loss = self.objective.loss(self.model, indices)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip_norm)
        self.state.step += 1
        self.state.position += 1
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.lr_at(self.state.step)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self._unread.append((loss.detach(), norm))

    def record(self) -> None:
        """Read the latest losses and keep their mean when a record is due."""
        state, settings = self.state, self.settings
        due = state.step in (1, settings.n_steps) or state.step % settings.log_every == 0
        # Reading a number from a GPU waits for it, so there it is done only now and then.
        if due or self.device.type == "cpu" or self._save_is_due():
            self._read_losses()
        if due:
            state.history.step.append(state.step)
            state.history.loss.append(sum(state.losses) / len(state.losses))
            state.history.lr.append(settings.lr_at(state.step))
            state.losses.clear()

    def _read_losses(self) -> None:
        first = self.state.step - len(self._unread) + 1
        for step, (loss, norm) in enumerate(self._unread, start=first):
            if not (math.isfinite(loss.item()) and math.isfinite(norm.item())):
                what = "gradient" if math.isfinite(loss.item()) else "loss"
                good = None if self.run is None else self.run.latest
                saved = (
                    "no checkpoint was written before" if good is None else f"last good checkpoint: {good}"
                )
                raise DivergenceError(
                    f"the {what} must stay finite, got loss {loss.item()} at step {step}; {saved}"
                )
            self.state.losses.append(loss.item())
        self._unread.clear()

    def call_back(self, on_step: OnStep, cuda: list[torch.device]) -> None:
        """Let the caller look at the model, without any effect on what comes next."""
        self.model.eval()
        with torch.random.fork_rng(devices=cuda):
            evaluation = on_step(self.state.step, self.model)
        self.model.train()
        if evaluation is not None:
            self.state.history.evaluations.append({"step": self.state.step, **evaluation})

    def _save_is_due(self) -> bool:
        return self.run is not None and self.settings.is_scheduled(self.state.step)

    def save_if_due(self, stopping: bool) -> None:
        """Write a checkpoint when the schedule says so, or when a person stops the training."""
        if stopping:
            self._read_losses()
        if self.run is not None and (stopping or self._save_is_due()):
            self.run.save(self.model, self.optimizer, self.settings, dataclasses.asdict(self.state))
        if stopping:
            stopped = f"training stopped by hand after step {self.state.step}"
            if self.run is None:
                raise TrainingInterrupted(f"{stopped}: nothing was kept, as there is no folder to save into")
            raise TrainingInterrupted(f"{stopped}: saved in {self.run.latest}", self.run.call)
