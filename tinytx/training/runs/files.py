"""Reading and writing files so that nothing is ever half written, and nothing foreign is ever opened."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as parse_safetensors
from torch import Tensor

LEFTOVERS = (".part", ".old", ".gone")  # endings of the names aside that the functions below write under


def read_json(file: Path) -> dict[str, Any]:
    """A JSON object from a file; a missing, cut or foreign file is refused by name."""
    if not file.is_file():
        raise ValueError(f"{file} is missing")
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} is cut short or no JSON: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{file} must hold a JSON object, got {type(content).__name__}")
    return content


def read_tensors(file: Path) -> dict[str, Tensor]:
    """Tensors from a safetensors file; a missing, cut or foreign file is refused by name."""
    if not file.is_file():
        raise ValueError(f"{file} is missing")
    content = file.read_bytes()
    try:
        tensors = parse_safetensors(content)
    except (SafetensorError, ValueError, KeyError) as error:
        if is_pickle(content):
            raise ValueError(f"{file} is a pickle, which could run any code: it is not opened") from error
        raise ValueError(f"{file} is cut short or no safetensors file: {error}") from error
    # A copy of their own gives the tensors the alignment that torch would have given them.
    return {name: tensor.clone() for name, tensor in tensors.items()}


def is_pickle(content: bytes) -> bool:
    """Whether bytes look like a pickle, bare or in the zip archive that ``torch.save`` writes."""
    if content[8:9] == b"{":  # safetensors, which begins with a length that may look like a pickle
        return False
    return content[:2] == b"PK" or (
        content[:1] == b"\x80" and content[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05")
    )


def is_empty_folder(path: Path) -> bool:
    """Whether a folder holds nothing, or nothing but what an interrupted write left."""
    return path.is_dir() and all(map(is_leftover, path.iterdir()))


def is_leftover(path: Path) -> bool:
    """Whether a path is what an interrupted write left: a hidden name that nothing ever reads."""
    return path.name.startswith(".") and path.name.endswith(LEFTOVERS)


def clear_leftovers(folder: Path) -> None:
    """Remove what interrupted writes left in a folder."""
    for path in filter(is_leftover, folder.iterdir()):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def json_bytes(content: Mapping[str, Any]) -> bytes:
    """A mapping as readable JSON; equal content gives equal bytes."""
    return (json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def as_json(content: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping as it comes back from a JSON file, tuples as lists."""
    return json.loads(json_bytes(content))


def make_folder(path: Path) -> None:
    """Make a folder and those above it, so that a power cut leaves them there."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        _sync_folder(path.parent)


def write_folder(target: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder that appears, or changes, in one step or not at all."""
    make_folder(target.parent)
    aside = target.parent / f".{target.name}.part"
    old = target.parent / f".{target.name}.old"
    if old.exists() and not target.exists():  # stopped between the two renames below
        os.replace(old, target)
    for leftover in (aside, old):
        shutil.rmtree(leftover, ignore_errors=True)
    try:
        aside.mkdir()
        for name, content in files.items():
            _write_through(aside / name, content)
        _sync_folder(aside)
        if target.exists():
            os.replace(target, old)
        os.replace(aside, target)
        _sync_folder(target.parent)
    finally:
        if old.exists() and not target.exists():
            os.replace(old, target)
        for leftover in (aside, old):
            shutil.rmtree(leftover, ignore_errors=True)


def write_file(target: Path, content: bytes) -> None:
    """Write a file that appears, or changes, in one step or not at all."""
    make_folder(target.parent)
    aside = target.with_name(f".{target.name}.part")
    try:
        _write_through(aside, content)
        os.replace(aside, target)
    finally:
        aside.unlink(missing_ok=True)
    _sync_folder(target.parent)


def remove_folder(target: Path) -> None:
    """Remove a folder that nobody may find half removed."""
    gone = target.parent / f".{target.name}.gone"
    shutil.rmtree(gone, ignore_errors=True)
    os.replace(target, gone)
    _sync_folder(target.parent)
    shutil.rmtree(gone, ignore_errors=True)


def _write_through(file: Path, content: bytes) -> None:
    try:
        with file.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:  # a full disk does not say by itself which file it was
        raise OSError(error.errno, error.strerror, str(file)) from error


def _sync_folder(folder: Path) -> None:
    # A rename survives a power cut only once its folder is on disk; Windows has no such call.
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
