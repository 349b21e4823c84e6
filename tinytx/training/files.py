"""Files written atomically, and read with their checksums.

An atomic write puts all content under a temporary name, flushes it to the disk (fsync) and renames it. A
process may be killed at any moment: what has its final name is complete.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import filelock
from safetensors import SafetensorError
from safetensors.torch import load as parse_safetensors
from torch import Tensor

CHECKSUM_FILE = "checksums.json"  # size and SHA-256 of each other file of a folder
LOCK_FILE = ".tinytx-lock"
NEW, OLD = ".tinytx-new", ".tinytx-old"  # endings of temporary names


def json_bytes(content: Mapping[str, Any]) -> bytes:
    """A mapping as readable JSON; equal content gives equal bytes."""
    return (json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def read_json(file: Path) -> dict[str, Any]:
    """A JSON object from a file; ValueError names a file that is missing or holds none."""
    return parse_json(read_bytes(file), file)


def write_file(target: Path, content: bytes) -> None:
    """Write a file that appears, or changes, in one step or not at all."""
    make_folder(target.parent)
    new = target.with_name(f".{target.name}{NEW}")
    try:
        _write_through(new, content)
        os.replace(new, target)
    finally:
        new.unlink(missing_ok=True)
    _sync_folder(target.parent)


def write_folder(target: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder that appears, or changes, in one step or not at all.

    The caller holds the lock, so that no other process uses the temporary names.
    """
    make_folder(target.parent)
    new, old = temporary(target, NEW), temporary(target, OLD)
    if old.exists() and not target.exists():  # killed between the two renames below
        os.replace(old, target)
    for leftover in (new, old):
        shutil.rmtree(leftover, ignore_errors=True)
    try:
        new.mkdir()
        for name, content in files.items():
            _write_through(new / name, content)
        _sync_folder(new)
        if target.exists():
            os.replace(target, old)
        os.replace(new, target)
        _sync_folder(target.parent)
    finally:
        if old.exists() and not target.exists():
            os.replace(old, target)
        for leftover in (new, old):
            shutil.rmtree(leftover, ignore_errors=True)


def temporary(target: Path, ending: str) -> Path:
    return target.parent / f".{target.name}{ending}"


def remove_folder(target: Path) -> None:
    """Remove a folder in one step, as other processes see it."""
    old = temporary(target, OLD)
    os.replace(target, old)
    _sync_folder(target.parent)
    shutil.rmtree(old, ignore_errors=True)


def make_folder(path: Path) -> None:
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        _sync_folder(path.parent)


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


def read_bytes(file: Path, wanted: str | None = None) -> bytes:
    """All bytes of a file, compared with the line of `CHECKSUM_FILE` where there is one."""
    if not file.is_file():
        raise ValueError(f"{file} is missing")
    content = file.read_bytes()
    if wanted is None or wanted == _checksum(content):
        return content
    if is_pickle(content):
        raise ValueError(f"{file} is a pickle, which could run any code: it is not opened")
    expected = wanted.partition(" ")[0]
    if expected.isdecimal() and len(content) < int(expected):
        raise ValueError(f"{file} is cut short: it must have {int(expected):,} bytes, got {len(content):,}")
    raise ValueError(
        f"{file} is damaged or of another checkpoint: its checksum is not that in {CHECKSUM_FILE}"
    )


def _checksum(content: bytes) -> str:
    return f"{len(content)} {hashlib.sha256(content).hexdigest()}"


def with_checksums(files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {**files, CHECKSUM_FILE: json_bytes({name: _checksum(content) for name, content in files.items()})}


def checked_bytes(folder: Path, name: str) -> bytes:
    """One file of a checkpoint. Whoever changes a file by hand removes the checksums."""
    sums = read_json(folder / CHECKSUM_FILE) if (folder / CHECKSUM_FILE).exists() else {}
    return read_bytes(folder / name, sums.get(name))


def check_all(folder: Path) -> None:
    """Raise ValueError, naming the file, unless every file of a run's checkpoint is what was written."""
    for name, wanted in read_json(folder / CHECKSUM_FILE).items():
        read_bytes(folder / name, str(wanted))


def parse_json(content: bytes, file: Path) -> dict[str, Any]:
    try:
        parsed = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file} is cut short or no JSON: {error}") from error
    if not isinstance(parsed, dict):
        raise ValueError(f"{file} must hold a JSON object, got {type(parsed).__name__}")
    return parsed


def parse_tensors(content: bytes, file: Path) -> dict[str, Tensor]:
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
    return content[:2] == b"PK" or (content[:1] == b"\x80" and content[1:2] in b"\x02\x03\x04\x05")
