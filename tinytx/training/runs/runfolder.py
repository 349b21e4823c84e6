"""The folder of one training run: its plan, and its latest checkpoints."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save as safetensors_bytes
from torch import nn

from tinytx.text import Tokenizer
from tinytx.training.parallel.distributed import Processes
from tinytx.training.plans import PLAN_FILE, ForeignCheckpoint, check_request, read_state
from tinytx.training.runs.checkpoints import (
    MOMENTS_FILE,
    STATE_FILE,
    STEP_PREFIX,
    load_weights,
    model_files,
    step_folders,
    step_of,
)
from tinytx.training.runs.files import (
    as_json,
    clear_leftovers,
    json_bytes,
    make_folder,
    read_json,
    read_tensors,
    remove_folder,
    write_file,
    write_folder,
)
from tinytx.training.runs.locks import locked
from tinytx.training.runs.moments import moments, restore_moments
from tinytx.training.runs.seals import sealed
from tinytx.training.settings import TrainingSettings

KEPT = 2


class RunFolder:
    """Checkpoints of one run: ``step-000500/`` and the like, of which the latest two are kept.

    Parameters
    ----------
    path : path
        Made when training starts.
    plan : dict
        Everything that was asked for and decided, as JSON can hold it. Stored before the first step, so that
        a resumed run follows the same plan.
    tokenizer : Tokenizer, optional
        Saved with every checkpoint.
    report : callable
        Told, in one line, when a damaged checkpoint is passed over.

    Attributes
    ----------
    latest : Path or None
        The checkpoint last saved, or gone on from.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        plan: dict[str, Any],
        tokenizer: Tokenizer | None = None,
        report: Callable[[str], None] = print,
    ) -> None:
        self.path = Path(path)
        self.plan = as_json(plan)
        self.latest: Path | None = None
        self._tokenizer = tokenizer
        self._report = report

    @classmethod
    @contextlib.contextmanager
    def opened(
        cls,
        path: str | os.PathLike[str] | None,
        plan: dict[str, Any],
        tokenizer: Tokenizer | None = None,
        report: Callable[[str], None] = print,
    ) -> Iterator[RunFolder | None]:
        """A run folder, held for this process alone; None for no path.

        It is gone again if training fails before its first checkpoint.
        """
        if path is None:
            yield None
            return
        run = cls(path, plan, tokenizer, report)
        make_folder(run.path)
        with locked(run.path):
            run.start()
            try:
                yield run
            except BaseException:
                run.discard_if_fresh()
                raise

    def start(self) -> None:
        """Write the plan, unless it is there, and clear away what an interrupted write left."""
        make_folder(self.path)
        clear_leftovers(self.path)
        file = self.path / PLAN_FILE
        if file.exists():
            try:
                stored = read_json(file)
            except ValueError as error:
                self._report(f"{error}; written anew from a checkpoint")
            else:
                check_request(stored, self.plan.get("request", {}))
                self.plan = stored
                return
        write_file(file, json_bytes(self.plan))

    def discard_if_fresh(self) -> None:
        """Remove a folder that got no further than its plan."""
        if {path.name for path in self.path.glob("*")} <= {PLAN_FILE}:
            shutil.rmtree(self.path, ignore_errors=True)

    @property
    def call(self) -> str:
        """How to go on from Python."""
        request = self.plan.get("request", {})
        name = "train_translator" if request.get("objective") == "translation" else request.get("command")
        return "the same call" if name is None else f"{name}(..., out={str(self.path)!r}, resume=True)"

    def save(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        settings: TrainingSettings,
        state: dict[str, Any],
    ) -> None:
        """Write a checkpoint and remove those that are no longer needed.

        Raises
        ------
        OSError
            When there is no room, for one; says which checkpoint stays usable.
        """
        training = {"plan": self.plan, "settings": settings.to_dict(), "state": state, **_computed_on(model)}
        files = model_files(model, self._tokenizer)
        files[STATE_FILE] = json_bytes(training)
        files[MOMENTS_FILE] = safetensors_bytes(moments(model, optimizer))
        folder = self.path / f"{STEP_PREFIX}{state['step']:06d}"
        try:
            write_folder(folder, sealed(files))
        except OSError as error:
            kept = "nothing was saved before"
            if self.latest is not None:
                kept = f"{self.latest} stays usable, and resuming goes on from there"
            what = f"{error.strerror}, so step {state['step']} was not saved ({kept})"
            raise OSError(error.errno, what, error.filename) from error
        self.latest = folder
        self._prune(settings, state["step"])
        for refused in step_folders(self.path):
            if step_of(refused) > state["step"]:
                remove_folder(refused)

    def _prune(self, settings: TrainingSettings, step: int) -> None:
        folders = [folder for folder in step_folders(self.path) if step_of(folder) <= step]
        # Those written by hand (Ctrl-C) go first, so that an interrupted run ends with the same folders.
        scheduled = [folder for folder in folders if settings.is_scheduled(step_of(folder))]
        kept = {folders[-1], *scheduled[-KEPT:]}
        for folder in folders:
            if folder not in kept:
                remove_folder(folder)

    def restore(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, settings: TrainingSettings
    ) -> dict[str, Any] | None:
        """Bring model, optimizer and random state back to the newest checkpoint that can be gone on with.

        One of another run, found on the way, is put aside under a name of its own; a damaged one stays until
        the next is saved.

        Returns
        -------
        dict or None
            The state that was saved with it; None where no checkpoint has been written yet.

        Raises
        ------
        ValueError
            When there are checkpoints, but none can be gone on with; says why.
        """
        refused: dict[Path, ValueError] = {}
        for folder in reversed(step_folders(self.path)):
            try:
                training = self._restore_from(folder, model, optimizer, settings)
            except ValueError as error:
                refused[folder] = error
                continue
            for other, reason in refused.items():
                self._report(f"{reason}; going on from {folder.name}, the checkpoint before it")
                if isinstance(reason, ForeignCheckpoint):
                    _put_aside(other)
            self.latest = folder
            self._prune(settings, step_of(folder))
            self._compare(training, model, settings)
            return training["state"]
        if refused:
            reasons = "; ".join(map(str, refused.values()))
            raise ValueError(f"{reasons}; there is no checkpoint before it to go on from")
        return None

    def _restore_from(
        self, folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer, settings: TrainingSettings
    ) -> dict[str, Any]:
        training = read_state(folder, self.plan)
        if training.get("settings") != settings.to_dict():
            raise ForeignCheckpoint(
                f"{folder / STATE_FILE} was written with other settings: it cannot be gone on with"
            )
        tensors = read_tensors(folder / MOMENTS_FILE)
        load_weights(model, folder)
        try:
            restore_moments(model, optimizer, tensors)
        except KeyError as error:
            raise ValueError(f"{folder / MOMENTS_FILE} belongs to another model: it lacks {error}") from error
        return training

    def _compare(self, training: dict[str, Any], model: nn.Module, settings: TrainingSettings) -> None:
        """Say so where the rest will be computed otherwise than the beginning was."""
        changes = [
            f"{name} {training[name]} before, {now} now"
            for name, now in _computed_on(model).items()
            if training.get(name, now) != now
        ]
        if changes and training["state"]["step"] < settings.n_steps:
            self._report(f"{'; '.join(changes)}: the last bits may differ from those of a run in one piece")


def _computed_on(model: nn.Module) -> dict[str, Any]:
    """What, beside plan and data, decides the last bits of a result."""
    return {
        "device": next(model.parameters()).device.type,
        "processes": Processes.current().n,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }


def _put_aside(folder: Path) -> None:
    aside = folder.with_name(f"other-{folder.name}")
    while aside.exists():
        aside = aside.with_name(f"other-{aside.name}")
    os.replace(folder, aside)
