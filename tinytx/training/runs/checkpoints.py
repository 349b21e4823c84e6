"""Models on disk: a folder of JSON and safetensors, written aside and renamed, never a pickle."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save as safetensors_bytes
from torch import nn

from tinytx.model import Classifier, LanguageModel, MaskedLanguageModel, TransformerConfig, Translator
from tinytx.model.interop import from_transformers, is_published
from tinytx.text import Tokenizer
from tinytx.text.pretrained_tokenizer import PretrainedTokenizer
from tinytx.training.published import published_tokenizer
from tinytx.training.runs.files import (
    is_empty_folder,
    is_pickle,
    json_bytes,
    read_json,
    read_tensors,
    write_folder,
)
from tinytx.training.runs.seals import check_seal, sealed

FORMAT = "tinytx checkpoint"
VERSION = 1
MODEL_FILE, WEIGHTS_FILE, TOKENIZER_FILE = "model.json", "model.safetensors", "tokenizer.model"
STATE_FILE, MOMENTS_FILE = "training.json", "training.safetensors"  # what only going on with a run needs
STEP_PREFIX = "step-"
_TOKENIZER_FILES: dict[type[Tokenizer], str] = {
    Tokenizer: TOKENIZER_FILE,
    PretrainedTokenizer: "tokenizer.zip",
}


def save(model: nn.Module, path: str | os.PathLike[str], tokenizer: Tokenizer | None = None) -> Path:
    """Write a model, and its tokenizer, as a checkpoint folder.

    The folder appears under its name only when every byte is on disk; a checkpoint that stood there
    before is replaced in the same way.

    Parameters
    ----------
    model : LanguageModel, MaskedLanguageModel, Classifier or Translator
    path : path
        The folder. It may be missing, empty, or a checkpoint.
    tokenizer : Tokenizer, optional
        Needed to read or write text with the model later.

    Returns
    -------
    Path
        The folder.
    """
    target = Path(path)
    if target.exists() and not (target / MODEL_FILE).is_file() and not is_empty_folder(target):
        raise ValueError(
            f"a checkpoint goes into a new or empty folder, got {target}, which holds other files"
        )
    write_folder(target, sealed(model_files(model, tokenizer)))
    return target


Model = LanguageModel | MaskedLanguageModel | Classifier | Translator


def load(path: str | os.PathLike[str], device: str | torch.device = "cpu") -> Model:
    """Read a model that `save` or a training run wrote.

    Parameters
    ----------
    path : path
        A checkpoint folder, a run folder, of which the newest checkpoint is taken, a folder of the package
        `transformers`, or the name of a published model, see `tinytx.model.interop.from_transformers`.
    device : str or torch.device

    Returns
    -------
    LanguageModel, MaskedLanguageModel, Classifier or Translator
        In evaluation mode.

    Raises
    ------
    ValueError
        When there is no checkpoint, a file is missing, cut short, changed since it was saved or a pickle, or
        the weights belong to another model; the message names the file and the cause.
    """
    if is_published(path):
        return from_transformers(path).to(device)
    folder = find_checkpoint(path)
    check_seal(folder, MODEL_FILE, WEIGHTS_FILE)
    model = _build(_read_description(folder), folder / MODEL_FILE)
    load_weights(model, folder)
    return model.to(device).eval()


def load_tokenizer(path: str | os.PathLike[str]) -> Tokenizer:
    """Read the tokenizer of what `load` reads."""
    if is_published(path):
        return published_tokenizer(path)
    folder = find_checkpoint(path)
    for kind, name in _TOKENIZER_FILES.items():
        if (folder / name).is_file():
            check_seal(folder, name)
            return kind.load(folder / name)
    raise ValueError(f"{folder / TOKENIZER_FILE} is missing: this checkpoint was saved without its tokenizer")


def find_checkpoint(path: str | os.PathLike[str]) -> Path:
    """The checkpoint folder that a path means: itself, or the newest one in a run folder."""
    folder = Path(path)
    if folder.is_file():
        raise ValueError(f"a checkpoint is a folder with {MODEL_FILE} in it, got {_what_is(folder)} {folder}")
    if not folder.exists():
        raise ValueError(f"a checkpoint folder must exist, got {folder}, which does not")
    if (folder / MODEL_FILE).is_file():
        return folder
    if steps := step_folders(folder):
        return steps[-1]
    raise ValueError(f"a checkpoint folder holds {MODEL_FILE}, got {folder}, which holds none")


def step_folders(folder: Path) -> list[Path]:
    """The checkpoints of a run folder, oldest first."""
    found = [path for path in folder.glob(f"{STEP_PREFIX}*") if path.name[len(STEP_PREFIX) :].isdigit()]
    return sorted(found, key=step_of)


def step_of(folder: Path) -> int:
    """The step that a checkpoint folder was written after."""
    return int(folder.name[len(STEP_PREFIX) :])


def model_files(model: nn.Module, tokenizer: Tokenizer | None) -> dict[str, bytes]:
    """The files of a checkpoint that hold model and tokenizer; equal models give equal bytes."""
    state = {name: tensor.detach().cpu() for name, tensor in model.state_dict().items()}
    # Tied weights are one tensor under two names: safetensors holds it once.
    first_name: dict[int, str] = {}
    tied = {}
    for name, tensor in model.state_dict().items():
        owner = first_name.setdefault(tensor.data_ptr(), name)
        if owner != name:
            tied[name] = owner
    weights = {name: tensor.contiguous() for name, tensor in state.items() if name not in tied}
    description = {"format": FORMAT, "version": VERSION, **_describe(model), "tied": tied}
    files = {MODEL_FILE: json_bytes(description), WEIGHTS_FILE: safetensors_bytes(weights)}
    if tokenizer is not None:
        files[_TOKENIZER_FILES[type(tokenizer)]] = tokenizer.to_bytes()
    return files


def load_weights(model: nn.Module, folder: Path) -> None:
    """Fill a model with the weights of a checkpoint; every name and shape must fit."""
    description = _read_description(folder)
    weights = read_tensors(folder / WEIGHTS_FILE)
    for name, owner in description.get("tied", {}).items():
        if owner in weights:
            weights[name] = weights[owner]
    wanted = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    given = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    for name in sorted(wanted.keys() | given.keys()):
        if wanted.get(name) != given.get(name):
            raise ValueError(
                f"{folder / WEIGHTS_FILE} holds the weights of another model: "
                f"{name} should be {_shape(wanted.get(name))}, got {_shape(given.get(name))}"
            )
    model.load_state_dict(weights)


def _shape(shape: tuple[int, ...] | None) -> str:
    return "absent" if shape is None else f"of shape {shape}"


def _describe(model: nn.Module) -> dict[str, Any]:
    if isinstance(model, LanguageModel):
        return {"kind": "language_model", "config": model.config.to_dict()}
    if isinstance(model, MaskedLanguageModel):
        return {
            "kind": "masked_language_model",
            "config": model.config.to_dict(),
            "transform": model.transform,
            "next_sentence": model.next_head is not None,
        }
    if isinstance(model, Classifier):
        return {
            "kind": "classifier",
            "config": model.config.to_dict(),
            "n_classes": model.head.out_features,
            "pooling": model.pooling,
            "dropout": model.dropout.p,
        }
    if isinstance(model, Translator):
        return {"kind": "translator", "config": model.config.to_dict()}
    kinds = "a LanguageModel, a MaskedLanguageModel, a Classifier or a Translator"
    raise TypeError(f"a checkpoint holds {kinds}, got {type(model).__name__}")


def _build(description: Mapping[str, Any], file: Path) -> Model:
    try:
        config = TransformerConfig.from_dict(dict(description["config"]))
        if description["kind"] == "language_model":
            return LanguageModel(config)
        if description["kind"] == "masked_language_model":
            return MaskedLanguageModel(
                config, transform=description["transform"], next_sentence=description["next_sentence"]
            )
        if description["kind"] == "translator":
            return Translator(config)
        if description["kind"] == "classifier":
            return Classifier(
                config,
                n_classes=description["n_classes"],
                pooling=description["pooling"],
                dropout=description["dropout"],
            )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{file} does not describe a model: {error}") from error
    raise ValueError(f"{file} describes a model of unknown kind, got {description['kind']!r}")


def _read_description(folder: Path) -> dict[str, Any]:
    description = read_json(folder / MODEL_FILE)
    if description.get("format") != FORMAT or "kind" not in description:
        raise ValueError(f"{folder / MODEL_FILE} is no description of a tinytx model")
    if description.get("version") != VERSION:
        raise ValueError(
            f"{folder / MODEL_FILE} has version {description.get('version')}, expected {VERSION}"
        )
    return description


def _what_is(file: Path) -> str:
    with file.open("rb") as stream:
        return "a pickle:" if is_pickle(stream.read(4)) else "the file"
