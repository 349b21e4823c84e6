"""Models of the `transformers` package on disk, or by the name under which they are published."""

from __future__ import annotations

import contextlib
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

CONFIG_FILE, OUR_FILE = "config.json", "model.json"
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?")


def is_published(source: str | os.PathLike[str]) -> bool:
    """Whether a path is a folder of `transformers`, or no path but a possible name of a published model.

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
    if path.exists() or _NAME.fullmatch(os.fspath(source)) is None:
        return False
    # What would stand in a folder that exists is a path with a slip in it.
    return len(path.parts) == 1 or not path.parent.is_dir()


def load_published(source: str | os.PathLike[str], classes: Mapping[str, tuple[str, ...]]) -> PreTrainedModel:
    """Load a folder of `transformers`, or fetch a published model by its name.

    Parameters
    ----------
    source : path or str
    classes : mapping
        By ``model_type``, the classes that it may be; the first where the folder does not say.

    Raises
    ------
    TypeError
        If it is another kind of model.
    ValueError
        If it cannot be found, fetched or read, or a weight is missing. The message is one line and says what
        to do.
    """
    with reading(source) as transformers:
        config = config_of(source)
        if config.model_type not in classes:
            raise TypeError(
                f"{source} must hold one of {', '.join(classes)}, got the model_type {config.model_type!r}"
            )
        known, stated = classes[config.model_type], getattr(config, "architectures", None) or ["none"]
        kind = stated[0] if stated[0] in known else known[0]
        model, found = getattr(transformers, kind).from_pretrained(
            source, local_files_only=os.path.isdir(source), output_loading_info=True
        )
    if found["missing_keys"]:
        example = sorted(found["missing_keys"])[0]
        raise ValueError(
            f"{source} must hold all weights of a {kind}, got {stated[0]}, which lacks "
            f"{len(found['missing_keys'])} of them, such as {example}"
        )
    return model if model.dtype == torch.float64 else model.float()


def config_of(source: str | os.PathLike[str]) -> PretrainedConfig:
    """The configuration in a folder of `transformers`, or of a published model; see `load_published`."""
    with reading(source) as transformers:
        return transformers.AutoConfig.from_pretrained(source, local_files_only=os.path.isdir(source))


def save_published(model: PreTrainedModel, folder: str | os.PathLike[str]) -> None:
    """Write ``config.json`` and safetensors into a new or empty folder."""
    target = Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ValueError(f"a model goes into a new or empty folder, got {target}, which holds other files")
    with _quiet(_transformers(folder)):
        model.save_pretrained(target)


@contextlib.contextmanager
def reading(source: str | os.PathLike[str]) -> Iterator[Any]:
    """The package `transformers`, without its chatter; what it cannot read becomes one line."""
    if not is_published(source):
        raise ValueError(
            f"model must be a model, a folder of transformers or a name, got {os.fspath(source)!r}, "
            f"which holds no {CONFIG_FILE}"
        )
    transformers = _transformers(source)
    with _quiet(transformers, bars=not os.path.isdir(source)):  # who waits for the network may see it
        try:
            yield transformers
        except (OSError, RuntimeError) as error:
            raise ValueError(_complaint(source, error)) from error


def _complaint(source: str | os.PathLike[str], error: Exception) -> str:
    first = str(error).strip().partition("\n")[0]
    if os.path.isdir(source):
        return f"{source} cannot be read: {first}"
    if "onnect" in str(error) or "offline" in str(error).lower():
        return (
            f"{source} is no folder here and could not be fetched, since the network cannot be reached: "
            "go online once (it is kept for later), or copy its folder here and give the path"
        )
    return (
        f"{source} is no folder here, and no model of that name could be fetched: "
        f"give the folder of a checkpoint, or a published name such as camembert-base ({first})"
    )


def _transformers(source: str | os.PathLike[str]) -> Any:
    try:
        import transformers
    except ImportError as error:
        what = (
            "reading it" if os.path.isdir(source) else f"there is no such folder; fetching {source} by name"
        )
        raise ValueError(
            f"{source}: {what} needs the package transformers: pip install 'tinytx[parity]'"
        ) from error
    return transformers


@contextlib.contextmanager
def _quiet(transformers: Any, *, bars: bool = False) -> Iterator[None]:
    """No hints, and progress bars only where asked for, while somebody else's files are read."""
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
