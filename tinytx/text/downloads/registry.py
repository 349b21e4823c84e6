"""What can be downloaded: where each corpus lies upstream, its checksums, licence, citation and layout."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

HOST = "https://raw.githubusercontent.com"


@dataclass(frozen=True)
class Dataset:
    """A corpus that others publish, as files of one commit of a repository.

    Parameters
    ----------
    name, description : str
        The name is also that of the folder.
    repository : str
        Owner and name on GitHub.
    commit : str
        Forty hexadecimal digits: what is fetched can never change.
    licence, citation : str
        As stated where the texts come from.
    files : mapping from str to str
        Path in the repository to sha256. File names without their folders are different, too.
    layout : mapping from str to mapping from str to int or None
        What lies in the folder at the end: split to file name to number of lines; None where that is not
        known beforehand, or where the file is no text.
    """

    name: str
    description: str
    repository: str
    commit: str
    licence: str
    citation: str
    files: Mapping[str, str]
    layout: Mapping[str, Mapping[str, int | None]]

    @property
    def n_lines(self) -> dict[str, int | None]:
        """Number of lines of each file of the layout."""
        return {name: n for files in self.layout.values() for name, n in files.items()}

    def url(self, path: str, host: str = HOST) -> str:
        """The address of a file, at GitHub or at a host that mirrors its paths."""
        return f"{host.rstrip('/')}/{self.repository}/{self.commit}/{path}"

    def absent(self, names: Mapping[str, object]) -> tuple[str, ...]:
        """The splits of which not every file is among `names`."""
        return tuple(split for split, files in self.layout.items() if not set(files) <= set(names))


def file_name(path: str) -> str:
    """The last part of a path in a repository."""
    return PurePosixPath(path).name


@functools.cache
def datasets() -> dict[str, Dataset]:
    """All corpora that can be downloaded, by name."""
    text = (Path(__file__).parent / "registry.json").read_text(encoding="utf-8")
    return {name: Dataset(name=name, **fields) for name, fields in json.loads(text).items()}


def dataset(name: str) -> Dataset:
    """A corpus by its name.

    Raises
    ------
    ValueError
        If no corpus of this name can be downloaded.

    Examples
    --------
    >>> dataset("tinyshakespeare").repository
    'karpathy/char-rnn'
    """
    if name not in datasets():
        raise ValueError(f"name must be one of {', '.join(datasets())}, got {name!r}")
    return datasets()[name]
