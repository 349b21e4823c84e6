"""Read texts and labels from files and tables; name the rows that cannot be used."""

from __future__ import annotations

import csv
import json
import re
import warnings
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np


@dataclass
class Faults:
    """What is wrong with the rows of a file.

    Parameters
    ----------
    path : Path or str
        Named in messages.
    skip : bool
        Pass the rows over with a warning, where otherwise an error is raised.
    unit : str
        What a row is called in front of its number.
    hint : str
        Told at the end of the message.

    Examples
    --------
    >>> faults = Faults("notes.tsv")
    >>> faults.add(7, "must be a label, a tab and a text", "no tab")
    >>> faults.settle(n_good=8)
    Traceback (most recent call last):
    ValueError: notes.tsv, line 7: must be a label, a tab and a text, got no tab
    """

    path: Path | str
    skip: bool = False
    unit: str = "line"
    hint: str = ""
    _numbers: dict[str, set[int]] = field(default_factory=dict)  # of the rows that break each rule
    _first: dict[str, tuple[int, str]] = field(default_factory=dict)

    def add(self, number: int, rule: str, got: str) -> None:
        """Note that row `number`, counted from 1, breaks a rule."""
        self._numbers.setdefault(rule, set()).add(number)
        self._first.setdefault(rule, (number, got))

    def settle(self, n_good: int) -> None:
        """Refuse the rows that were noted, or warn that they are passed over.

        Parameters
        ----------
        n_good : int
            Rows that can be used, for the message.

        Raises
        ------
        ValueError
            If any were noted and `skip` is False.
        """
        if not self._first:
            return
        n_bad = len(set.union(*self._numbers.values()))
        rules = sorted(self._first, key=lambda rule: self._first[rule])
        number, got = self._first[rules[0]]
        message = f"{self.path}, {self.unit} {number}: {rules[0]}, got {got}"
        if n_bad > 1:
            message += f"; {n_bad:,} of {n_good + n_bad:,} rows cannot be used"
        if len(rules) > 1:
            message += ": " + "; ".join(
                f"{rule} ({len(self._numbers[rule]):,} rows, from {self.unit} {self._first[rule][0]})"
                for rule in rules
            )
        message += f"; {self.hint}" if self.hint else ""
        self._numbers.clear()
        self._first.clear()
        if not self.skip:
            raise ValueError(message)
        warnings.warn(f"{message}: passed over, {n_good:,} rows are left", CorpusWarning, stacklevel=3)


SPLIT_SEED = 20_000
LONGEST_LINE = 1_000_000  # bytes
_MARK = b"\xef\xbb\xbf"
_MARKS_OF_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass
class TextLines:
    """The lines of a file, as they come, and never more of one in memory than `LONGEST_LINE` bytes.

    Iterating gives pairs of a number, counted from 1, and a line with its end, or None for a line that cannot
    be used: it is too long, not UTF-8, or holds a NUL byte.

    Parameters
    ----------
    path : Path
        With or without a byte order mark.
    faults : Faults
        Takes note of the lines that cannot be used.
    divide : bool
        Divide a line that is too long at blanks into several, which share its number, with a warning.
    n_lines : int
        So far.
    unusable : bytes
        The latest line that cannot be used; empty for one that is too long.

    Raises
    ------
    ValueError
        If the file is missing, or begins with the mark of UTF-16.
    """

    path: Path
    faults: Faults
    divide: bool = False
    n_lines: int = 0
    unusable: bytes = b""
    _n_beyond_ascii: int = 0
    _n_foreign: int = 0

    def __iter__(self) -> Iterator[tuple[int, str | None]]:
        if not self.path.is_file():
            raise ValueError(f"corpus file must exist, got {self.path}")
        with self.path.open("rb") as stream:
            if stream.peek(2)[:2] in _MARKS_OF_UTF16:  # type: ignore[attr-defined]
                raise ValueError(f"{self.path} must be UTF-8 text, got the mark of UTF-16: save it as UTF-8")
            if stream.read(len(_MARK)) != _MARK:
                stream.seek(0)
            while line := stream.readline(LONGEST_LINE + 1):
                self.n_lines += 1
                if len(line) <= LONGEST_LINE or line.endswith(b"\n"):
                    yield self.n_lines, self._decoded(line)
                elif self.divide:
                    yield from self._parts(line, stream)
                else:
                    got = f"{len(line) + _pass_over(stream):,}"
                    self.faults.add(self.n_lines, f"must hold at most {LONGEST_LINE:,} bytes", got)
                    self.unusable = b""
                    yield self.n_lines, None
        if self._n_foreign:
            self.faults.hint = (
                f"{self._n_beyond_ascii:,} other lines with accents are UTF-8: the file mixes encodings"
                if self._n_beyond_ascii
                else "no line with accents is UTF-8: save the file as UTF-8 (it may be Windows-1252)"
            )

    def _parts(self, line: bytes, stream: BinaryIO) -> Iterator[tuple[int, str | None]]:
        """Parts of a line of which `line` is the beginning, each up to a blank."""
        n_bytes = n_parts = 0
        while len(line) > LONGEST_LINE and not line.endswith(b"\n"):
            end = line.rfind(b" ")
            if end < 0:
                rule = f"must hold a blank in every {LONGEST_LINE:,} bytes"
                self.faults.add(self.n_lines, rule, f"none after byte {n_bytes:,}")
                _pass_over(stream)
                yield self.n_lines, None
                return
            yield self.n_lines, self._decoded(line[:end], n_bytes)
            n_bytes, n_parts, line = n_bytes + end + 1, n_parts + 1, line[end + 1 :]
            line += stream.readline(LONGEST_LINE + 1 - len(line))
        yield self.n_lines, self._decoded(line, n_bytes)
        warnings.warn(
            f"{self.path}, line {self.n_lines}: holds {n_bytes + len(line):,} bytes and is divided at blanks "
            f"into {n_parts + 1} documents",
            CorpusWarning,
            stacklevel=4,
        )

    def _decoded(self, line: bytes, n_before: int = 0) -> str | None:
        self.unusable = line
        zero = line.find(b"\0")
        if zero >= 0:
            got = f"a NUL byte as byte {n_before + zero + 1} of the line"
            self.faults.add(self.n_lines, "must be text", got)
            return None
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            self._n_foreign += 1
            got = f"the byte 0x{line[error.start]:02x} as byte {n_before + error.start + 1} of the line"
            self.faults.add(self.n_lines, "must be UTF-8 text", got)
            return None
        self._n_beyond_ascii += not line.isascii()
        return text


def _pass_over(stream: BinaryIO) -> int:
    """Go on to the next line; the number of bytes on the way."""
    n_bytes = 0
    while part := stream.readline(LONGEST_LINE):
        n_bytes += len(part)
        if part.endswith(b"\n"):
            break
    return n_bytes


def read_lines(path: Path, *, skip_bad_rows: bool = False, divide: bool = False) -> list[tuple[int, str]]:
    """Read the lines that are not blank, each with its number counted from 1 and without its end.

    Parameters
    ----------
    path : Path
        UTF-8 text, with or without a byte order mark, with either line end.
    skip_bad_rows : bool
        Pass over lines that cannot be used, with a warning, where otherwise they are an error.
    divide : bool
        See `TextLines`.

    Returns
    -------
    list of (int, str)
        At least one.

    Raises
    ------
    ValueError
        If the file is missing, holds no text, or has a line that cannot be used.
    """
    faults = Faults(path, skip=skip_bad_rows)
    lines = TextLines(path, faults, divide=divide)
    filled = []
    for number, line in lines:
        if line is not None and line.strip():
            filled.append((number, line.removesuffix("\n").removesuffix("\r")))
    faults.settle(len(filled))
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


MAX_CLASSES = 100  # with names: more of them are no labels
_INTEGER = re.compile(r"[0-9]{1,9}")
_NUMBER = re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,9})?")


def name_labels(rows: Sequence[Row], faults: Faults) -> tuple[str, ...]:
    """The names of the classes, in order.

    Parameters
    ----------
    rows : sequence of Row
        With labels.
    faults : Faults
        Takes note of words among numbers, and of numbers among words, whichever are fewer.

    Returns
    -------
    tuple of str
        Empty if the labels are integers from 0 up, which then are what they say. Else the different ones,
        numbers by their value, words by the alphabet.

    Raises
    ------
    ValueError
        If there are more than `MAX_CLASSES`.
    """
    numbers = [row for row in rows if _value(row.label) is not None]
    words = [row for row in rows if _value(row.label) is None]
    kept, strangers, kind = (
        (numbers, words, "number") if len(numbers) >= len(words) else (words, numbers, "word")
    )
    for row in strangers:
        faults.add(row.number, f"the label must be a {kind}, as most are", repr((row.label or "")[:40]))
    found = {row.label or "" for row in kept}
    if all(map(_INTEGER.fullmatch, found)):
        return ()
    if len(found) > MAX_CLASSES:
        some = ", ".join(repr(label[:20]) for label in sorted(found)[:3])
        raise ValueError(
            f"{faults.path} must have at most {MAX_CLASSES} different labels, got {len(found):,}, "
            f"such as {some}"
        )
    return tuple(sorted(found, key=lambda label: (_value(label) or 0.0, label)))


def number_labels(
    rows: Sequence[Row], names: Sequence[str], faults: Faults, *, known: Container[int] | None = None
) -> list[tuple[Row, int]]:
    """Number the labels of rows.

    Parameters
    ----------
    rows : sequence of Row
    names : sequence of str
        Of the classes 0, 1, ...; if empty, labels must be whole numbers from 0 up.
    faults : Faults
        Takes note of rows whose label is not known; they are left out.
    known : container of int, optional
        The classes that were met in training.

    Returns
    -------
    list of (Row, int)
    """
    places = {name: place for place, name in enumerate(names)}
    if len(places) < len(names):
        raise ValueError(f"label_names must be different, got {', '.join(names)}")
    rule = "the label must be an integer from 0 up"
    if names:
        rule = "the label must be one of " + ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    numbered = []
    for row in rows:
        label = row.label or ""
        place = places.get(label) if names else int(label) if _INTEGER.fullmatch(label) else None
        if place is None:
            faults.add(row.number, rule, repr(label[:40]))
        elif known is not None and place not in known:
            faults.add(row.number, "the label must be one that occurs in train", repr(label[:40]))
        else:
            numbered.append((row, place))
    return numbered


def _value(label: str | None) -> float | None:
    return float(label) if label and _NUMBER.fullmatch(label) else None


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


class CorpusWarning(UserWarning):
    """Something about the texts that their reader should know before trusting a figure."""
