"""A reader's own texts as a corpus: a file, a folder with a file a split, or a dataset of a library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tinytx.text.corpus import Corpus, Split
from tinytx.text.faults import Faults
from tinytx.text.files import read_lines, split_rows
from tinytx.text.labels import name_labels, number_labels
from tinytx.text.tables import Columns, Row, read_table

SUFFIXES = (".txt", ".tsv", ".csv", ".jsonl")
SPLIT_FILES = {"train": ("train",), "valid": ("valid", "validation", "dev", "val"), "test": ("test",)}
TXT_HELD_OUT, TSV_HELD_OUT = 0.05, 0.10  # of the different texts, for valid and for test each


@dataclass(frozen=True)
class Table:
    """The rows of one split, and what was wrong with others."""

    rows: list[Row]
    faults: Faults


@dataclass(frozen=True)
class Reading:
    """How rows are read.

    Parameters
    ----------
    columns : Columns
    label_names : tuple of str
        The labels that are known, in order: the first is class 0. Empty: those that are found.
    skip_bad_rows : bool
        Pass over rows that cannot be used, with a warning, where otherwise they are an error.
    """

    columns: Columns = Columns()
    label_names: tuple[str, ...] = ()
    skip_bad_rows: bool = False


def read_own(path: Path, how: Reading) -> Corpus:
    """Read a file, or a folder that holds a file a split, such as ``train.csv`` and ``test.csv``.

    Parameters
    ----------
    path : Path
    how : Reading

    Returns
    -------
    Corpus
        What has no file of its own is dealt out from train, see `assemble`.
    """
    files = _split_files(path) if path.is_dir() else {"train": path}
    tables = {}
    for split, file in files.items():
        faults = Faults(file, skip=how.skip_bad_rows)
        tables[split] = Table(_rows(file, how, faults), faults)
    names_are_found = how.columns.named or any(file.suffix.lower() != ".tsv" for file in files.values())
    return assemble(path.name, tables, how.label_names, names_are_found=names_are_found)


def assemble(
    name: str, tables: Mapping[str, Table], label_names: Sequence[str], *, names_are_found: bool = True
) -> Corpus:
    """Make a corpus of the rows of its splits.

    Parameters
    ----------
    name : str
    tables : mapping from str to Table
        "train" and perhaps "valid" and "test". From train alone all three are dealt out; without valid, it is
        dealt out from train.
    label_names : sequence of str
        If empty, and not `names_are_found`, labels must be integers.
    names_are_found : bool
        Whether the labels of train may be words, which then become the names.
    """
    train = tables["train"]
    labelled = any(row.label is not None for row in train.rows)
    names = tuple(label_names)
    if labelled and not names and names_are_found:
        names = name_labels(train.rows, train.faults)
    rows: dict[str, list[tuple[str, int | None]]] = {}
    known: set[int] | None = None
    for split, table in tables.items():
        if labelled:
            numbered = number_labels(table.rows, names, table.faults, known=known)
            rows[split] = [(row.text, place) for row, place in numbered]
            known = {place for _, place in numbered} if split == "train" else known
        else:
            rows[split] = [(row.text, None) for row in table.rows]
        table.faults.settle(len(rows[split]))
        if not rows[split]:
            raise ValueError(f"{table.faults.path} must hold at least one row that can be used, got none")
    if "valid" not in rows:
        share = TSV_HELD_OUT if labelled else TXT_HELD_OUT
        rows |= _dealt(train.faults.path, rows["train"], share, with_test="test" not in rows)
    splits = {split: _split(rows[split], labelled) for split in SPLIT_FILES if split in rows}
    return Corpus.from_splits(name, splits, label_names=names if labelled else ())


def _dealt(
    path: Path | str, rows: Sequence[tuple[str, int | None]], share: float, *, with_test: bool
) -> dict[str, list[tuple[str, int | None]]]:
    labels = [label for _, label in rows if label is not None] or None
    train, valid, test = split_rows(Path(path), [text for text, _ in rows], labels, share=share)
    if not with_test:
        train, test = sorted(train + test), []
    dealt = {"train": train, "valid": valid, "test": test}
    return {split: [rows[i] for i in chosen] for split, chosen in dealt.items() if chosen}


def _split(rows: Sequence[tuple[str, int | None]], labelled: bool) -> Split:
    labels = tuple(label for _, label in rows if label is not None)
    return Split(tuple(text for text, _ in rows), labels if labelled else None)


def _split_files(folder: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for split, stems in SPLIT_FILES.items():
        here = [folder / (stem + suffix) for stem in stems for suffix in SUFFIXES]
        here = [file for file in here if file.is_file()]
        if len(here) > 1:
            raise ValueError(
                f"{folder} must hold one file for {split}, got {here[0].name} and {here[1].name}"
            )
        if here:
            found[split] = here[0]
    if "train" not in found:
        raise ValueError(
            f"{folder} must hold train.txt, train.tsv, train.csv or train.jsonl (and may hold valid and "
            "test), got none of them"
        )
    return found


def _rows(file: Path, how: Reading, faults: Faults) -> list[Row]:
    suffix = file.suffix.lower()
    if suffix == ".txt":
        if how.columns.named or how.label_names:
            raise ValueError(f"{file} is a .txt: it must be read without columns and labels, got some")
        lines = read_lines(file, skip_bad_rows=how.skip_bad_rows, divide=True)
        return [Row(number, line) for number, line in lines]
    if suffix == ".tsv" and not how.columns.named:
        return _label_tab_text(file, how, faults)
    return read_table(file, how.columns, faults)


def _label_tab_text(file: Path, how: Reading, faults: Faults) -> list[Row]:
    rows = []
    for number, line in read_lines(file, skip_bad_rows=how.skip_bad_rows):
        label, tab, text = line.partition("\t")
        if not tab or not text.strip():
            faults.add(number, "must be a label, a tab and a text", "no text" if tab else "no tab")
        else:
            rows.append(Row(number, text, label.strip()))
    return rows
