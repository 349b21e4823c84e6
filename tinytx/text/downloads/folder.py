"""The folder of a corpus: where it lies, the card that says what is in it, and whether it is whole."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinytx.text.downloads.registry import Dataset

CARD = "card.json"
VARIABLE = "TINYTX_DATA"


def data_folder(data_dir: str | os.PathLike[str] | None = None) -> Path:
    """The folder that holds one folder a corpus.

    Parameters
    ----------
    data_dir : path, optional
        Left out, it is what the environment variable ``TINYTX_DATA`` names, else the cache folder that the
        system gives this user. That one is the same from every working folder and for every copy of the
        project, no version control ever sees it, and what lies there can be had again.
    """
    if data_dir is not None:
        return Path(data_dir)
    if os.environ.get(VARIABLE):
        return Path(os.environ[VARIABLE])
    import pooch

    return Path(pooch.os_cache("tinytx")) / "data"


def corpus_folder(name: str, data_dir: str | os.PathLike[str] | None = None) -> Path:
    """The folder of a corpus that is there.

    Raises
    ------
    ValueError
        If it is not; the message names the command that brings it.
    """
    folder = data_folder(data_dir) / name
    if not folder.is_dir():
        option = "" if data_dir is None else f" --data-dir {data_dir}"
        raise ValueError(
            f"data_dir must hold the folder {name}, looked for {folder}: `tinytx data get {name}{option}` "
            "brings it there"
        )
    return folder


@dataclass(frozen=True)
class State:
    """What lies in the folder of a corpus.

    Parameters
    ----------
    folder : Path
    files : mapping from str to mapping
        File name to its `facts`, of the files that are as they should be.
    faults : tuple of str
        What is not, in words.
    absent : tuple of str
        Splits that are not there.
    card : mapping, optional
        As `write_folder` wrote it; None for a folder that came by other ways.
    """

    folder: Path
    files: Mapping[str, Mapping[str, Any]]
    faults: tuple[str, ...]
    absent: tuple[str, ...]
    card: Mapping[str, Any] | None = None

    @property
    def whole(self) -> bool:
        """Whether every split is there as it should be."""
        return not self.faults and not self.absent


def inspect(folder: Path, dataset: Dataset) -> State:
    """Compare a folder with its card or, where it has none, with the known numbers of lines.

    Files that neither names are not looked at.
    """
    card_file, card = folder / CARD, None
    expected: dict[str, str | None]
    if card_file.is_file():
        try:
            card = json.loads(card_file.read_text(encoding="utf-8"))
            expected = {name: str(card["files"][name]["sha256"]) for name in card["files"]}
            if not expected.keys() <= dataset.n_lines.keys():
                raise ValueError(f"it names files that are none of {dataset.name}")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return State(folder, {}, (f"{card_file} must be a card that tinytx wrote: {error}",), ())
    else:
        expected = {name: None for name in dataset.n_lines if (folder / name).is_file()}
    files, faults = {}, []
    for name, sha256 in expected.items():
        if not (folder / name).is_file():
            faults.append(f"{folder / name} is missing")
            continue
        found = facts((folder / name).read_bytes())
        n_lines = dataset.n_lines.get(name)
        if sha256 is not None and found["sha256"] != sha256:
            faults.append(f"{folder / name} must have the sha256 {sha256}, got {found['sha256']}")
        elif sha256 is None and n_lines is not None and found["lines"] != n_lines:
            faults.append(wrong_lines(folder / name, n_lines, found["lines"]))
        else:
            files[name] = found
    return State(folder, files, tuple(faults), dataset.absent(expected), card)


def wrong_lines(file: Path, expected: int, got: int) -> str:
    """What to say of a file with another number of lines."""
    return f"{file} must hold {expected:,} lines, got {got:,}"


def facts(content: bytes) -> dict[str, Any]:
    """Checksum, length and, of a text, number of lines."""
    return {
        "sha256": hashlib.sha256(content).hexdigest(),
        "bytes": len(content),
        "lines": None if b"\0" in content else count_lines(content),
    }


def count_lines(content: bytes) -> int:
    """Number of lines, the last one counted whether or not it ends.

    Examples
    --------
    >>> count_lines(b"un\\ndeux\\n"), count_lines(b"un\\ndeux"), count_lines(b"")
    (2, 2, 0)
    """
    return content.count(b"\n") + (bool(content) and not content.endswith(b"\n"))


def make_card(dataset: Dataset, files: Mapping[str, bytes], *, origin: str, rule: str) -> dict[str, Any]:
    """What a folder holds, where it comes from, and how it was made."""
    return {
        "name": dataset.name,
        "description": dataset.description,
        "licence": dataset.licence,
        "citation": dataset.citation,
        "source": f"https://github.com/{dataset.repository}/tree/{dataset.commit}",
        "commit": dataset.commit,
        "upstream_sha256": dict(dataset.files),
        "origin": origin,
        "rule": rule,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "files": {name: facts(content) for name, content in files.items()},
        "absent": list(dataset.absent(files)),
    }


def write_folder(folder: Path, files: Mapping[str, bytes], card: Mapping[str, Any], *, aside: Path) -> None:
    """Write a folder that appears, or takes another's place, in one step or not at all.

    Parameters
    ----------
    folder : Path
    files : mapping from str to bytes
    card : mapping
        From `make_card`.
    aside : Path
        On the same disk, for what is half written; removed before and after.
    """
    new, old = aside / "new", aside / "old"
    shutil.rmtree(aside, ignore_errors=True)
    try:
        new.mkdir(parents=True)
        text = json.dumps(card, indent=1, ensure_ascii=False) + "\n"
        for name, content in {**files, CARD: text.encode("utf-8")}.items():
            with (new / name).open("wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
        if folder.exists():
            os.replace(folder, old)
        try:
            os.replace(new, folder)
        except OSError:
            if old.exists():
                os.replace(old, folder)
            raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)
