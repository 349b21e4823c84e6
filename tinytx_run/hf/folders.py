"""Folders of `transformers`, and published models by their names."""

from __future__ import annotations

import contextlib
import os
import re
import urllib.error
import urllib.request
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from tinytx.settings import require
from tinytx_run.files import OLD, library, temporary

if TYPE_CHECKING:
    from transformers import PreTrainedModel

CONFIG_FILE, OUR_FILE = "config.json", "model.json"
NETWORK_SECONDS = 15
_NO_PICKLE = (
    "Older files of weights, *.bin, may run code and are not read: have transformers save safetensors"
)
# What errors of transformers mean whose first line does not say it.
_MEANT = {
    "Couldn't instantiate the backend tokenizer": "files of its tokenizer are missing",
    "ignore_mismatched_sizes": f"its weights have other sizes than its {CONFIG_FILE} says",
}
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?")


def is_published(source: str | os.PathLike[str]) -> bool:
    """Whether this is a folder of `transformers`, or no path but the name of a published model.

    Examples
    --------
    >>> is_published("camembert-base"), is_published("Helsinki-NLP/opus-mt-en-fr")
    (True, True)
    >>> is_published("/no/such/folder"), is_published("./camembert-base")
    (False, False)
    """
    path = Path(source)
    if path.is_dir():
        return (path / CONFIG_FILE).is_file() and not (path / OUR_FILE).is_file()
    is_name = isinstance(source, str) and _NAME.fullmatch(source)
    if path.exists() or temporary(path, OLD).is_dir() or not is_name:
        return False
    return len(path.parts) == 1 or not path.parent.is_dir()  # else it is a path with a slip in it


def load_published(source: str | os.PathLike[str], classes: Mapping[str, tuple[str, ...]]) -> PreTrainedModel:
    """Load a folder of `transformers`, or fetch a published model by its name.

    Of the classes that are possible, by ``model_type``, it is the first unless the folder names another.
    """
    config = read(source, "AutoConfig")
    got = f"the model_type {config.model_type!r}"
    require(config.model_type in classes, f"{source} must hold one of {', '.join(classes)}", got)
    known, stated = classes[config.model_type], getattr(config, "architectures", None) or ["none"]
    kind = stated[0] if stated[0] in known else known[0]
    model, found = read(source, kind, output_loading_info=True)
    if found["missing_keys"]:
        example = sorted(found["missing_keys"])[0]
        raise ValueError(
            f"{source} must hold all weights of a {kind}, got {stated[0]}, which lacks "
            f"{len(found['missing_keys'])} of them, such as {example}"
        )
    if stated[0] not in known and found["unexpected_keys"]:
        example = sorted(found["unexpected_keys"])[0]
        raise ValueError(f"{source} must hold a {kind}, got {stated[0]}, which has other weights: {example}")
    return model if model.dtype == torch.float64 else model.float()


def read(source: str | os.PathLike[str], kind: str, **how: Any) -> Any:
    """Call ``from_pretrained`` of a class of `transformers`, without a network if it was fetched before.

    Code that comes with a model is never run, and of weights only safetensors are read, no pickle.
    """
    rule = "model must be a model, a folder of transformers or a name"
    require(is_published(source), rule, f"{os.fspath(source)!r}, which holds no {CONFIG_FILE}")
    is_folder = os.path.isdir(source)
    what = f"reading {source}" if is_folder else f"{source} is no folder here, and fetching it by name"
    transformers, source = library("transformers", what), source if is_folder else Path(source).as_posix()
    load = getattr(transformers, kind).from_pretrained
    how["trust_remote_code"] = False
    if kind not in ("AutoConfig", "AutoTokenizer"):
        how["use_safetensors"] = True
    with _quiet(transformers, bars=not is_folder):
        try:
            return load(source, local_files_only=True, **how)
        except Exception as error:  # damaged files make it raise many kinds
            if is_folder or not isinstance(error, OSError):
                raise ValueError(f"{source} cannot be read: {_first_line(error)}") from error
        _check_network(source)
        try:
            return load(source, **how)
        except Exception as error:
            raise ValueError(
                f"{source} is no folder here, and no model of that name could be fetched: give the folder of "
                f"a checkpoint, or a published name such as camembert-base ({_first_line(error)})"
            ) from error


def _first_line(error: Exception) -> str:
    line = str(error).strip().partition("\n")[0]
    line = next((words for part, words in _MEANT.items() if part in line), line)
    return f"{line} {_NO_PICKLE}" if "no file named model.safetensors" in line else line


def _check_network(source: str | os.PathLike[str]) -> None:
    """Ask once, as `transformers` would ask six times, for half a minute, with a message each time."""
    from huggingface_hub.constants import ENDPOINT, HF_HUB_OFFLINE

    try:
        if HF_HUB_OFFLINE:
            raise OSError("the environment says HF_HUB_OFFLINE")
        with contextlib.suppress(urllib.error.HTTPError):  # any answer is an answer
            urllib.request.urlopen(urllib.request.Request(ENDPOINT, method="HEAD"), timeout=NETWORK_SECONDS)
    except OSError as error:
        raise ValueError(
            f"{source} is no folder here and could not be fetched, since the network cannot be reached "
            f"({error}): go online once, or copy its folder here and give the path"
        ) from error


def save_published(model: PreTrainedModel, folder: str | os.PathLike[str]) -> None:
    """Write ``config.json`` and safetensors into a new or empty folder."""
    target = Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ValueError(f"a model goes into a new or empty folder, got {target}, which holds other files")
    with _quiet(library("transformers", f"writing {folder}")):
        model.save_pretrained(target)


@contextlib.contextmanager
def _quiet(transformers: Any, *, bars: bool = False) -> Iterator[None]:
    """Hide hints and, unless asked for, progress bars of `transformers`."""
    logging = transformers.utils.logging
    verbosity, had_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    if not bars:
        logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(verbosity)
        if had_bars:
            logging.enable_progress_bar()
