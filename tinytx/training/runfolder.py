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
from torch import Tensor, nn

from tinytx.text import Tokenizer
from tinytx.training.checkpoints import STEP_PREFIX, load_weights, model_files, step_folders, step_of
from tinytx.training.files import (
    json_bytes,
    read_json,
    read_tensors,
    remove_folder,
    write_file,
    write_folder,
)
from tinytx.training.plans import PLAN_FILE
from tinytx.training.settings import TrainingSettings

STATE_FILE, MOMENTS_FILE = "training.json", "training.safetensors"
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
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        plan: dict[str, Any],
        tokenizer: Tokenizer | None = None,
        report: Callable[[str], None] = print,
    ) -> None:
        self.path = Path(path)
        self.plan = plan
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
        """A run folder that is gone again if training fails before its first checkpoint; None for no path."""
        if path is None:
            yield None
            return
        run = cls(path, plan, tokenizer, report)
        run.start()
        try:
            yield run
        except BaseException:
            run.discard_if_fresh()
            raise

    def start(self) -> None:
        """Write the plan, unless it is there, and clear away what an interrupted write left."""
        if not (self.path / PLAN_FILE).is_file():
            write_file(self.path / PLAN_FILE, json_bytes(self.plan))
        for leftover in self.path.glob(f".{STEP_PREFIX}*"):
            shutil.rmtree(leftover, ignore_errors=True)

    def discard_if_fresh(self) -> None:
        """Remove a folder that got no further than its plan."""
        if self.newest() is None and {path.name for path in self.path.glob("*")} <= {PLAN_FILE}:
            shutil.rmtree(self.path, ignore_errors=True)

    def newest(self) -> Path | None:
        """The latest checkpoint, or None."""
        steps = step_folders(self.path)
        return steps[-1] if steps else None

    def save(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        settings: TrainingSettings,
        state: dict[str, Any],
    ) -> None:
        """Write a checkpoint and remove those that are no longer needed."""
        training = {
            "settings": settings.to_dict(),
            "state": state,
            "threads": torch.get_num_threads(),
            "torch": torch.__version__,
        }
        files = model_files(model, self._tokenizer)
        files[STATE_FILE] = json_bytes(training)
        files[MOMENTS_FILE] = safetensors_bytes(_moments(model, optimizer))
        write_folder(self.path / f"{STEP_PREFIX}{state['step']:06d}", files)
        self._prune(settings)

    def _prune(self, settings: TrainingSettings) -> None:
        folders = step_folders(self.path)
        # Those written by hand (Ctrl-C) go first, so that an interrupted run ends with the same folders.
        scheduled = [folder for folder in folders if settings.is_scheduled(step_of(folder))]
        kept = {folders[-1], *scheduled[-KEPT:]}
        for folder in folders:
            if folder not in kept:
                remove_folder(folder)

    def restore(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, settings: TrainingSettings
    ) -> dict[str, Any] | None:
        """Bring model, optimizer and random state back to the newest checkpoint that can be read.

        Returns
        -------
        dict or None
            The state that was saved with it; None where no checkpoint has been written yet.
        """
        folders = step_folders(self.path)
        for folder in reversed(folders):
            try:
                return self._restore_from(folder, model, optimizer, settings)
            except ValueError as error:
                if folder == folders[0]:
                    raise
                self._report(f"{error}; going on from the checkpoint before it")
        return None

    def _restore_from(
        self, folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer, settings: TrainingSettings
    ) -> dict[str, Any]:
        training = read_json(folder / STATE_FILE)
        if training.get("settings") != settings.to_dict():
            raise ValueError(
                f"{folder / STATE_FILE} was written with other settings: it cannot be gone on with"
            )
        tensors = read_tensors(folder / MOMENTS_FILE)
        load_weights(model, folder)
        try:
            _restore_moments(model, optimizer, tensors)
        except KeyError as error:
            raise ValueError(f"{folder / MOMENTS_FILE} belongs to another model: it lacks {error}") from error
        return training["state"]


def _moments(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """What the optimizer remembers of each weight, and the random states, by name."""
    tensors = {"random/cpu": torch.get_rng_state()}
    for name, parameter in model.named_parameters():
        for key, value in optimizer.state[parameter].items():
            tensors[f"optimizer/{key}/{name}"] = value.detach().cpu().contiguous()
        if parameter.device.type == "cuda":
            tensors["random/cuda"] = torch.cuda.get_rng_state(parameter.device)
    return tensors


def _restore_moments(model: nn.Module, optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    by_name: dict[str, dict[str, Tensor]] = {}
    for path, tensor in tensors.items():
        kind, _, rest = path.partition("/")
        if kind == "optimizer":
            key, _, name = rest.partition("/")
            by_name.setdefault(name, {})[key] = tensor
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        optimizer.state[parameter] = {
            key: tensor.to(parameter.device) for key, tensor in by_name[name].items()
        }
        if parameter.device.type == "cuda" and "random/cuda" in tensors:
            torch.cuda.set_rng_state(tensors["random/cuda"], parameter.device)
    torch.set_rng_state(tensors["random/cpu"])
