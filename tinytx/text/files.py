"""Files of text, read line by line with errors that name the line, and split without repeats."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from tinytx.text.corpus import CorpusWarning
from tinytx.text.faults import Faults

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
