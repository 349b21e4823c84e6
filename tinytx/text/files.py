"""Files of text, read line by line with errors that name the line, and split without repeats."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

SPLIT_SEED = 20_000


def read_lines(path: Path) -> list[tuple[int, str]]:
    """Read the lines that are not blank, each with its number counted from 1.

    Parameters
    ----------
    path : Path
        UTF-8 text, with or without a byte order mark, with either line end.

    Returns
    -------
    list of (int, str)
        At least one.

    Raises
    ------
    ValueError
        If the file is missing, holds no text, or has a line that is not UTF-8.
    """
    if not path.is_file():
        raise ValueError(f"corpus file must exist, got {path}")
    data = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    try:
        content = data.decode("utf-8")
    except UnicodeDecodeError as error:
        number = 1 + data.count(b"\n", 0, error.start)
        byte = data[error.start]
        raise ValueError(f"{path}, line {number}: must be UTF-8 text, got the byte 0x{byte:02x}") from error
    lines = [(i, line.removesuffix("\r")) for i, line in enumerate(content.split("\n"), start=1)]
    filled = [(i, line) for i, line in lines if line.strip()]
    if not filled:
        raise ValueError(f"{path} must hold at least one line of text, got an empty file")
    return filled


def parse_label(label: str, path: Path, number: int) -> int:
    """Read a label from line `number` of `path`, an integer from 0 up, else a ValueError naming the line."""
    if not re.fullmatch(r"[0-9]+", label.strip()):
        raise ValueError(f"{path}, line {number}: the label must be an integer from 0 up, got {label[:40]!r}")
    return int(label)


def split_rows(
    path: Path, texts: Sequence[str], labels: Sequence[int] | None = None, *, share: float
) -> list[list[int]]:
    """Deal the rows of a file out to train, valid and test, the same way each time.

    Parameters
    ----------
    path : Path
        Where the texts come from, for the error message.
    texts : sequence of str
        Equal texts go to the same split.
    labels : sequence of int, optional
        Dealt out in equal shares. A label with fewer than three different texts cannot stand in every split:
        it goes to train.
    share : float
        Of the different texts, for valid and for test each, and at least one.

    Returns
    -------
    list of three lists of int
        Rows of train, valid and test, none empty, in the order of the file.

    Raises
    ------
    ValueError
        If the texts are too few.
    """
    first_label: dict[str, int] = {}
    for i, text in enumerate(texts):
        first_label.setdefault(text, 0 if labels is None else labels[i])
    rng = np.random.default_rng(SPLIT_SEED)
    place: dict[str, int] = {}
    for label in sorted(set(first_label.values())):
        members = [text for text in first_label if first_label[text] == label]
        n_held_out = max(1, round(share * len(members))) if len(members) >= 3 else 0
        for rank, row in enumerate(rng.permutation(len(members))):
            place[members[row]] = 1 + rank // n_held_out if rank < 2 * n_held_out else 0
    rows = [[i for i, text in enumerate(texts) if place[text] == split] for split in range(3)]
    if not all(rows):
        of_one = "" if labels is None else " of one label"
        raise ValueError(
            f"{path} must hold at least 3 different texts{of_one} to be split, got {len(first_label)}"
            + ("" if labels is None else f" over {len(set(labels))} labels")
        )
    return rows
