"""Pairs of sentences in a file, and which of them share a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tinytx.text.files import read_lines


def read_pairs(path: Path) -> list[tuple[str, str]]:
    """Read lines of a source, a tab and a target; further columns are not read.

    Raises
    ------
    ValueError
        As `read_lines`; also if a line has no tab or an empty side. The message names the line.
    """
    rows = []
    for number, line in read_lines(path):
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) < 2 or not cells[0] or not cells[1]:
            got = "no tab" if len(cells) < 2 else "an empty side"
            raise ValueError(f"{path}, line {number}: must be a source, a tab and a target, got {got}")
        rows.append((cells[0], cells[1]))
    return rows


def connected(rows: Sequence[tuple[str, str]]) -> list[int]:
    """Number the groups of pairs that share a source or a target, directly or over others.

    Returns
    -------
    list of int
        Equal for pairs of one group.

    Examples
    --------
    >>> connected([("a", "x"), ("b", "y"), ("a", "z"), ("c", "z")])
    [0, 1, 0, 0]
    """
    parent = list(range(len(rows)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    first: dict[tuple[int, str], int] = {}
    for i, row in enumerate(rows):
        for key in enumerate(row):
            parent[root(i)] = root(first.setdefault(key, i))
    return [root(i) for i in range(len(rows))]
