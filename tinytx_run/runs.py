"""Checkpoints of a training run, and how it is resumed.

A run folder holds one checkpoint every few hundred steps, ``step-000500`` and so on. Each has everything that
resuming needs: weights, the optimizer's moments, the random state, and what was asked for.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save as safetensors_bytes
from torch import Tensor, nn
from torch.optim import Optimizer

from tinytx.history import History, State
from tinytx.settings import TrainingSettings
from tinytx.tokenizer import Tokenizer
from tinytx_run.checkpoint import (
    MOMENTS_FILE,
    STATE_FILE,
    STEP_PREFIX,
    WEIGHTS_FILE,
    fill,
    holds_only_checkpoint,
    model_files,
    read_description,
    step_folders,
    step_of,
)
from tinytx_run.distributed import Processes
from tinytx_run.files import (
    CHECKSUM_FILE,
    LOCK_FILE,
    NEW,
    OLD,
    is_writable,
    json_bytes,
    locked,
    make_folder,
    read_file,
    read_json,
    read_tensors,
    write_folder,
)
from tinytx_run.recipes import Recipe
from tinytx_run.splits import TextHashes

# What is compared first, as other differences follow from it, and what it is called.
FIRST = {"objective": "objective", "corpus": "corpus", "start": "the fingerprint of the weights of start"}
N_CHECKPOINTS = 2  # of a run; older ones are removed


def find_run(out: str | os.PathLike[str] | None, resume: bool) -> Path | None:
    """The newest complete checkpoint of the run in a folder; None where a run may begin afresh.

    Raises ValueError when the folder holds a run and ``resume`` is False, holds other files, or no checkpoint
    is complete. A warning names each damaged checkpoint that is passed over.
    """
    if out is None and resume:
        raise ValueError("resume needs out, the folder of the run, got None")
    if out is None:
        return None
    folder = Path(out)
    for path in (folder, *folder.parents):
        if (path.exists() or path.is_symlink()) and not path.is_dir():
            kind = "file" if path.exists() else "link to nothing"
            raise ValueError(f"a run goes into a folder, got the {kind} {path}")
    if not folder.exists() or all(map(_is_temporary, folder.iterdir())):
        return None
    if not step_folders(folder):
        raise ValueError(f"a run goes into a new or empty folder, got {folder}, which holds other files")
    if not resume:
        raise ValueError(f"{folder} already holds a run: resume it with --resume, or choose another folder")
    return newest_complete(folder)


def _is_temporary(path: Path) -> bool:
    return path.name == LOCK_FILE or path.name.startswith(".") and path.name.endswith((NEW, OLD))


def newest_complete(folder: Path) -> Path | None:
    """The newest checkpoint of a run whose files all have their checksums; None where there is none at all.

    Raises ValueError when there are checkpoints, but each is damaged; it names every cause.
    """
    causes: list[str] = []
    for step in reversed(step_folders(folder)):
        try:
            read_training(step)
        except ValueError as error:
            causes.append(str(error))
            continue
        for cause in causes:
            warnings.warn(f"{cause}; {step.name}, the checkpoint before it, is used", stacklevel=1)
        return step
    if causes:
        raise ValueError(f"{'; '.join(causes)}; there is no complete checkpoint in {folder}")
    return None


def read_training(checkpoint: Path) -> dict[str, Any]:
    """Plan, settings and loop state of a run's checkpoint; ValueError names a damaged file."""
    for name in read_json(checkpoint / CHECKSUM_FILE):
        read_file(checkpoint / name)
    training = read_json(checkpoint / STATE_FILE)
    try:
        state, _ = State(**training["state"]), History(**training["state"]["history"])
        TrainingSettings(**training["settings"])
        if "recipe" in training["plan"]:
            Recipe.from_dict(training["plan"]["recipe"])
    except (KeyError, TypeError) as error:
        rule = "must be of a run of this version of tinytx"
        raise ValueError(f"{checkpoint / STATE_FILE} {rule}, got another: {error}") from error
    if state.step != step_of(checkpoint):
        raise ValueError(f"{checkpoint} was written after step {state.step}")
    return training


def check_request(stored: Mapping[str, Any], request: Mapping[str, Any]) -> None:
    """Raise ValueError if a request differs from the one stored with the checkpoint; names the difference."""
    before, now = (_flat(json.loads(json_bytes(fields))) for fields in (stored, request))
    for name in sorted(before.keys() | now.keys(), key=lambda name: (name not in FIRST, name)):
        if before.get(name) != now.get(name):
            asked = FIRST.get(name, name)
            raise ValueError(f"cannot resume: {asked} was {before.get(name)}, now {now.get(name)}")


def _flat(fields: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in fields.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return flat


@dataclass
class Checkpoints:
    """The checkpoints of one run, of which the newest two stay."""

    folder: Path
    plan: Mapping[str, Any]  # everything that was asked for and decided, written with every checkpoint
    tokenizer: Tokenizer | None = None  # written with every checkpoint
    class_names: Sequence[str] | None = None  # of a classifier
    learned: Sequence[TextHashes] = ()  # what it is trained on, and what its body was before
    start: Path | None = None  # a checkpoint of another run, continued under this plan and settings: a branch
    latest: Path | None = None  # last written, or resumed from

    @contextlib.contextmanager
    def opened(self) -> Iterator[Checkpoints]:
        """Hold the folder, which is made here, and removed again where training fails before it writes any.

        A finished run is only read, so its disk may be read-only. Raises ValueError while another process
        trains in it.
        """
        make_folder(self.folder)
        if not is_writable(self.folder) and (newest := newest_complete(self.folder)):
            training = read_training(newest)
            if training["state"]["step"] >= training["settings"]["n_steps"]:
                yield self
                return
        busy = f"one process at a time trains in a folder, got {self.folder}, where another one does"
        try:
            with locked(self.folder / LOCK_FILE, 0, busy):
                for leftover in filter(_is_temporary, list(self.folder.iterdir())):
                    if leftover.is_dir():
                        shutil.rmtree(leftover, ignore_errors=True)
                yield self
        finally:
            with contextlib.suppress(OSError):
                self.folder.rmdir()  # only if empty

    def save(
        self, model: nn.Module, optimizer: Optimizer, settings: TrainingSettings, state: Mapping[str, Any]
    ) -> None:
        """Write a checkpoint, then remove those that are no longer needed.

        Raises OSError when the disk is full, for instance, ValueError for a model that cannot be saved, and
        DivergenceError when a weight is no longer finite; it names the checkpoint that stays usable.
        """
        usable = "nothing was saved before" if self.latest is None else f"{self.latest} stays usable"
        try:
            files = model_files(model, self.tokenizer, self.class_names, self.learned)
        except ValueError as error:
            raise type(error)(f"{error}, so step {state['step']} was not saved ({usable})") from error
        training = {"plan": self.plan, "settings": settings.to_dict(), "state": state, **_machine(model)}
        files[STATE_FILE] = json_bytes(training)
        files[MOMENTS_FILE] = safetensors_bytes(_moments(model, optimizer))
        target = self.folder / f"{STEP_PREFIX}{state['step']:06d}"
        try:
            write_folder(target, files)
        except OSError as error:
            words = f"{error.strerror}, so step {state['step']} was not saved ({usable})"
            raise OSError(error.errno, words, error.filename) from error
        self.latest = target
        self._remove_older(settings, state["step"])

    def _remove_older(self, settings: TrainingSettings, step: int) -> None:
        folders = [folder for folder in step_folders(self.folder) if step_of(folder) <= step]
        # Those written on Ctrl-C are removed first, so that an interrupted run ends with the same folders.
        scheduled = [folder for folder in folders if settings.is_scheduled(step_of(folder))]
        for folder in folders:
            wanted = folder == folders[-1] or folder in scheduled[-N_CHECKPOINTS:]
            if not wanted and holds_only_checkpoint(folder):
                shutil.rmtree(folder, ignore_errors=True)

    def restore(
        self, model: nn.Module, optimizer: Optimizer, settings: TrainingSettings
    ) -> dict[str, Any] | None:
        """Bring model, optimizer and random state back to the newest complete checkpoint.

        Gives the state of the loop; None where no checkpoint has been written yet. Raises ValueError when no
        checkpoint is complete, or the run had another plan or other settings.
        """
        own = newest_complete(self.folder)
        if (folder := own or self.start) is None:
            return None
        training = read_training(folder)
        if own:
            check_request(training["plan"], self.plan)
            check_request(training["settings"], settings.to_dict())
        weights = read_tensors(folder / WEIGHTS_FILE)
        fill(model, weights, read_description(folder), folder / WEIGHTS_FILE)
        _restore_moments(model, optimizer, read_tensors(folder / MOMENTS_FILE))
        self.latest = folder
        self._remove_older(settings, step_of(folder))
        if training["state"]["step"] < settings.n_steps:
            pairs = {name: (training[name], value) for name, value in _machine(model).items()}
            changed = [f"{name} {old} before, {new} now" for name, (old, new) in pairs.items() if old != new]
            if changed:
                words = "last bits and dropout may differ from an uninterrupted run"
                warnings.warn(f"{'; '.join(changed)}: {words}", stacklevel=1)
        return training["state"]


def _machine(model: nn.Module) -> dict[str, Any]:
    """What decides the last bits of a result, apart from plan and data."""
    return {
        "device": next(model.parameters()).device.type,
        "processes": Processes.current().n,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }


def _moments(model: nn.Module, optimizer: Optimizer) -> dict[str, Tensor]:
    """The optimizer's moments of each parameter, and the random states, by name."""
    tensors = {"random/cpu": torch.get_rng_state()}
    for name, parameter in model.named_parameters():
        for key, value in optimizer.state[parameter].items():
            tensors[f"optimizer/{key}/{name}"] = value.detach().cpu().contiguous()
    device = next(model.parameters()).device
    if device.type == "cuda":
        tensors["random/cuda"] = torch.cuda.get_rng_state(device)
    return tensors


def _restore_moments(model: nn.Module, optimizer: Optimizer, tensors: Mapping[str, Tensor]) -> None:
    parameters = dict(model.named_parameters())
    for path, tensor in tensors.items():
        kind, key, name = (path.split("/", 2) + [""])[:3]
        if kind == "optimizer":
            optimizer.state[parameters[name]][key] = tensor.to(parameters[name].device)
    device = next(model.parameters()).device
    if device.type == "cuda" and "random/cuda" in tensors:
        torch.cuda.set_rng_state(tensors["random/cuda"], device)
    torch.set_rng_state(tensors["random/cpu"])
