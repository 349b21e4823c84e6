"""Checkpoints: models on disk, as JSON and safetensors, never a pickle.

A checkpoint is one folder, written atomically. Its files:

model.json             what kind of model, its configuration, and the names of the classes of a classifier
model.safetensors      its weights
tokenizer.model        its tokenizer (tokenizer.zip: that of a published model)
texts.json             short hashes of the texts that it has learned
training.json          of a run only: what was asked for, and the state of the loop
training.safetensors   of a run only: the optimizer's moments and the random state
checksums.json         size and SHA-256 of each of these

A model without a tokenizer also fits into one safetensors file, with what model.json says in its metadata:
this is what the page that trains writes and reads.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save as safetensors_bytes
from torch import Tensor, nn

from tinytx.classifier import Classifier
from tinytx.config import TransformerConfig
from tinytx.encoder_decoder import Translator
from tinytx.generate import check_vocabulary
from tinytx.history import DivergenceError
from tinytx.lora import LoRALinear
from tinytx.masked_lm import MaskedLanguageModel
from tinytx.settings import choose_device
from tinytx.tokenizer import Tokenizer
from tinytx.transformer import LanguageModel
from tinytx_run.classify import check_names
from tinytx_run.files import (
    CHECKSUM_FILE,
    LOCK_FILE,
    OLD,
    json_bytes,
    locked,
    make_folder,
    parse_json,
    read_file,
    read_json,
    read_tensors,
    temporary,
    write_file,
    write_folder,
)
from tinytx_run.hf.folders import is_published
from tinytx_run.splits import TextHashes

FORMAT, VERSION = "tinytx checkpoint", 1
MODEL_FILE, WEIGHTS_FILE = "model.json", "model.safetensors"
STATE_FILE, MOMENTS_FILE = "training.json", "training.safetensors"
TOKENIZER_FILE, PRETRAINED_TOKENIZER_FILE = "tokenizer.model", "tokenizer.zip"
TEXTS_FILE = "texts.json"
FILES = {
    *(MODEL_FILE, WEIGHTS_FILE, STATE_FILE, MOMENTS_FILE),
    *(TOKENIZER_FILE, PRETRAINED_TOKENIZER_FILE, TEXTS_FILE, CHECKSUM_FILE),
}
STEP_PREFIX = "step-"
ONE_FILE, METADATA = ".safetensors", "tinytx"  # how its name ends; the key of its metadata
LOOKS = 50  # at a folder that other processes replace meanwhile
LARGEST_TABLE = 2**26  # numbers in a table of positions that weights of fewer numbers may come with

Model = LanguageModel | MaskedLanguageModel | Classifier | Translator
# Each kind of model: its class, and where the other arguments of its constructor are read from a model.
KINDS: dict[str, tuple[type[Model], dict[str, Any]]] = {
    "language_model": (LanguageModel, {}),
    "translator": (Translator, {}),
    "masked_language_model": (
        MaskedLanguageModel,
        {"transform": attrgetter("transform"), "next_sentence": lambda model: model.next_head is not None},
    ),
    "classifier": (
        Classifier,
        {
            "n_classes": attrgetter("head.out_features"),
            "pooling": attrgetter("pooling"),
            "dropout": attrgetter("dropout.p"),
        },
    ),
}


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A model, and what it takes to read and to answer with it.

    Attributes
    ----------
    model : LanguageModel, MaskedLanguageModel, Classifier or Translator
        In evaluation mode.
    tokenizer : Tokenizer or None
        None where none was saved.
    class_names : tuple of str or None
        Of a classifier, in the order of its classes; None where none were saved.
    learned : tuple of TextHashes
        Of the texts (of a translator: of the sources) that it was trained on; then, one each, of those of
        earlier trainings that its body went through. Empty where they are not known.
    """

    model: Model
    tokenizer: Tokenizer | None = None
    class_names: tuple[str, ...] | None = None
    learned: tuple[TextHashes, ...] = ()

    def with_tokenizer(self) -> tuple[Model, Tokenizer]:
        """Model and tokenizer; ValueError where there is no tokenizer."""
        if self.tokenizer is None:
            kind = type(self.model).__name__
            raise ValueError(f"texts need the tokenizer of their model, got a {kind} alone")
        return self.model, self.tokenizer


def save(
    model: nn.Module,
    path: str | os.PathLike[str],
    tokenizer: Tokenizer | None = None,
    class_names: Sequence[str] | None = None,
    learned: Sequence[TextHashes] = (),
) -> Path:
    """Write a model, and its tokenizer, as a checkpoint folder; gives its path.

    Nothing foreign is deleted: a folder that holds other files raises ValueError, as does what cannot be
    saved, and stays as it is.

    Parameters
    ----------
    model : LanguageModel, MaskedLanguageModel, Classifier or Translator
    path : path
        The folder. It may be missing, empty, or a checkpoint, which is then replaced. A name that ends in
        ``.safetensors`` is that of one file, for the page that trains; it holds no tokenizer.
    tokenizer : Tokenizer, optional
        Needed to read or write text with the model later.
    class_names : sequence of str, optional
        Of a classifier, in the order of its classes.
    learned : sequence of TextHashes
        As a `Checkpoint` has them.

    Examples
    --------
    >>> import tempfile
    >>> from tinytx.config import PRESETS
    >>> path = Path(tempfile.mkdtemp()) / "new"
    >>> sorted(file.name for file in save(LanguageModel(PRESETS["tiny"]), path).iterdir())
    ['checksums.json', 'model.json', 'model.safetensors']
    """
    target = Path(path).resolve()  # a symbolic link stays one
    if target == Path.cwd():
        raise ValueError(f"a checkpoint replaces its folder, so it cannot be the current one, got {path}")
    if target.suffix == ONE_FILE and not target.is_dir():
        if tokenizer is not None or learned:
            raise ValueError(f"a tokenizer and what was learned need a folder, got the file {path}")
        description, weights = _description_and_weights(model, class_names)
        write_file(target, safetensors_bytes(weights, {METADATA: json_bytes(description).decode()}))
        return Path(path)
    files = model_files(model, tokenizer, class_names, learned)
    make_folder(target.parent)
    with locked(temporary(target, LOCK_FILE), 60, f"another process has been writing {target} for a minute"):
        if target.exists() and not (target.is_dir() and holds_only_checkpoint(target)):
            got = f"{path}, which {'holds other files' if target.is_dir() else 'is a file'}"
            raise ValueError(f"a checkpoint goes into a new or empty folder, got {got}")
        write_folder(target, files)
    return Path(path)


def load(path: str | os.PathLike[str], device: str | torch.device = "cpu") -> Checkpoint:
    """Read a model that `save` or a training run wrote, with its tokenizer and the names of its classes.

    Parameters
    ----------
    path : path
        A checkpoint folder, a run folder, of which the newest checkpoint is taken, one file that `save` or
        the page that trains wrote, a folder of the package `transformers`, or the name of a published model,
        see `tinytx_run.hf.convert.from_transformers`.
    device : str or torch.device
        Of the model, which comes in evaluation mode and torch's default dtype.

    Returns
    -------
    Checkpoint

    Examples
    --------
    >>> import tempfile
    >>> from tinytx.config import PRESETS
    >>> model = LanguageModel(PRESETS["tiny"])
    >>> again = load(save(model, Path(tempfile.mkdtemp()) / "new")).model
    >>> all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))
    True
    """
    choose_device(torch.device(device).type)
    target = Path(path).resolve()
    for _ in range(LOOKS):
        before = _folder_now(target)
        try:
            found = _load(path, device)
            if before == _folder_now(target):
                return found
        except ValueError:
            if before == _folder_now(target) and not temporary(target, LOCK_FILE).exists():
                raise
        time.sleep(0.1)  # another process is replacing it
    return _load(path, device)


def _folder_now(target: Path) -> int | None:
    """What tells a folder from the one that replaces it."""
    return target.stat().st_ino if target.exists() else None


def _load(path: str | os.PathLike[str], device: str | torch.device) -> Checkpoint:
    if is_published(path):
        from tinytx_run.hf.convert import from_transformers
        from tinytx_run.hf.tokenizer import published_tokenizer

        return Checkpoint(from_transformers(path).to(device), published_tokenizer(path))
    if Path(path).is_file():
        file = described = Path(path)
        weights, tokenizer, description = read_tensors(file), None, _read_metadata(file)
        learned: tuple[TextHashes, ...] = ()
    else:
        folder = find_checkpoint(path)
        file, described = folder / WEIGHTS_FILE, folder / MODEL_FILE
        description, weights, tokenizer = read_description(folder), read_tensors(file), tokenizer_in(folder)
        learned = _learned_in(folder)
    model, names = _build(description, weights, described)
    fill(model, weights, description, file)
    return Checkpoint(model.to(device).eval(), tokenizer, names, learned)


def tokenizer_in(folder: Path) -> Tokenizer | None:
    """The tokenizer of a checkpoint folder; None where none was written."""
    names = _names_in(folder)
    kind: type[Tokenizer] = Tokenizer
    file = folder / TOKENIZER_FILE
    if PRETRAINED_TOKENIZER_FILE in names:
        from tinytx_run.hf.tokenizer import PretrainedTokenizer

        kind, file = PretrainedTokenizer, folder / PRETRAINED_TOKENIZER_FILE
    elif TOKENIZER_FILE not in names:
        return None
    read_file(file)  # compares its checksum
    return kind.load(file)


def _names_in(folder: Path) -> set[str]:
    """Names of the files that are in a checkpoint folder, or should be."""
    sums = folder / CHECKSUM_FILE
    return {*(read_json(sums) if sums.exists() else ()), *(path.name for path in folder.iterdir())}


def _learned_in(folder: Path) -> tuple[TextHashes, ...]:
    """What a checkpoint folder says of the texts that its model has learned; empty where it says nothing."""
    if TEXTS_FILE not in _names_in(folder):
        return ()
    found, file = read_json(folder / TEXTS_FILE), folder / TEXTS_FILE
    try:
        return tuple(map(TextHashes.from_json, found["learned"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{file} must hold hashes of texts, got another content: {error}") from error


def find_checkpoint(path: str | os.PathLike[str]) -> Path:
    """The checkpoint folder that a path means: itself, or the newest one in a run folder."""
    folder = Path(path)
    if (folder / MODEL_FILE).is_file():
        return folder
    if steps := step_folders(folder):
        return steps[-1]
    if not folder.exists() and (old := temporary(folder, OLD)).is_dir():
        return old  # a save was killed between its two renames
    got = "a folder without one" if folder.is_dir() else "a file" if folder.exists() else "nothing there"
    raise ValueError(f"a checkpoint must be a folder with {MODEL_FILE} in it, got {got}: {folder}")


def step_folders(folder: Path) -> list[Path]:
    """The checkpoints of a run folder, oldest first."""
    found = [path for path in folder.glob(f"{STEP_PREFIX}*") if path.name[len(STEP_PREFIX) :].isdecimal()]
    return sorted(found, key=step_of)


def step_of(folder: Path) -> int:
    """The step that a checkpoint folder was written after."""
    return int(folder.name[len(STEP_PREFIX) :])


def holds_only_checkpoint(folder: Path) -> bool:
    """Whether a folder may be replaced or removed: it holds nothing foreign."""
    return {path.name for path in folder.iterdir()} <= FILES


def model_files(
    model: nn.Module,
    tokenizer: Tokenizer | None,
    class_names: Sequence[str] | None = None,
    learned: Sequence[TextHashes] = (),
) -> dict[str, bytes]:
    """The files that hold a model and what belongs to it; equal models give equal bytes."""
    description, weights = _description_and_weights(model, class_names)
    files = {MODEL_FILE: json_bytes(description), WEIGHTS_FILE: safetensors_bytes(weights)}
    if tokenizer is not None:
        check_vocabulary(model, tokenizer)
        name = TOKENIZER_FILE if type(tokenizer) is Tokenizer else PRETRAINED_TOKENIZER_FILE
        files[name] = tokenizer.to_bytes()
    if learned:
        files[TEXTS_FILE] = json_bytes({"learned": [texts.to_json() for texts in learned]})
    return files


def _description_and_weights(
    model: Any, class_names: Sequence[str] | None
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    kind = next((name for name, (maker, _) in KINDS.items() if isinstance(model, maker)), None)
    if kind is None:
        kinds = " or ".join(maker.__name__ for maker, _ in KINDS.values())
        raise TypeError(f"a checkpoint must hold a {kinds}, got a {type(model).__name__}")
    if any(isinstance(module, LoRALinear) for module in model.modules()):
        raise ValueError("model must be as built to be saved, got one with LoRALinear: call merge_lora first")
    tied = _tied(model)
    state = {name: weight.detach().cpu().contiguous() for name, weight in model.state_dict().items()}
    description: dict[str, Any] = {"format": FORMAT, "version": VERSION, "kind": kind, "tied": tied}
    description["config"] = model.config.to_dict()
    options = {name: read(model) for name, read in KINDS[kind][1].items()}
    with torch.device("meta"):
        _check_weights(KINDS[kind][0](model.config, **options), state, f"model, a {type(model).__name__},")
    weights = {name: weight for name, weight in state.items() if name not in tied}
    description |= options
    if class_names is not None:
        description["class_names"] = list(check_names(class_names, model))
    return description, weights


def _tied(model: nn.Module) -> dict[str, str]:
    """Second names of weights, which are not written, with the first names."""
    first: dict[int, str] = {}
    named = model.named_parameters(remove_duplicate=False)
    owners = {name: first.setdefault(id(weight), name) for name, weight in named}
    return {name: owner for name, owner in owners.items() if owner != name}


def read_description(folder: Path) -> dict[str, Any]:
    """What `model_files` wrote about a model; ValueError for anything else."""
    return _checked(read_json(folder / MODEL_FILE), folder / MODEL_FILE)


def _read_metadata(file: Path) -> dict[str, Any]:
    """The same of one file that holds a model."""
    with safe_open(file, "pt") as opened:
        metadata = opened.metadata() or {}
    description = _checked(parse_json(metadata.get(METADATA, "{}"), file), file)
    if off := [name for name, on in description.get("switches", {}).items() if not on]:
        got = f"one without {' and '.join(off)}"
        raise ValueError(f"{file} must hold a model that tinytx can build, got {got}")
    return description


def _checked(description: dict[str, Any], file: Path) -> dict[str, Any]:
    if description.get("format") != FORMAT or not isinstance(description.get("tied", {}), dict):
        hint = ": give its folder" if file.name == WEIGHTS_FILE else ""
        raise ValueError(f"{file} does not describe a tinytx model{hint}")
    if description.get("version") != VERSION:
        raise ValueError(f"{file} must have version {VERSION}, got {description.get('version')}")
    return description


def _build(
    description: Mapping[str, Any], weights: Mapping[str, Tensor], file: Path
) -> tuple[Model, tuple[str, ...] | None]:
    try:
        maker, options = KINDS[description["kind"]]
        config = TransformerConfig.from_dict(dict(description["config"]))
        _check_size(config, weights)
        model = maker(config, **{name: description[name] for name in options})
        names = description.get("class_names")
        return model, None if names is None else check_names(names, model)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{file} does not describe a model: {error}") from error


def _check_size(config: TransformerConfig, weights: Mapping[str, Tensor]) -> None:
    """Refuse a model larger than its weights, before memory is asked for."""
    sizes = {size for tensor in weights.values() for size in tensor.shape}
    for name in ("vocab_size", "d_model"):
        if getattr(config, name) not in sizes:
            raise ValueError(f"no tensor of {WEIGHTS_FILE} has the size {name}={getattr(config, name):,}")
    if config.n_layers > len(weights):
        raise ValueError(f"{WEIGHTS_FILE} holds {len(weights)} tensors, got n_layers={config.n_layers:,}")
    n_numbers = sum(tensor.numel() for tensor in weights.values())
    if config.max_len * config.d_model > max(n_numbers, LARGEST_TABLE):
        raise ValueError(f"max_len is out of proportion to {WEIGHTS_FILE}, got {config.max_len:,}")


def fill(model: nn.Module, weights: dict[str, Tensor], description: Mapping[str, Any], file: Path) -> None:
    """Fill a model with weights; every name and shape must fit, every number be real and finite."""
    for name, owner in description.get("tied", {}).items():
        if owner in weights:
            weights[name] = weights[owner]
    _check_weights(model, weights, str(file))
    model.load_state_dict(weights)


def _check_weights(model: nn.Module, weights: Mapping[str, Tensor], where: str) -> None:
    """Raise ValueError unless a model as it is built can hold these weights, and all are finite."""
    other = f"{where} has the weights of another model"
    wanted = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    given = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    for name in sorted(wanted.keys() | given.keys()):
        if wanted.get(name) != given.get(name):
            expected, got = (shapes.get(name, "absent") for shapes in (wanted, given))
            raise ValueError(f"{other}: {name} must be {expected}, got {got}")
        if not (weights[name].is_floating_point() and weights[name].isfinite().all()):
            got = f"{name} of {weights[name].dtype}, not all of them finite"
            raise DivergenceError(f"{where} must hold finite real numbers, got {got}")
    for name, owner in _tied(model).items():
        if not torch.equal(weights[name], weights[owner]):
            got = f"{name} must equal {owner}, of which it is a second name, got other numbers"
            raise ValueError(f"{other}: {got}")
