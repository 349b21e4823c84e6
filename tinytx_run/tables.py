"""Texts of one's own: the rows of .txt, .tsv, .csv and .jsonl files, and of the library `datasets`."""

from __future__ import annotations

import csv
import gzip
import io
import json
import logging
import re
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HUB_PREFIX = "hf:"
SUFFIXES = (".txt", ".tsv", ".csv", ".jsonl")
SPLIT_FILES = {"train": ("train",), "valid": ("valid", "validation", "dev", "val"), "test": ("test",)}
TEXT_COLUMN, LABEL_COLUMN = "text", "label"
DELIMITERS = ",;\t|"  # of a .csv
MAX_CHARS = 1_000_000  # of a text
MAX_CLASSES = 100  # with names; more different words are not labels
INTEGER = re.compile("[0-9]{1,9}")
NUMBER = re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,9})?")
NO_LABEL = -1  # in place of a label, by the convention of the library datasets

# Each with its number in the file, counted from 1.
Lines = list[tuple[int, str]]
Cells = Iterator[tuple[int, dict[str, Any]]]  # column to value


class CorpusWarning(UserWarning):
    """Something about the texts that a reader of figures should know."""


@dataclass(frozen=True)
class Options:
    """How files are read, see `tinytx_run.corpora.load_corpus`."""

    text_column: str | None = None
    label_column: str | None = None
    label_names: tuple[str, ...] = ()
    skip_bad_rows: bool = False


@dataclass
class Table:
    """The rows of a file or dataset that can be used, and the others, by the rule that they break.

    Examples
    --------
    >>> table = Table("notes.tsv")
    >>> table.refuse(7, "must be a label, a tab and a text", "no tab")
    >>> table.settle(n_good=8, skip=False)
    Traceback (most recent call last):
    ValueError: notes.tsv, line 7: must be a label, a tab and a text, got no tab
    """

    source: Path | str
    unit: str = "line"
    rows: list[tuple[int, str, str | None]] = field(default_factory=list)  # number from 1, text, label
    refused: dict[str, dict[int, str]] = field(default_factory=dict)  # rule -> number -> what it has instead

    def refuse(self, number: int, rule: str, got: str) -> None:
        """Note that a row, counted from 1, breaks a rule."""
        self.refused.setdefault(rule, {}).setdefault(number, got)

    def settle(self, n_good: int, skip: bool) -> None:
        """Raise a ValueError for the rows that were refused, or warn that they are skipped."""
        if not self.refused:
            return
        (number, rule, got), *others = sorted(
            (min(rows), rule, rows[min(rows)]) for rule, rows in self.refused.items()
        )
        n_bad = len(set().union(*self.refused.values()))
        message = f"{self.source}, {self.unit} {number}: {rule}, got {got}"
        if n_bad > 1:
            message += f"; {n_bad:,} of {n_good + n_bad:,} rows cannot be used"
        for first, rule, _ in others:
            n_rows = len(self.refused[rule])
            rows = f"{n_rows:,} rows, from" if n_rows > 1 else "1 row,"
            message += f"; {rule} ({rows} {self.unit} {first})"
        if not skip:
            raise ValueError(message)
        warnings.warn(f"{message}: skipped, {n_good:,} rows are left", CorpusWarning, stacklevel=4)

    def label_names(self) -> tuple[str, ...]:
        """The different labels in order, numbers by value; empty where all are integers from 0 up."""
        names = {label or "" for *_, label in self.rows}
        if all(map(INTEGER.fullmatch, names)):
            return ()
        if len(names) > MAX_CLASSES:
            got = f"{len(names):,}: {', '.join(repr(name[:20]) for name in sorted(names)[:3])}, ..."
            raise ValueError(f"{self.source} must have at most {MAX_CLASSES} different labels, got {got}")
        return tuple(sorted(names, key=lambda name: (float(name) if NUMBER.fullmatch(name) else 1e9, name)))

    def number_labels(self, names: Sequence[str]) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """Texts, and labels as integers; rows whose label is not among the names are refused."""
        rule = "the label must be an integer from 0 up"
        if names:
            rule = "the label must be one of " + ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        texts, labels = [], []
        for number, text, label in self.rows:
            label = label or ""
            if label in names if names else INTEGER.fullmatch(label):
                texts.append(text)
                labels.append(names.index(label) if names else int(label))
            else:
                self.refuse(number, rule, repr(label[:40]))
        return tuple(texts), tuple(labels)


def read_lines(path: Path) -> Lines:
    """Read the lines that are not blank, each with its number counted from 1 and without its end.

    The file is UTF-8 text, with or without a byte order mark, with either line end. A ValueError names it if
    it is missing or holds no text, and the first line that cannot be used.
    """
    table = Table(path)
    lines = _usable_lines(path, table)
    table.settle(len(lines), skip=False)
    if not lines:
        raise ValueError(f"{path} must hold at least one line of text, got none")
    return lines


def read_aligned(first: Path, second: Path) -> list[tuple[int, str, str]]:
    """Read numbered lines of two files that belong together; a ValueError names a line that one lacks."""
    sides = {path: dict(read_lines(path)) for path in (first, second)}
    for number in sorted(sides[first].keys() ^ sides[second].keys()):
        full, empty = (first, second) if number in sides[first] else (second, first)
        raise ValueError(f"{empty}, line {number}: must hold text, as this line of {full.name}, got none")
    return [(number, line, sides[second][number]) for number, line in sides[first].items()]


def _read_table(path: Path, options: Options) -> Table:
    """Read the rows of a file with one of the `SUFFIXES`."""
    table, suffix = Table(path), path.suffix.lower()
    columns_named = options.text_column is not None or options.label_column is not None
    if suffix == ".txt":
        if columns_named or options.label_names:
            raise ValueError(f"{path} is a .txt: it must be read without columns and labels, got some")
        table.rows = [(number, line, None) for number, line in _usable_lines(path, table)]
    elif suffix == ".tsv" and not columns_named:
        for number, line in _usable_lines(path, table):
            label, tab, text = line.partition("\t")
            if not tab:
                table.refuse(number, "must be a label, a tab and a text", "no tab")
            elif not text.strip():
                table.refuse(number, "must have a text after the tab", "no text")
            elif not options.label_names and not INTEGER.fullmatch(label.strip()):
                table.refuse(number, "the label must be an integer from 0 up", repr(label[:40]))
            else:
                table.rows.append((number, text, label.strip()))
    elif suffix == ".jsonl":
        _select(_read_objects(path, table), options, table)
    else:
        _select(_read_cells(path, options, table), options, table)
    return table


def read_own(name: str, options: Options) -> tuple[str, dict[str, Table], tuple[str, ...]] | None:
    """Read a file, a folder or a dataset of the library ``datasets``; None for a name of another kind.

    Returns
    -------
    tuple
        Title, tables by split, and names of the labels, empty where they are not known.
    """
    path = Path(name)
    if name.startswith(HUB_PREFIX) or (name and _is_saved_dataset(path)):
        title, tables, names = _read_dataset(name.removeprefix(HUB_PREFIX), options)
        return title, tables, options.label_names or names
    if name and path.is_dir():
        # With a slash, as a folder called "world" is not the world.
        return f"{path.resolve().name}/", _read_folder(path, options), options.label_names
    if path.suffix.lower() in SUFFIXES:
        return path.name, {"train": _read_table(path, options)}, options.label_names
    return None


def _is_saved_dataset(folder: Path) -> bool:
    """Whether a folder is what ``save_to_disk`` of the library datasets writes."""
    one_split = ("dataset_info.json", "state.json")
    return (folder / "dataset_dict.json").is_file() or all((folder / name).is_file() for name in one_split)


def _read_folder(folder: Path, options: Options) -> dict[str, Table]:
    """The file for train and, if there are any, those for valid and test."""
    tables: dict[str, Table] = {}
    for split, stems in SPLIT_FILES.items():
        files = [file for stem in stems for end in SUFFIXES if (file := folder / (stem + end)).is_file()]
        if len(files) > 1:
            names = " and ".join(file.name for file in files[:2])
            raise ValueError(f"{folder} must hold one file for {split}, got {names}")
        if files:
            tables[split] = _read_table(files[0], options)
    if "train" not in tables:
        known = ", ".join(f"train{suffix}" for suffix in SUFFIXES)
        raise ValueError(f"{folder} must hold one of {known}, got none of them")
    return tables


def _read_dataset(name: str, options: Options) -> tuple[str, dict[str, Table], tuple[str, ...]]:
    """Title, tables by split and names of the labels of ``NAME``, ``NAME:CONFIGURATION`` or a folder."""
    try:
        import datasets
    except ImportError as error:
        raise ValueError(
            f"{HUB_PREFIX}{name} must be read with the library datasets, which is not installed: "
            "pip install datasets"
        ) from error
    if not name:
        raise ValueError(f"{HUB_PREFIX}NAME must name a dataset, got nothing after the colon")
    saved = _is_saved_dataset(Path(name))
    title = f"{HUB_PREFIX}{Path(name).name if saved else name}"
    network_log = logging.getLogger("huggingface_hub")
    level = network_log.level
    network_log.setLevel(logging.ERROR)  # else it warns of each attempt
    try:
        found = datasets.load_from_disk(name) if saved else datasets.load_dataset(*name.split(":", 1))
    except Exception as error:  # the library has many ways to fail, some its own: its first line says which
        reason = (str(error).strip() or type(error).__name__).partition("\n")[0]
        raise ValueError(f"{title} must be a dataset that can be loaded, got: {reason}") from error
    finally:
        network_log.setLevel(level)
    parts = found if isinstance(found, Mapping) else {"train": found}
    tables: dict[str, Table] = {}
    names: tuple[str, ...] = ()
    for split, stems in SPLIT_FILES.items():
        for part in [parts[stem] for stem in stems if stem in parts][:1]:
            column = options.label_column or LABEL_COLUMN
            classes: Sequence[str] = getattr(part.features.get(column), "names", None) or ()
            if classes and set(part[column]) == {NO_LABEL}:
                warnings.warn(f"{title}: {split} has no labels: left out", CorpusWarning, stacklevel=5)
                continue
            rows = list(part)
            for row in rows if classes else ():  # labels are numbers of names
                known = isinstance(row[column], int) and row[column] != NO_LABEL
                row[column] = classes[row[column]] if known else None
            tables[split] = Table(f"{title} ({split})", unit="row")
            _select(enumerate(rows, start=1), options, tables[split])
            names = names or tuple(classes)
    if "train" not in tables:
        raise ValueError(f"{title} must have a split train, got {', '.join(parts) or 'none'}")
    return title, tables, names


def _read_text(path: Path) -> str:
    """The text of a file, in which a byte that is not UTF-8 is a lone surrogate, for `line_fault` to find."""
    if not path.is_file():
        raise ValueError(f"corpus file must exist, got {path}")
    content = path.read_bytes()
    if path.suffix == ".gz":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path} must be a whole gzip file, got a damaged one: {error}") from error
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise ValueError(f"{path} must be UTF-8 text, got the mark of UTF-16: save it as UTF-8")
    return content.decode("utf-8-sig", "surrogateescape")


def line_fault(text: str) -> tuple[str, str] | None:
    """The rule that a text breaks, and what it has instead."""
    if len(text) > MAX_CHARS:
        return f"must have at most {MAX_CHARS:,} characters", f"{len(text):,}"
    if bad := re.search("[\0\ud800-\udfff]", text):
        code = ord(bad[0])
        got = f"the byte 0x{code & 0xFF:02x}" if code == 0 or 0xDC80 <= code <= 0xDCFF else "a lone surrogate"
        return "must be UTF-8 text (save the file as UTF-8)", f"{got} as character {bad.start() + 1}"
    return None


def _usable_lines(path: Path, table: Table) -> Lines:
    """The lines that are not blank; the table refuses those that are no text."""
    lines = []
    for number, line in enumerate(_read_text(path).split("\n"), start=1):
        if fault := line_fault(line):
            table.refuse(number, *fault)
        elif line.strip():
            lines.append((number, line.removesuffix("\r")))
    return lines


def _read_objects(path: Path, table: Table) -> Cells:
    for number, line in _usable_lines(path, table):
        try:
            cells = json.loads(line)
        except (ValueError, RecursionError):
            cells = None
        if isinstance(cells, dict):
            yield number, cells
        else:
            table.refuse(number, "must be a JSON object", repr(line.strip()[:40]))


def _read_cells(path: Path, options: Options, table: Table) -> Cells:
    """The rows of a .csv, or of a .tsv, in which a quote is a character like others."""
    text, number = _read_text(path), 1
    form: dict[str, Any] = {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
    rows = []
    limit = csv.field_size_limit(len(text) + 1)  # else a cell of more than 131,072 characters is an error
    try:
        if path.suffix.lower() != ".tsv":
            form = {"delimiter": _delimiter(text, options), "strict": True}
        reader = csv.reader(io.StringIO(text, newline=""), **form)
        for cells in reader:
            rows.append((number, cells))
            number = reader.line_num + 1  # a cell may hold line ends
    except csv.Error as error:
        raise ValueError(
            f"{path}, line {number}: must be a row of a table, got one that cannot be parsed ({error}); is a "
            "quote never closed, or doubled within a text?"
        ) from error
    finally:
        csv.field_size_limit(limit)
    columns = [name.strip() for name in rows[0][1]] if rows else []
    for column in (options.text_column or TEXT_COLUMN, options.label_column or LABEL_COLUMN):
        if columns.count(column) > 1:
            raise ValueError(
                f"{path}, line 1: one column must be named {column}, got {columns.count(column)}"
            )
    for number, cells in rows[1:]:
        if len(cells) == len(columns):
            yield number, dict(zip(columns, cells, strict=True))
        elif cells:
            table.refuse(number, f"must have {len(columns)} cells, as the first line", str(len(cells)))


def _delimiter(text: str, options: Options) -> str:
    """The character that divides the first line into the needed columns, else into the most columns."""
    first, needed = [text.partition("\n")[0].partition("\r")[0]], {options.text_column or TEXT_COLUMN}
    headers = {sign: next(csv.reader(first, delimiter=sign), []) for sign in DELIMITERS}
    return max(DELIMITERS, key=lambda s: (needed <= {name.strip() for name in headers[s]}, len(headers[s])))


def _select(cells_of_rows: Cells, options: Options, table: Table) -> None:
    """Take text and label out of rows of cells, into the table."""
    text_column, label_column = options.text_column or TEXT_COLUMN, options.label_column or LABEL_COLUMN
    numbered = list(cells_of_rows)
    columns = list(dict.fromkeys(name for _, cells in numbered for name in cells))
    for option, column in (("text_column", text_column), ("label_column", options.label_column)):
        if numbered and column is not None and column not in columns:
            listed = ", ".join(name[:40] for name in columns[:20])
            listed = listed.encode(errors="backslashreplace").decode()  # may hold bytes that are no text
            raise ValueError(f"{option} must be a column of {table.source}, which has {listed}; got {column}")
    has_labels = label_column in columns
    for number, cells in numbered:
        text, value = cells.get(text_column), cells.get(label_column)
        label = str(int(value)) if isinstance(value, bool) else str(value).strip()
        if not isinstance(text, str) or not text.strip():
            table.refuse(number, f"must have a text in the column {text_column}", repr(text or None)[:40])
        elif fault := line_fault(text) or (line_fault(label) if has_labels else None):
            table.refuse(number, *fault)
        elif has_labels and (not isinstance(value, str | int | float) or value != value or not label):
            table.refuse(number, f"must have a label in the column {label_column}", repr(value or None)[:40])
        else:
            # The first condition finds no end of a line soon where there is none: spaces may be many.
            text = re.sub(r"(?<!\s)\s*[\r\n]\s*", " ", text.strip())
            table.rows.append((number, text, label if has_labels else None))
