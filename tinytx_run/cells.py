"""Cells of a table that is written as text: what divides them, their quotes, and ends of lines within."""

from __future__ import annotations

import contextlib
import csv
import io
import re
from collections.abc import Iterator

from tinytx_run.letters import MAX_BYTES, plain

DELIMITERS = ",;\t|"  # of a .csv
QUOTED_TSV = re.compile(r'(?:(?:"(?:[^"]|"")*+"|[^"\t\r\n]*+)(?:[\t\r\n]|\Z))*+')

Lines = list[tuple[int, str]]  # each with its number in the file, counted from 1


def is_quoted(tsv: str) -> bool:
    """Whether a program wrote quotes around cells of a .tsv, which read as such agree with it.

    It doubles quotes within, quotes in every line, or has ends of lines within: then all rows have as many
    cells only if quotes are read, and no tab within, which would be that of another row.
    """
    lines = [line for line in re.split("[\r\n]+", tsv) if line.strip()]
    if not QUOTED_TSV.fullmatch(tsv):
        return False
    if '""' in tsv or all('"' in line for line in lines):
        return True
    rows = [cells for cells in csv.reader(io.StringIO(tsv, newline=""), delimiter="\t") if cells]
    n_cells = {len(cells) for cells in rows}
    holds_tab = any("\t" in cell for cells in rows for cell in cells)
    return len({line.count("\t") for line in lines}) > 1 == len(n_cells) and not holds_tab


@contextlib.contextmanager
def long_cells() -> Iterator[None]:
    """Let the module csv read a cell of more than 131,072 characters, which is an error by default."""
    limit = csv.field_size_limit(MAX_BYTES)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


@long_cells()
def split_cells(lines: Lines) -> list[tuple[int, list[str]]]:
    """The cells of numbered lines of a .tsv; a quote is a character like others unless pandas wrote it."""
    text = "\n".join(line for _, line in lines)
    if not is_quoted(text):
        return [(number, line.split("\t")) for number, line in lines]
    rows, n_read = [], 0
    reader = csv.reader(io.StringIO(text, newline=""), delimiter="\t")
    for cells in reader:
        rows.append((lines[n_read][0], [one_line(cell) for cell in cells]))
        n_read = reader.line_num
    return rows


def one_line(cell: str) -> str:
    """A cell with a space for each end of a line."""
    # The condition finds no end of a line soon where there is none: spaces may be many.
    return re.sub(r"(?<!\s)\s*[\r\n]\s*", " ", cell)


def delimiter(text: str, needed: str) -> str:
    """The character that divides the first row into columns with the needed one, else into the most."""
    rows = {
        sign: csv.reader(io.StringIO(text, newline=""), delimiter=sign, skipinitialspace=True)
        for sign in DELIMITERS
    }
    columns = {sign: [plain(name) for name in next(row, [])] for sign, row in rows.items()}
    return max(DELIMITERS, key=lambda sign: (needed in columns[sign], len(columns[sign])))
