"""Tables of texts: rows of `.csv`, `.tsv` and `.jsonl` files, by the names of their columns."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinytx.text.faults import Faults
from tinytx.text.files import TextLines

TEXT_COLUMN, LABEL_COLUMN = "text", "label"  # unless others are named; the second may be absent
DELIMITERS = ",;\t|"  # of a .csv
LONGEST_CELL = 1_000_000  # characters
Cells = Mapping[str, Any]


@dataclass(frozen=True)
class Row:
    """A row that can be used.

    Parameters
    ----------
    number : int
        Of the line on which it begins, from 1.
    text : str
        With a space in place of each line end.
    label : str, optional
        Without blanks around it.
    """

    number: int
    text: str
    label: str | None = None


@dataclass(frozen=True)
class Columns:
    """Which columns hold what.

    Parameters
    ----------
    text : str, optional
        By default `TEXT_COLUMN`.
    label : str, optional
        By default `LABEL_COLUMN` where there is such a column; where there is none, texts have no labels.
    """

    text: str | None = None
    label: str | None = None

    @property
    def named(self) -> bool:
        """Whether any was named."""
        return self.text is not None or self.label is not None

    def check(self, found: Iterable[str], path: Path | str) -> None:
        """Raise a ValueError if a column that is needed is not among those found."""
        found = list(found)
        needed = (("text_column", self.text or TEXT_COLUMN), ("label_column", self.label))
        for option, column in needed:
            if column is not None and column not in found:
                listed = ", ".join(name[:40] for name in found[:20]) or "none"
                raise ValueError(f"{option} must be a column of {path}, which has {listed}; got {column}")


def read_table(path: Path, columns: Columns, faults: Faults) -> list[Row]:
    """Read the rows of a file.

    Parameters
    ----------
    path : Path
        A ``.csv`` whose first line names the columns, set apart by commas, semicolons, tabs or bars, and
        whose quoted cells may hold line ends; a ``.tsv``, the same with tabs, in which a quote is a sign like
        others; or a ``.jsonl`` with a JSON object a line.
    columns : Columns
    faults : Faults
        Takes note of rows that cannot be used.

    Returns
    -------
    list of Row

    Raises
    ------
    ValueError
        If the file is missing, lacks a column, or cannot be taken apart.
    """
    lines = TextLines(path, faults)
    if path.suffix.lower() == ".jsonl":
        return select(_objects(lines), columns, faults)
    return select(_records(lines, columns), columns, faults)


def select(table: Iterable[tuple[int, Cells]], columns: Columns, faults: Faults) -> list[Row]:
    """Take text and label out of numbered rows; `faults` takes note of those that lack one."""
    text_column, label_column = columns.text or TEXT_COLUMN, columns.label or LABEL_COLUMN
    found: dict[str, None] = {}
    numbered = []
    for number, cells in table:
        found |= dict.fromkeys(cells)
        numbered.append((number, cells.get(text_column), cells.get(label_column)))
    if numbered:
        columns.check(found, faults.path)
    rows = []
    for number, text, value in numbered:
        label = _label(value) if label_column in found else None
        if not isinstance(text, str) or not text.strip():
            got = "none" if text is None or isinstance(text, str) else _shown(text)
            faults.add(number, f"must have a text in the column {text_column}", got)
        elif label_column in found and label is None:
            faults.add(number, f"must have a label in the column {label_column}", _shown(value))
        else:
            rows.append(Row(number, re.sub(r"\s*[\r\n]\s*", " ", text.strip()), label))
    return rows


def _label(value: Any) -> str | None:
    if isinstance(value, bool):
        return str(int(value))
    return str(value).strip() or None if isinstance(value, str | int | float) else None


def _shown(value: Any) -> str:
    return "none" if value is None or value == "" else json.dumps(value, ensure_ascii=False, default=str)[:40]


def _objects(lines: TextLines) -> Iterator[tuple[int, Cells]]:
    for number, line in lines:
        if line is None or not line.strip():
            continue
        try:
            cells = json.loads(line)
        except (ValueError, RecursionError):
            cells = None
        if isinstance(cells, dict):
            yield number, cells
        else:
            lines.faults.add(number, "must be a JSON object", repr(line.strip()[:40]))


def _records(lines: TextLines, columns: Columns) -> Iterator[tuple[int, Cells]]:
    """The records of a .csv or .tsv, each with the number of the line on which it begins."""
    feed = _Feed(lines)
    if lines.path.suffix.lower() == ".tsv":
        form: dict[str, Any] = {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
    else:
        form = {"delimiter": _delimiter(lines.path, columns), "strict": True}
    reader = csv.reader(feed, **form)
    header: list[str] | None = None
    number = 1
    limit = csv.field_size_limit(LONGEST_CELL)
    try:
        for cells in reader:
            if feed.spoilt:
                feed.spoilt = False
            elif header is None:
                header = [name.strip() for name in cells]
                columns.check(header, lines.path)
            elif cells and len(cells) != len(header):
                lines.faults.add(number, f"must have {len(header)} cells, as the first line", str(len(cells)))
            elif cells:
                yield number, dict(zip(header, cells, strict=True))
            number = lines.n_lines + 1
    except csv.Error as error:
        raise ValueError(
            f"{lines.path}, line {number}: must be a row of a table, got one that cannot be taken apart "
            f"({error}); is a quote never closed, or doubled within a text?"
        ) from error
    finally:
        csv.field_size_limit(limit)


class _Feed:
    """Lines for the csv module, mended so that quotes stay in pairs; `spoilt` tells that one had to be."""

    def __init__(self, lines: TextLines) -> None:
        self.spoilt = False
        self._source = lines
        self._lines = iter(lines)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)[1]
        if line is None:
            self.spoilt = True
            line = self._source.unusable.replace(b"\0", b"").decode("utf-8", "replace") or "\n"
        return line


def _delimiter(path: Path, columns: Columns) -> str:
    """The sign that cuts the first line into the columns that are needed, else into the most columns."""
    first = next((line for _, line in TextLines(path, Faults(path)) if line is not None), "")
    headers = {sign: next(csv.reader([first], delimiter=sign), []) for sign in DELIMITERS}
    needed = {columns.text or TEXT_COLUMN, *([columns.label] if columns.label else [])}
    return max(
        DELIMITERS, key=lambda sign: (needed <= {name.strip() for name in headers[sign]}, len(headers[sign]))
    )
