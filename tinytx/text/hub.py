"""Datasets of the library ``datasets``, by name or from a folder that it saved."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tinytx.text.corpus import Corpus, CorpusWarning
from tinytx.text.faults import Faults
from tinytx.text.own import SPLIT_FILES, Reading, Table, assemble
from tinytx.text.tables import LABEL_COLUMN, select

PREFIX = "hf:"
UNTOLD = -1  # in place of a label, by the library's convention
MARKS = ("dataset_dict.json", "dataset_info.json")  # in a folder that the library saved


def is_saved(path: Path) -> bool:
    """Whether a folder was written by ``save_to_disk``."""
    return any((path / mark).is_file() for mark in MARKS)


def read_hub(name: str, how: Reading) -> Corpus:
    """Read a dataset.

    Parameters
    ----------
    name : str
        ``NAME``, or ``NAME:CONFIGURATION``, as ``datasets.load_dataset`` takes them, which fetches what is
        not yet there; or a folder of ``save_to_disk``, which is read without any network.
    how : Reading

    Returns
    -------
    Corpus
        With the library's splits; what is not there is dealt out from train, as for a file. The names of
        classes are those of the dataset unless others are given.

    Raises
    ------
    ValueError
        If the library is not installed, or does not find or cannot read the dataset.
    """
    parts = _load(name)
    title = f"{PREFIX}{Path(name).name if Path(name).is_dir() else name}"
    tables: dict[str, Table] = {}
    names: tuple[str, ...] = ()
    for split, part in ((split, part) for split, wanted in SPLIT_FILES.items() for part in wanted):
        if part not in parts or split in tables:
            continue
        class_names = _class_names(parts[part], how)
        if class_names and set(parts[part][how.columns.label or LABEL_COLUMN]) == {UNTOLD}:
            warnings.warn(
                f"{title}: the labels of {part} are not told: left out", CorpusWarning, stacklevel=3
            )
            continue
        faults = Faults(f"{title} ({part})", skip=how.skip_bad_rows, unit="row")
        rows = enumerate(_named(parts[part], how), start=1)
        tables[split] = Table(select(rows, how.columns, faults), faults)
        names = names or class_names
    if "train" not in tables:
        raise ValueError(f"{title} must have a split train, got {', '.join(parts) or 'none'}")
    return assemble(title, tables, how.label_names or names)


def _load(name: str) -> Mapping[str, Any]:
    try:
        import datasets
    except ImportError as error:
        raise ValueError(
            f"{PREFIX}{name} must be read with the library datasets, which is not installed: "
            "pip install datasets"
        ) from error
    folder = Path(name)
    try:
        if folder.is_dir() and is_saved(folder):
            found = datasets.load_from_disk(str(folder))
        else:
            found = datasets.load_dataset(*name.split(":", 1))
    # Whatever its many ways to fail raise (and some are its own): the reader needs the words, not the trace.
    except Exception as error:
        raise ValueError(f"{PREFIX}{name} must be a dataset that can be had, got: {error}") from error
    return found if isinstance(found, Mapping) else {"train": found}


def _named(part: Any, how: Reading) -> Iterator[dict[str, Any]]:
    """The rows of a dataset, with the name of a class in place of its number."""
    column, names = how.columns.label or LABEL_COLUMN, _class_names(part, how)
    for row in part:
        if names and isinstance(row[column], int):
            row[column] = names[row[column]] if row[column] != UNTOLD else None
        yield row


def _class_names(part: Any, how: Reading) -> tuple[str, ...]:
    return tuple(getattr(part.features.get(how.columns.label or LABEL_COLUMN), "names", None) or ())
