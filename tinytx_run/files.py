"""Files written atomically, and read with their checksums; packages that may be absent.

An atomic write puts all content under a temporary name, flushes it to the disk (fsync) and renames it. A
process may be killed at any moment: what has its final name is complete.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import filelock
import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

CHECKSUM_FILE = "checksums.json"  # size and SHA-256 of each other file of a folder
LOCK_FILE = ".tinytx-lock"
NEW, OLD = ".tinytx-new", ".tinytx-old"  # endings of temporary names


def json_bytes(content: Mapping[str, Any]) -> bytes:
    """A mapping as readable JSON; equal content gives equal bytes."""
    written = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False, default=np.generic.item)
    return (written + "\n").encode()


def library(name: str, what: str) -> Any:
    """A package that not every installation has; ValueError says that `what` needs it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        message = f"{what} needs the package {name}, which is not installed: pip install {name}"
        raise ValueError(message) from error


def write_file(target: Path, content: bytes) -> None:
    """Write a file that appears, or changes, in one step or not at all."""
    make_folder(target.parent)
    new = temporary(target, NEW)
    try:
        _write_through(new, content)
        os.replace(new, target)
    finally:
        new.unlink(missing_ok=True)
    _sync_folder(target.parent)


def write_folder(target: Path, files: Mapping[str, bytes]) -> None:
    """Write files and their checksums into a folder that appears, or changes, in one step or not at all.

    The caller holds the lock, so that no other process uses the temporary names.
    """
    make_folder(target.parent)
    new, old = temporary(target, NEW), temporary(target, OLD)
    _settle(target)
    try:
        checksums = {name: _checksum(content) for name, content in files.items()}
        new.mkdir()
        for name, content in {**files, CHECKSUM_FILE: json_bytes(checksums)}.items():
            _write_through(new / name, content)
        _sync_folder(new)
        if target.exists():
            os.replace(target, old)
        os.replace(new, target)
        _sync_folder(target.parent)
    finally:
        _settle(target)


def _settle(target: Path) -> None:
    """Bring a folder back whose writer ended between the two renames, and remove what writers leave."""
    new, old = temporary(target, NEW), temporary(target, OLD)
    if old.exists() and not target.exists():
        os.replace(old, target)
    for leftover in (new, old):
        shutil.rmtree(leftover, ignore_errors=True)


def temporary(target: Path, ending: str) -> Path:
    """The hidden name next to a file or folder, by which others know that it is not complete."""
    return target.with_name(f".{target.name}{ending}")


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, whose names are on the disk before it is used."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        _sync_folder(path.parent)


def is_writable(folder: Path) -> bool:
    """Whether a file can be written into a folder; found by trying, as rights alone do not tell."""
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


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


@contextlib.contextmanager
def locked(file: Path, seconds: float, busy: str) -> Iterator[None]:
    """Hold a lock file; ValueError with the words ``busy`` when another process holds it for longer."""
    lock = filelock.FileLock(file)
    try:
        lock.acquire(timeout=seconds)
    except filelock.Timeout as error:
        raise ValueError(busy) from error
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # Windows removes no open file
            file.unlink()
        lock.release()


def read_file(file: Path) -> bytes:
    """All bytes of a file; ValueError unless they have the checksum that its folder may hold.

    Whoever changes a file by hand removes the checksums.
    """
    content = _read(file)
    sums = file.with_name(CHECKSUM_FILE)
    wanted = parse_json(_read(sums), sums).get(file.name) if sums.exists() else None
    if wanted not in (None, _checksum(content)):
        raise ValueError(f"{file} is damaged: size and SHA-256 must be {wanted}, got {_checksum(content)}")
    return content


def read_json(file: Path) -> dict[str, Any]:
    """A JSON object; ValueError names a file that is missing, damaged or holds none."""
    return parse_json(read_file(file), file)


def read_tensors(file: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file; ValueError names a file that is missing, damaged or holds none."""
    from safetensors import SafetensorError
    from safetensors.torch import load  # brings torch, which other readers do not need

    try:
        tensors = load(read_file(file))
    except (SafetensorError, KeyError) as error:
        raise ValueError(
            f"{file} must be a whole safetensors file, no other kind is opened: {error}"
        ) from error
    # A copy of their own gives the tensors the alignment that torch would have given them.
    return {name: tensor.clone() for name, tensor in tensors.items()}


def _read(file: Path) -> bytes:
    if not file.is_file():
        raise ValueError(f"{file} is missing")
    return file.read_bytes()


def parse_json(content: bytes | str, file: Path) -> dict[str, Any]:
    """The object that JSON of a file holds; ValueError for anything else."""
    try:
        parsed = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file} must be whole JSON, got {len(content):,} bytes: {error}") from error
    if not isinstance(parsed, dict):
        raise ValueError(f"{file} must hold a JSON object, got {type(parsed).__name__}")
    return parsed


def _checksum(content: bytes) -> str:
    return f"{len(content)} {hashlib.sha256(content).hexdigest()}"
