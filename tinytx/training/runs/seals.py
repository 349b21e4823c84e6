"""Checksums in a folder: a bit that flipped, or a file of another folder, is noticed and named."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from tinytx.training.runs.files import is_pickle, json_bytes, read_json

SEAL_FILE = "seal.json"


def sealed(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files, and one more that holds the size in bytes and the SHA-256 sum of each."""
    seal = {name: f"{len(content)} {hashlib.sha256(content).hexdigest()}" for name, content in files.items()}
    return {**files, SEAL_FILE: json_bytes(seal)}


def check_seal(folder: Path, *names: str) -> None:
    """Refuse a folder with a file that is not what was saved.

    Parameters
    ----------
    folder : Path
        One without a seal passes: whoever changes a file by hand removes the seal.
    *names : str
        Files to look at, by default all that are sealed.

    Raises
    ------
    ValueError
        Names the first file that is missing, cut short or different.
    """
    if not (folder / SEAL_FILE).exists():
        return
    for name, wanted in read_json(folder / SEAL_FILE).items():
        if not names or name in names:
            _check_file(folder / name, str(wanted))


def _check_file(file: Path, wanted: str) -> None:
    if not file.is_file():
        raise ValueError(f"{file} is missing")
    with file.open("rb") as stream:
        start = stream.read(9)
        stream.seek(0)
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        size = stream.tell()
    if wanted == f"{size} {digest}":
        return
    if is_pickle(start):
        raise ValueError(f"{file} is a pickle, which could run any code: it is not opened")
    n_bytes = wanted.partition(" ")[0]
    if n_bytes.isdecimal() and size < int(n_bytes):
        raise ValueError(f"{file} is cut short: it holds {size:,} of {int(n_bytes):,} bytes")
    raise ValueError(f"{file} is damaged or of another checkpoint: its checksum is not that in {SEAL_FILE}")
