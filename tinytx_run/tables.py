"""Texts of one's own: lines of a .txt, tables read with pandas, and datasets of the library `datasets`."""

from __future__ import annotations

import csv
import io
import json
import logging
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tinytx.settings import require
from tinytx_run.cells import DELIMITERS, Lines, delimiter, is_quoted, long_cells, one_line, split_cells
from tinytx_run.files import library
from tinytx_run.letters import (
    INTEGER,
    MAX_BYTES,
    MISSING,
    NUMBER,
    PERHAPS_MISSING,
    canonical_label,
    is_blank,
    plain,
    read_text,
    text_fault,
    warn,
)

HUB_PREFIX = "hf:"
SUFFIXES = (".txt", ".tsv", ".csv", ".jsonl", ".parquet")
SPLIT_FILES = {"train": ("train",), "valid": ("valid", "validation", "dev", "val"), "test": ("test",)}
STEMS = {stem for stems in SPLIT_FILES.values() for stem in stems}
TEXT_COLUMN, LABEL_COLUMN = "text", "label"
MAX_CLASSES = 100  # with names; more different words are not labels
COUNT = re.compile("(0|[1-9][0-9]*)(.0)?|True|False")  # spellings of a label that is the number of a class
HEADER = re.compile(r"[\"'\w]+([,;\t|][\"'\w]+)+")
# Excel may name its sign in a first line.
BEFORE_TABLE = re.compile(r'\A((?:[ \t]*(?:\r\n?|\n))*(?:"?(?i:sep) ?= ?(.)"?[,;\t|]*(?:\r\n?|\n))?)')


@dataclass(frozen=True)
class Options:
    """How files are read, see `tinytx_run.corpora.load_corpus`."""

    text_column: str | None = None
    label_column: str | None = None
    label_names: tuple[str, ...] = ()
    skip_bad_rows: bool = False
    labels: bool = True


@dataclass
class Table:
    """The rows of a file or dataset that can be used, and what is wrong with the others.

    Examples
    --------
    >>> table = Table("notes.tsv")
    >>> table.refuse(7, "must be a label, a tab and a text", "no tab")
    >>> table.settle(n_good=8)
    Traceback (most recent call last):
    ValueError: notes.tsv, line 7: must be a label, a tab and a text, got no tab
    """

    source: Path | str
    split: str = "train"
    unit: str = "line"
    rows: list[tuple[int, str, str | None]] = field(default_factory=list)  # number from 1, text, label
    refused: dict[str, dict[int, str]] = field(default_factory=dict)  # rule -> number -> what it has instead
    spellings: dict[str, set[str]] = field(default_factory=dict)  # of each label

    @property
    def labelled(self) -> bool:
        """Whether the rows have labels."""
        return any(label is not None for *_, label in self.rows)

    def add(self, number: int, text: str, label: str | None, spelt: object = None) -> None:
        """Take a row, its letters composed (NFC), and note how its label is spelt in the file."""
        self.rows.append((number, unicodedata.normalize("NFC", text), label))
        if label is not None:
            self.spellings.setdefault(label, set()).add(str(spelt).strip())

    def refuse(self, number: int, rule: str, got: str) -> None:
        """Note that a row, counted from 1, breaks a rule."""
        self.refused.setdefault(rule, {}).setdefault(number, got)

    def settle(self, n_good: int, skip: bool | None = None) -> None:
        """Raise a ValueError for the rows that were refused, or warn that they are skipped if they may be."""
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
            raise ValueError(message if skip is None else f"{message}; skip_bad_rows leaves such rows out")
        warn(f"{message}: skipped, {n_good:,} rows are left")

    def label_names(self) -> tuple[str, ...]:
        """The different labels in order, numbers by value; empty where all are integers from 0 up.

        A label keeps its spelling, if it has one only: 01 or 1E1 may be no numbers.
        """
        names = {label or "" for *_, label in self.rows}
        spelt = {label: {*map(plain, forms)} for label, forms in self.spellings.items()}
        if all(map(INTEGER.fullmatch, names)) and all(map(COUNT.fullmatch, set().union(*spelt.values()))):
            return ()
        if len(names) > MAX_CLASSES:
            got = f"{len(names):,}: {', '.join(repr(name[:20]) for name in sorted(names)[:3])}, ..."
            raise ValueError(f"{self.source} must have at most {MAX_CLASSES} different labels, got {got}")
        doubtful = [name for name in sorted(names) if name.casefold() in PERHAPS_MISSING]
        if "-1" in names and "-2" not in names and names - {"-1", "0", "1"}:
            doubtful.append("-1")
        if doubtful:
            words = f"{self.source}: {doubtful[0]} is taken for a class: if it means that a label is missing"
            warn(f"{words}, leave its rows out")
        ordered = sorted(names, key=lambda name: (float(name) if NUMBER.fullmatch(name) else 1e9, name))
        only = {name: [*forms][0] for name, forms in spelt.items() if len(forms) == 1}
        return tuple(only[name] if canonical_label(only.get(name)) == name else name for name in ordered)

    def number_labels(self, names: Sequence[str]) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """Texts, and labels as integers; rows whose label is not among the names are refused."""
        rule = "the label must be an integer from 0 up"
        if names:
            rule = "the label must be one of " + ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        numbers = {canonical_label(name): i for i, name in enumerate(names)}
        texts, labels = [], []
        for number, text, label in self.rows:
            label = label or ""
            known = numbers.get(label) if names else int(label) if INTEGER.fullmatch(label) else None
            if known is None:
                self.refuse(number, rule, repr(label[:40]))
            else:
                texts.append(text)
                labels.append(known)
        return tuple(texts), tuple(labels)


def read_lines(path: Path, own: bool = False) -> Lines:
    """Read the lines that are not blank, each with its number counted from 1 and without its end.

    The file is UTF-8 text, with or without a byte order mark, with any line end. A ValueError names it if it
    is missing or holds no text, and the first line that cannot be used.
    """
    table = Table(path)
    lines = _usable_lines(path, table, own)
    table.settle(len(lines))
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


def read_objects(path: Path, **fields: type) -> list[dict[str, Any]]:
    """Read JSON lines; a ValueError names the first that is no object with all of the fields."""
    objects = []
    for number, line in read_lines(path):
        cells = _parse_object(line)
        if not all(isinstance(cells.get(name), kind) for name, kind in fields.items()):
            rule = f"must be a JSON object with {', '.join(fields)}"
            raise ValueError(f"{path}, line {number}: {rule}, got {line[:60]!r}")
        objects.append(cells)
    return objects


def _parse_object(line: str) -> dict[str, Any]:
    """The JSON object of a line; empty where it is none, or has a name twice."""
    try:
        cells = json.loads(line, object_pairs_hook=_each_name_once)
    except (ValueError, RecursionError):
        cells = None
    return cells if isinstance(cells, dict) else {}


def _each_name_once(pairs: Lines) -> dict[Any, Any]:
    if len(cells := dict(pairs)) < len(pairs):
        raise ValueError
    return cells


def read_own(name: str, options: Options) -> tuple[str, dict[str, Table], tuple[str, ...]]:
    """Title, tables by split (none for a name of another kind), and the names of labels that are known."""
    path = Path(name)
    if name.startswith(HUB_PREFIX) or (name and _is_saved_dataset(path)):
        title, tables, names = _read_dataset(name.removeprefix(HUB_PREFIX), options)
        return title, tables, options.label_names or names
    if name and path.is_dir():
        # With a slash, as a folder called "world" is not the world.
        return f"{path.resolve().name}/", _read_folder(path, options), options.label_names
    if path.suffix.lower() in SUFFIXES:
        return path.name, {"train": _read_table(Table(path), path, options)}, options.label_names
    return name, {}, ()


def _is_saved_dataset(folder: Path) -> bool:
    """Whether a folder is what ``save_to_disk`` of the library datasets writes."""
    one_split = ("dataset_info.json", "state.json")
    return (folder / "dataset_dict.json").is_file() or all((folder / name).is_file() for name in one_split)


def _read_folder(folder: Path, options: Options) -> dict[str, Table]:
    """The file for train and, if there are any, those for valid and test."""
    tables: dict[str, Table] = {}
    rest = [
        file  # test.csv.gz is one that is not read
        for file in sorted(folder.iterdir())
        if file.suffix.lower() in SUFFIXES or file.name.lower().partition(".")[0] in STEMS
    ]
    for split, stems in SPLIT_FILES.items():
        names = [stem + end for stem in stems for end in SUFFIXES]
        files = [file for name in names for file in rest if file.name.lower() == name]
        rest = [file for file in rest if file not in files]
        if len(files) > 1:
            got = " and ".join(file.name for file in files[:2])
            raise ValueError(f"{folder} must hold one file for {split}, got {got}")
        if files:
            tables[split] = _read_table(Table(files[0], split), files[0], options)
    if "train" not in tables:
        known = ", ".join(f"train{suffix}" for suffix in SUFFIXES)
        raise ValueError(f"{folder} must hold one of {known}, got none of them")
    _warn_of_rest(folder, [file.name for file in rest])
    return tables


def _warn_of_rest(source: object, names: Sequence[str]) -> None:
    if names:
        warn(f"{source}: {', '.join(names)} are no split: not read")


def _read_dataset(name: str, options: Options) -> tuple[str, dict[str, Table], tuple[str, ...]]:
    """Title, tables by split and names of the labels of ``NAME``, ``NAME:CONFIGURATION`` or a folder."""
    datasets = library("datasets", f"reading {HUB_PREFIX}{name}")
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
    column = options.label_column or LABEL_COLUMN
    for split, stems in SPLIT_FILES.items():
        for part in [parts[stem] for stem in stems if stem in parts][:1]:
            frame = _frame(part.with_format("arrow")[:])
            classes = getattr(part.features.get(column), "names", None)
            if classes:  # a label is the number of a name, or -1 where there is none
                frame[column] = frame[column].map(dict(enumerate(classes)))
                names = names or tuple(classes)
            tables[split] = Table(f"{title} ({split})", split, unit="row")
            _select(frame, options, tables[split])
    if "train" not in tables:
        raise ValueError(f"{title} must have a split train, got {', '.join(parts) or 'none'}")
    _warn_of_rest(title, [part for part in parts if part not in STEMS])
    return title, tables, names


def _usable_lines(path: Path, table: Table, own: bool = True) -> Lines:
    """The lines that are not blank; the table refuses those that are no text."""
    lines = []
    for number, line in enumerate(re.split(r"\r*\n|\r", read_text(path, own)), start=1):  # old Macs write \r
        if fault := text_fault(line):
            table.refuse(number, *fault)
        elif not is_blank(line):
            lines.append((number, line))
    return lines


def _read_table(table: Table, path: Path, options: Options) -> Table:
    """Read the rows of a file with one of the `SUFFIXES` into a table."""
    suffix, columns_named = path.suffix.lower(), bool(options.text_column or options.label_column)
    if suffix == ".txt":
        if columns_named or options.label_names:
            raise ValueError(f"{path} is a .txt: it must be read without columns and labels, got some")
        lines = _usable_lines(path, table)
        for number, line in lines:
            table.add(number, line, None)
        if lines and (looks := _looks_of(lines)):
            warn(f"{path}: its lines look like {looks}, all of which is taken for text: is it no .txt?")
    elif suffix != ".tsv" or columns_named or not _read_label_tab_text(path, options, table):
        read = {".jsonl": _read_jsonl, ".parquet": _read_parquet}.get(suffix, _read_delimited)
        _select(read(library("pandas", f"reading {path}"), path, options, table), options, table)
    return table


def _looks_of(lines: Lines) -> str | None:
    """What the lines of a .txt are in place of texts; None if nothing speaks against these."""
    n_tabs, first = {line.count("\t") for _, line in lines}, lines[0][1]
    if re.match(r"\s*[\[{]\s*([\[{\"]|$)", first):
        return "those of a .jsonl or another JSON"
    if first.startswith("__label__") or any(" --> " in line for _, line in lines[:3]):
        return "those of fastText or of subtitles"
    if HEADER.fullmatch(first) and TEXT_COLUMN in re.findall(r"\w+", first):
        return "rows of a .csv"
    for sign in DELIMITERS:  # with a label in each line
        cells = [line.rpartition(sign) for _, line in lines]
        if all(before for before, *_ in cells) and 2 * len({label for *_, label in cells}) <= len(lines):
            return "rows of a .csv"
    return "rows of a .tsv" if len(n_tabs) == 1 and 0 not in n_tabs else None


def _read_label_tab_text(path: Path, options: Options, table: Table) -> bool:
    """Read lines of a label, a tab and a text; False where the first line names columns, as of pandas."""
    rows = split_cells(_usable_lines(path, table))
    for _, cells in [row for row in rows[:2] if not BEFORE_TABLE.findall(f"{row[1][0]}\n")[0][1]][:1]:
        names = set(map(plain, cells))
        if TEXT_COLUMN in names and not any(INTEGER.fullmatch(x) or x in options.label_names for x in names):
            return False
    if table.split != "train" and all(len(cells) == 1 for _, cells in rows):
        for number, (text,) in rows:
            table.add(number, text, None)
        return True
    words = [label for _, (label, *_) in rows if not INTEGER.fullmatch(canonical_label(label) or "")]
    if words and not options.labels:
        warn(f"{path}: the first column, such as {words[0][:40]!r}, is taken for labels: not read")
    for number, (label, *cells) in rows:
        text, known = "\t".join(cells), canonical_label(label) if options.labels else None
        if not cells:
            table.refuse(number, "must be a label, a tab and a text", "no tab")
        elif is_blank(text) or MISSING.fullmatch(text.strip()):
            table.refuse(number, "must have a text after the tab", "no text" if is_blank(text) else text)
        elif options.labels and not options.label_names and not INTEGER.fullmatch(known or ""):
            rule = "the label must be an integer from 0 up, or one of the words that label_names gives"
            table.refuse(number, rule, repr(label[:40]))
        else:
            table.add(number, text, known, label)
    if rows and (n := min(len(cells) for _, cells in rows)) > 2:
        message = f"{path} has {n} columns: all after the first are the text, unless the first line"
        warn(f"{message} names them and text_column is given")
    return True


def _read_jsonl(pandas: Any, path: Path, _: Options, table: Table) -> Any:
    objects = {}
    for number, line in _usable_lines(path, table):
        if cells := _parse_object(line):
            objects[number] = cells
        else:
            rule = "must be a JSON object that has each name once (one object a line)"
            table.refuse(number, rule, repr(line.strip()[:40]))
    return pandas.DataFrame(list(objects.values()), index=list(objects), dtype=object)


def _read_parquet(pandas: Any, path: Path, _: Options, table: Table) -> Any:
    pyarrow = library("pyarrow", f"reading {path}")
    from pyarrow.parquet import ParquetFile

    batches, n_bytes = [], 0
    try:
        with ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=1_000):  # as few bytes may unpack to many
                columns = [
                    one.dictionary_decode() if hasattr(one, "indices") else one for one in batch.columns
                ]
                batches.append(pyarrow.RecordBatch.from_arrays(columns, batch.schema.names))
                if (n_bytes := n_bytes + batches[-1].nbytes) > MAX_BYTES:
                    raise ValueError(f"more than {MAX_BYTES:,} bytes when it is unpacked")
            schema = None if batches else file.schema_arrow
            frame = _frame(pyarrow.Table.from_batches(batches, schema))
    except (ValueError, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"{path} must be a whole .parquet file, got another: {reason}") from error
    table.unit = "row"
    return frame


def _frame(table: Any) -> Any:
    """A table of pyarrow with rows from 1; integers next to nulls, and 0.1 in 32 bits, stay what they are."""
    frame = table.to_pandas(integer_object_nulls=True)
    for i, kind in enumerate(frame.dtypes):
        if kind == "float32":
            frame.isetitem(i, frame.iloc[:, i].astype(str).astype(float))
    return frame.set_axis(range(1, len(frame) + 1))


@long_cells()
def _read_delimited(pandas: Any, path: Path, options: Options, table: Table) -> Any:
    """The rows of a .csv or .tsv by number, as spreadsheets count; the first one names the columns."""
    table.unit, text = "row", read_text(path)
    before, sign = BEFORE_TABLE.findall(text)[0]
    first, text = 1 + len(before.splitlines()), text[len(before) :]
    is_tsv = path.suffix.lower() == ".tsv"
    head: list[str] = []
    whole: dict[int, list[str]] = {}
    number = first - 1
    try:
        sign = "\t" if is_tsv else sign or delimiter(text, plain(options.text_column or TEXT_COLUMN))
        rows = csv.reader(
            io.StringIO(text, newline=""),
            delimiter=sign,
            skipinitialspace=f"{sign} " in re.split("[\r\n]", text, maxsplit=1)[0],
            quoting=csv.QUOTE_NONE if is_tsv and not is_quoted(text) else csv.QUOTE_MINIMAL,
            strict=True,
        )
        for number, cells in enumerate(rows, start=first):
            if not head or not cells:  # blank lines may come before and between
                head = head or cells
            elif [cell.strip().casefold() for cell in cells] == [name.strip().casefold() for name in head]:
                table.refuse(number, "must hold values", "the names of the columns again")
            elif len(cells) == len(head):
                whole[number] = cells
            else:
                table.refuse(number, f"must have {len(head)} cells, as the first row", str(len(cells)))
    except csv.Error as error:
        raise ValueError(
            f"{path}, row {number + 1}: must be a row of a table, got one that cannot be parsed ({error}); "
            "is a quote never closed, or not doubled within a text?"
        ) from error
    values: set[str] = set()  # of all cells, which are read where one holds what may be a row
    for number, cells in whole.items():
        # A row that was swallowed has as many cells, one of which, its label, other rows have, too.
        inner = [line.split(sign) for cell in cells for line in cell.splitlines() if line != cell]
        if rows_within := [set(map(str.strip, row)) for row in inner if len(row) == len(head)]:
            values = values or {cell.strip() for row in whole.values() for cell in row} - {""}
        if not all(map(values.isdisjoint, rows_within)):
            words = "a quoted cell holds lines that look like rows: is a quote missing?"
            warn(f"{path}, row {number}: {words}")
    columns = pandas.Index(head, dtype=object)
    return pandas.DataFrame([*whole.values()], index=[*whole], columns=columns, dtype=object)


def _select(frame: Any, options: Options, table: Table) -> None:
    """Take text and label out of the rows of a frame, whose index is their numbers, into the table."""
    frame, columns = frame.astype(object).where(frame.notna(), None), [*map(plain, frame.columns)]
    text_column = plain(options.text_column or TEXT_COLUMN)
    label_column = plain(options.label_column or LABEL_COLUMN)
    asked = options.label_column if options.labels and table.split == "train" else None
    two = not options.labels or text_column != label_column
    require(two, "text_column and label_column must be two columns", f"{text_column} twice")
    for option, column in (("text_column", text_column), ("label_column", label_column)):
        if (n := columns.count(column)) > 1:
            raise ValueError(f"{table.source}: one column must be named {column}, got {n}")
        if columns and column not in columns:
            listed = ", ".join(name[:40] for name in columns[:20])
            listed = listed.encode(errors="backslashreplace").decode()  # may hold bytes that are no text
            has = f"must be a column of {table.source}, which has {listed}; got {column}"
            if column == text_column or asked:
                raise ValueError(f"{option} {has}")
            if options.labels and len(columns) > 1:
                warn(f"label_column {has}: its texts are read without labels")
    texts, values = (
        frame.iloc[:, columns.index(column)] if column in columns else [None] * len(frame)
        for column in (text_column, label_column if options.labels else None)
    )
    labels = [canonical_label(value) for value in values]
    scalars = (str, int, float, type(None))  # a list or an object is no label, but meant as one
    labelled = bool(asked) or any(label is not None for label in labels)
    labelled |= not all(isinstance(value, scalars) for value in values)
    if words := [] if labelled else [value for value in values if isinstance(value, str) and value.strip()]:
        warn(f"{table.source}: all labels, such as {words[0]!r}, are taken for missing: it is read without")
    for number, text, value, label in zip(frame.index, texts, values, labels, strict=True):
        if not isinstance(text, str) or is_blank(text) or MISSING.fullmatch(text.strip()):
            table.refuse(number, f"must have a text in the column {text_column}", repr(text)[:40])
        elif fault := text_fault(text) or text_fault(label or ""):
            table.refuse(number, *fault)
        elif labelled and label is None:
            table.refuse(number, f"must have a label in the column {label_column}", repr(value)[:40])
        else:
            table.add(number, one_line(text.strip()), label, value)
