"""Corpora by name or by file, each split so that what is reported never stood in training."""

from __future__ import annotations

import dataclasses
import functools
import os
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tinytx.text.reading import (
    LABEL_COLUMN,
    Columns,
    CorpusWarning,
    Faults,
    Row,
    name_labels,
    number_labels,
    read_lines,
    read_table,
    select,
    split_rows,
)


@dataclass(frozen=True)
class Split:
    """Texts that serve one purpose, with a label each or with none at all.

    Parameters
    ----------
    texts : tuple of str
        At least one.
    labels : tuple of int, optional
        From 0 up, one for each text.

    Examples
    --------
    >>> len(Split(("un beau livre", "un livre raté"), (1, 0)))
    2
    """

    texts: tuple[str, ...]
    labels: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if not self.texts:
            raise ValueError("a split must hold at least one text, got none")
        if self.labels is not None and len(self.labels) != len(self.texts):
            raise ValueError(
                f"labels must be as many as texts, got {len(self.labels)} labels, {len(self.texts)} texts"
            )

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class Corpus:
    """A corpus in its splits.

    Parameters
    ----------
    name : str
        A name of `list_corpora`, or the name of the file.
    train, valid : Split
        To learn from, and to choose settings by.
    test : Split, optional
        To report on; it selects nothing.
    licence, source : str
        As stated where the texts come from; empty for a file of one's own.
    label_names : tuple of str
        What the labels 0, 1, ... mean; empty where that is not known.
    card : str
        What the texts were made of, for a corpus that differs from machine to machine.
    """

    name: str
    train: Split
    valid: Split
    test: Split | None = None
    licence: str = ""
    source: str = ""
    label_names: tuple[str, ...] = ()
    card: str = ""

    @classmethod
    def from_splits(
        cls,
        name: str,
        splits: Mapping[str, Split],
        *,
        licence: str = "",
        source: str = "",
        label_names: tuple[str, ...] = (),
        card: str = "",
    ) -> Corpus:
        """A corpus of splits by name: train, valid, and test where there is one."""
        test = splits.get("test")
        return cls(name, splits["train"], splits["valid"], test, licence, source, label_names, card)

    @property
    def splits(self) -> dict[str, Split]:
        """The splits that exist, by name."""
        named = {"train": self.train, "valid": self.valid, "test": self.test}
        return {name: split for name, split in named.items() if split is not None}

    @property
    def n_classes(self) -> int | None:
        """As many as there are names, else one more than the largest label; None without labels."""
        if self.train.labels is None:
            return None
        return len(self.label_names) or 1 + max(max(split.labels or ()) for split in self.splits.values())

    def repeated(self) -> dict[str, int]:
        """How many texts of each held-out split stand, word for word, in the training split too."""
        seen = set(self.train.texts)
        return {
            name: sum(text in seen for text in split.texts)
            for name, split in self.splits.items()
            if name != "train"
        }


@dataclass(frozen=True)
class CorpusInfo:
    """One row of `list_corpora`: what a named corpus is, and whether it can be read now."""

    name: str
    description: str
    labelled: bool
    licence: str
    source: str
    available: bool


SHOWN = 60  # characters of a text that is named


def without_repeats(corpus: Corpus) -> Corpus:
    """Keep a text that stands in several splits only in the one that matters most: test, then valid.

    So what is reported stays complete, and nothing of it was learned from.

    Parameters
    ----------
    corpus : Corpus

    Returns
    -------
    Corpus
        Equal texts within a split stay.

    Raises
    ------
    ValueError
        If a split would be empty.
    """
    seen: set[str] = set()
    splits: dict[str, Any] = {}
    for name, split in reversed(corpus.splits.items()):
        kept = [i for i, text in enumerate(split.texts) if text not in seen]
        if not kept:
            raise ValueError(f"{corpus.name}: a split must keep a text, got only repeats in {name}")
        seen |= set(split.texts)
        texts = tuple(split.texts[i] for i in kept)
        labels = None if split.labels is None else tuple(split.labels[i] for i in kept)
        splits[name] = Split(texts, labels)
    return dataclasses.replace(corpus, **splits)


def warn_of_repeats(corpus: Corpus) -> None:
    """Warn if texts of a held-out split stand in train, or texts of test in valid, too; names the first."""
    splits = corpus.splits
    for held_out, other in (("valid", "train"), ("test", "train"), ("test", "valid")):
        if held_out not in splits:
            continue
        place = {text: i for i, text in reversed(list(enumerate(splits[other].texts)))}
        rows = [i for i, text in enumerate(splits[held_out].texts) if text in place]
        if rows:
            text = splits[held_out].texts[rows[0]]
            _warn(
                f"{corpus.name}: {len(rows):,} of {len(splits[held_out]):,} texts of {held_out} stand in "
                f"{other} too, word for word; the first is text {rows[0] + 1} of {held_out} and text "
                f"{place[text] + 1} of {other}: {_short(text)}; drop_repeats (--drop-repeats) takes them out "
                f"of {other}"
            )


def warn_of_classes(corpus: Corpus) -> None:
    """Warn if a class has no text in some split, or equal texts have different labels."""
    n_classes = corpus.n_classes
    if n_classes is None:
        return
    known_empty: set[int] = set()
    for split_name, split in corpus.splits.items():
        empty = sorted(set(range(n_classes)).difference(split.labels or (), known_empty))
        known_empty.update(empty if split_name == "train" else ())
        if empty:
            listed = ", ".join(_class(corpus, label) for label in empty[:5]) + (", ..." if empty[5:] else "")
            what = "can be learned" if split_name == "train" else "is tested"
            _warn(
                f"{corpus.name}: {len(empty):,} of {n_classes:,} classes have no text in {split_name}, so "
                f"nothing of them {what}: {listed}"
            )
    labels = defaultdict(set)
    for split in corpus.splits.values():
        for text, label in zip(split.texts, split.labels or (), strict=True):
            labels[text].add(label)
    torn = [text for text, found in labels.items() if len(found) > 1]
    if torn:
        found = " and ".join(_class(corpus, label) for label in sorted(labels[torn[0]])[:2])
        _warn(
            f"{corpus.name}: {len(torn):,} texts stand under different labels; the first, under {found}: "
            f"{_short(torn[0])}"
        )


def _class(corpus: Corpus, label: int) -> str:
    return f"{label} ({corpus.label_names[label]})" if corpus.label_names else str(label)


def _short(text: str) -> str:
    return repr(text if len(text) <= SHOWN else text[:SHOWN] + "...")


def _warn(message: str) -> None:
    warnings.warn(message, CorpusWarning, stacklevel=4)


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


WORLD_SIZES = {"train": 30_000, "valid": 2_000, "test": 2_000}
WORLD_SEED = 20_000  # of train; the next two seeds draw valid and test

_WORLD = CorpusInfo(
    name="world",
    description="generated French book reviews with exactly known probabilities; label 1 = positive",
    labelled=True,
    licence="CC BY 4.0",
    source="generated by tinytx",
    available=True,
)
# By name whether its texts have labels.
_DOWNLOADED = {"cls-books": True, "eltec-fra": False, "reader-reviews-fr": True, "tinyshakespeare": False}


def list_corpora(data_dir: str | os.PathLike[str] | None = None) -> tuple[CorpusInfo, ...]:
    """Name the corpora that `load_corpus` knows.

    Parameters
    ----------
    data_dir : path, optional
        Folder that holds one folder a corpus; it decides which corpora are available. Left out, it is where
        ``tinytx data get`` leaves them.

    Returns
    -------
    tuple of CorpusInfo

    Examples
    --------
    >>> [info.name for info in list_corpora()][:2]
    ['world', 'cls-books']
    """
    downloaded = (downloaded_info(name, data_dir, labelled) for name, labelled in _DOWNLOADED.items())
    from tinytx_course.labs.docstrings import DOCSTRINGS, PACKAGES

    return _WORLD, *downloaded, DOCSTRINGS, PACKAGES


def downloaded_info(name: str, data_dir: str | os.PathLike[str] | None, labelled: bool) -> CorpusInfo:
    """What a corpus is that ``tinytx data get`` brings."""
    from tinytx.text.download import data_folder, dataset

    known = dataset(name)
    return CorpusInfo(
        name=name,
        description=known.description,
        labelled=labelled,
        licence=known.licence,
        source=f"{known.citation} (github.com/{known.repository})",
        available=(data_folder(data_dir) / name).is_dir(),
    )


def load_corpus(
    name: str | os.PathLike[str],
    data_dir: str | os.PathLike[str] | None = None,
    *,
    text_column: str | None = None,
    label_column: str | None = None,
    label_names: Sequence[str] = (),
    skip_bad_rows: bool = False,
    drop_repeats: bool = False,
) -> Corpus:
    """Read a corpus by its name, or texts of one's own.

    Parameters
    ----------
    name : str or path
        A name of `list_corpora`; a file; a folder with a file a split, as ``train.csv`` and ``test.csv``;
        or ``hf:NAME``, a dataset of the library ``datasets`` or a folder that it saved. In a ``.txt`` each
        line is a document; in a ``.tsv`` each line is a label, a tab and a text, unless columns are named;
        for ``.csv`` and ``.jsonl`` see `read_table`. Blank lines are passed over.
    data_dir : path, optional
        Folder that holds one folder a corpus. Left out, it is where ``tinytx data get`` leaves them: what the
        environment variable ``TINYTX_DATA`` names, else the user's cache folder.
    text_column, label_column : str, optional
        Of a table; by default "text", and "label" where there is such a column.
    label_names : sequence of str
        The labels that are known, the first of which is class 0. By default the integers from 0 up, or, in
        tables, the words that occur in train, in the order of the alphabet.
    skip_bad_rows : bool
        Pass over rows of one's own that cannot be used, with a warning that counts them, where otherwise they
        are an error.
    drop_repeats : bool
        Take texts that stand in test, or in valid, out of the splits before it.

    Returns
    -------
    Corpus
        The splits of a file are the same each time, and equal texts stand in one split only. Without labels
        about 90, 5 and 5 of 100 of its different texts go to train, valid and test; with labels 80, 10 and 10
        of each.

    Raises
    ------
    ValueError
        If the name is unknown, or a file is missing, empty, too small to split, or has rows that cannot be
        used; the message counts them, and names the line and the fault of the first.

    Warns
    -----
    CorpusWarning
        If a text of a held-out split stands in train too, a class has no text, or rows were passed over.

    Notes
    -----
    Splits that come with a corpus are kept as they are. So are those of "world", drawn independently from the
    language: `Corpus.repeated` tells how many held-out texts also occur in training.
    """
    how = Reading(Columns(text_column, label_column), tuple(label_names), skip_bad_rows)
    from tinytx_course.labs.docstrings import DOCSTRINGS, PACKAGES, docstrings_corpus, packages_corpus

    made = {_WORLD.name: _world, DOCSTRINGS.name: docstrings_corpus, PACKAGES.name: packages_corpus}
    name = str(name)
    if name not in (*made, *_DOWNLOADED):
        corpus = _own(name, how)
    elif how != Reading():
        raise ValueError(f"columns, labels and rows may be told of texts of one's own, got the corpus {name}")
    else:
        corpus = made[name]() if name in made else _downloaded(name, data_dir)
    if drop_repeats:
        corpus = without_repeats(corpus)
    if name != _WORLD.name:
        warn_of_repeats(corpus)
        warn_of_classes(corpus)
    return corpus


def _own(name: str, how: Reading) -> Corpus:
    path = Path(name)
    if name.startswith(PREFIX):
        return read_hub(name.removeprefix(PREFIX), how)
    if name and path.is_dir():
        return read_hub(name, how) if is_saved(path) else read_own(path, how)
    if path.suffix.lower() in SUFFIXES:
        return read_own(path, how)
    known = ", ".join(info.name for info in list_corpora())
    raise ValueError(
        f"corpus must be one of {known} or the path of a {', '.join(SUFFIXES)} file, or of a folder of such, "
        f"or {PREFIX}NAME, got {name!r}"
    )


@functools.cache
def _world() -> Corpus:
    from tinytx.world.world import World

    world = World()
    splits = {}
    for seed, (split_name, size) in enumerate(WORLD_SIZES.items(), start=WORLD_SEED):
        reviews = world.reviews(size, seed=seed)
        splits[split_name] = Split(
            texts=tuple(" ".join(review.words) for review in reviews),
            labels=tuple(review.label for review in reviews),
        )
    return Corpus.from_splits(_WORLD.name, splits, licence=_WORLD.licence, source=_WORLD.source)


def _downloaded(name: str, data_dir: str | os.PathLike[str] | None) -> Corpus:
    from tinytx.text.download import corpus_folder, read_splits

    splits = read_splits(name, corpus_folder(name, data_dir))
    info = downloaded_info(name, data_dir, _DOWNLOADED[name])
    return Corpus.from_splits(name, splits, licence=info.licence, source=info.source)


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


def label_subset(split: Split, n_labels: int, seed: int) -> Split:
    """Some texts of a split, drawn by ``seed``, with as many of each class as can be.

    Examples
    --------
    >>> subset = label_subset(Split(tuple("abcdefgh"), (0, 1) * 4), 4, seed=0)
    >>> sorted(subset.labels)
    [0, 0, 1, 1]
    """
    labels = split.labels or ()
    if not 1 <= n_labels <= len(labels):
        raise ValueError(f"n_labels must be from 1 to {len(labels)}, the labels there are, got {n_labels}")
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(len(labels)).tolist()
    # The first text of each class, then the second of each, and so on.
    seen: dict[int, int] = {}
    rank = {}
    for index in shuffled:
        rank[index] = seen.get(labels[index], 0)
        seen[labels[index]] = rank[index] + 1
    chosen = sorted(sorted(shuffled, key=rank.__getitem__)[:n_labels])
    return Split(tuple(split.texts[i] for i in chosen), tuple(labels[i] for i in chosen))
