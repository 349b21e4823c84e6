"""Corpora by name or by file, each in splits, so that reported texts were never in training."""

from __future__ import annotations

import csv
import dataclasses
import functools
import io
import json
import logging
import os
import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tinytx.text.download import SPLIT_SEED, corpus_folder, data_folder, dataset, join_subwords

HUB_PREFIX = "hf:"
SUFFIXES = (".txt", ".tsv", ".csv", ".jsonl")
SPLIT_FILES = {"train": ("train",), "valid": ("valid", "validation", "dev", "val"), "test": ("test",)}
TEXT_COLUMN, LABEL_COLUMN = "text", "label"
DELIMITERS = ",;\t|"  # of a .csv
MAX_CHARS = 1_000_000  # of a text
MAX_CLASSES = 100  # with names; more different words are not labels
INTEGER = re.compile("[0-9]{1,9}")
NO_LABEL = -1  # in place of a label, by the convention of the library datasets
UNLABELLED_SHARE, LABELLED_SHARE = 0.05, 0.10  # of the different texts, for valid and for test each
SHAKESPEARE_TRAIN = 0.9  # of the characters, from the beginning
LOWEST_STARS = -1  # the lowest label of reader-reviews-fr
WORLD_SIZES = {"train": 30_000, "valid": 2_000, "test": 2_000}
WORLD_SEED = 20_000  # of train; the next two seeds draw valid and test

Rows = list[tuple[int, str, str | None]]  # number in the file from 1, text, label


class CorpusWarning(UserWarning):
    """Something about the texts that a reader of figures should know."""


@dataclass(frozen=True)
class Split:
    """Texts of one purpose, all with a label or all without.

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
        To learn from, and to choose hyperparameters by.
    test : Split, optional
        To report on; it selects nothing.
    licence, source : str
        As stated where the texts come from; empty for a file of one's own.
    label_names : tuple of str
        Meaning of the labels 0, 1, ...; empty where unknown.
    """

    name: str
    train: Split
    valid: Split
    test: Split | None = None
    licence: str = ""
    source: str = ""
    label_names: tuple[str, ...] = ()

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


@dataclass(frozen=True)
class CorpusInfo:
    """One row of `list_corpora`: what a corpus is, and whether it can be read now."""

    name: str
    description: str
    labelled: bool
    licence: str
    source: str
    available: bool


def label_subset(split: Split, n_labels: int, seed: int) -> Split:
    """Some texts of a split, drawn by `seed`, with classes as balanced as possible.

    Examples
    --------
    >>> subset = label_subset(Split(tuple("abcdefgh"), (0, 1) * 4), 4, seed=0)
    >>> sorted(subset.labels)
    [0, 0, 1, 1]
    """
    labels = split.labels or ()
    if not 1 <= n_labels <= len(labels):
        raise ValueError(f"n_labels must be from 1 to {len(labels)}, the number of labels, got {n_labels}")
    shuffled = np.random.default_rng(seed).permutation(len(labels)).tolist()
    # The first text of each class, then the second of each, and so on.
    n_before: dict[int, int] = {}
    rank = {}
    for index in shuffled:
        rank[index] = n_before.get(labels[index], 0)
        n_before[labels[index]] = rank[index] + 1
    chosen = sorted(sorted(shuffled, key=rank.__getitem__)[:n_labels])
    return _at(split, chosen)


def _at(split: Split, rows: Sequence[int]) -> Split:
    labels = None if split.labels is None else tuple(split.labels[i] for i in rows)
    return Split(tuple(split.texts[i] for i in rows), labels)


_WORLD = CorpusInfo(
    name="world",
    description="generated French book reviews with exactly known probabilities; label 1 = positive",
    labelled=True,
    licence="CC BY 4.0",
    source="generated by tinytx",
    available=True,
)


def list_corpora(data_dir: str | os.PathLike[str] | None = None) -> tuple[CorpusInfo, ...]:
    """Name the corpora that `load_corpus` knows.

    Parameters
    ----------
    data_dir : path, optional
        Folder with one folder a corpus; it decides which corpora are available. By default the folder to
        which ``tinytx data get`` downloads.

    Examples
    --------
    >>> [info.name for info in list_corpora()][:2]
    ['world', 'cls-books']
    """
    return _WORLD, *(downloaded_info(name, data_dir, _READERS[name][1]) for name in _READERS)


def downloaded_info(name: str, data_dir: str | os.PathLike[str] | None, labelled: bool) -> CorpusInfo:
    """Description of a corpus that ``tinytx data get`` downloads."""
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
) -> Corpus:
    """Read a corpus by its name, or texts of one's own.

    Parameters
    ----------
    name : str or path
        A name of `list_corpora`; a file; a folder with a file a split, such as ``train.csv`` and
        ``test.csv``; or ``hf:NAME``, a dataset of the library ``datasets``, or a folder that it saved. In a
        ``.txt`` each line is a document. In a ``.tsv`` each line is a label, a tab and a text, unless columns
        are named. A ``.csv`` names its columns in its first line; a ``.jsonl`` holds a JSON object a line.
        Blank lines are skipped.
    data_dir : path, optional
        Folder with one folder a corpus. By default the folder to which ``tinytx data get`` downloads.
    text_column, label_column : str, optional
        Of a table; by default "text", and "label" if there is such a column.
    label_names : sequence of str
        The known labels; the first is class 0. By default integers from 0 up, or, in tables, the words that
        occur in train, in alphabetical order.
    skip_bad_rows : bool
        Skip rows that cannot be used, with a warning that counts them, instead of raising an error.

    Returns
    -------
    Corpus
        A file is split in the same way each time, with equal texts in one split. Without labels about 90, 5
        and 5 of 100 different texts are train, valid and test; with labels 80, 10 and 10 of each class.
        Splits that come with a corpus stay as they are, as do those of "world", drawn independently.

    Raises
    ------
    ValueError
        If the name is unknown, or a file is missing, too small to split, or has rows that cannot be used; the
        message names the first such row, and counts them.

    Warns
    -----
    CorpusWarning
        If a held-out text is also in train, a class has no text, or rows were skipped.
    """
    name, options = str(name), Options(text_column, label_column, tuple(label_names), skip_bad_rows)
    if name != _WORLD.name and name not in _READERS:
        corpus = _load_own(name, options)
    elif options != Options():
        raise ValueError(f"options must go with texts of one's own, got the corpus {name}")
    elif name == _WORLD.name:
        return _world()  # drawn independently, so short texts repeat
    else:
        read, labelled = _READERS[name]
        info = downloaded_info(name, data_dir, labelled)
        splits = read(corpus_folder(name, data_dir))
        corpus = Corpus(name, splits["train"], splits["valid"], splits.get("test"), info.licence, info.source)
    _warn_of_repeats(corpus)
    _warn_of_labels(corpus)
    return corpus


@functools.cache
def _world() -> Corpus:
    from tinytx.world.world import World

    world, splits = World(), {}
    for seed, (name, size) in enumerate(WORLD_SIZES.items(), start=WORLD_SEED):
        reviews = world.reviews(size, seed=seed)
        splits[name] = Split(tuple(" ".join(r.words) for r in reviews), tuple(r.label for r in reviews))
    return Corpus(
        _WORLD.name, splits["train"], splits["valid"], splits["test"], _WORLD.licence, _WORLD.source
    )


def _warn_of_repeats(corpus: Corpus) -> None:
    splits = corpus.splits
    for held_out, other in (("valid", "train"), ("test", "train"), ("test", "valid")):
        texts = splits[held_out].texts if held_out in splits else ()
        first = {text: i for i, text in reversed(list(enumerate(splits[other].texts, start=1)))}
        repeats = [(i, text) for i, text in enumerate(texts, start=1) if text in first]
        if repeats:
            i, text = repeats[0]
            _warn(
                f"{corpus.name}: {len(repeats):,} of {len(texts):,} texts of {held_out} are in {other} too, "
                f"word for word; the first is text {i} of {held_out}, text {first[text]} of {other}: "
                f"{text[:60]!r}"
            )


def _warn_of_labels(corpus: Corpus) -> None:
    labels = defaultdict(set)
    for name, split in corpus.splits.items():
        for text, label in zip(split.texts, split.labels or (), strict=split.labels is not None):
            labels[text].add(label)
        if empty := sorted(set(range(corpus.n_classes or 0)).difference(split.labels or ())):
            named = ", ".join(corpus.label_names[i] if corpus.label_names else str(i) for i in empty[:5])
            _warn(f"{corpus.name}: {len(empty):,} classes have no text in {name}, such as {named}")
    if mixed := [text for text in labels if len(labels[text]) > 1]:
        _warn(f"{corpus.name}: {len(mixed):,} texts have different labels, such as {mixed[0][:60]!r}")


def _warn(message: str) -> None:
    warnings.warn(message, CorpusWarning, stacklevel=4)


def _read_cls_books(folder: Path) -> dict[str, Split]:
    names = ("train", "valid", "test") if (folder / "test.label").exists() else ("train", "valid")
    return {name: _read_cls_split(folder, name) for name in names}


def _read_cls_split(folder: Path, name: str) -> Split:
    text_path, subword_path = folder / f"{name}.review.txt", folder / f"{name}.review.spm"
    if text_path.exists() or not subword_path.exists():
        texts = dict(read_lines(text_path))
    else:
        texts = {number: join_subwords(line) for number, line in read_lines(subword_path)}
    path = folder / f"{name}.label"
    labels = dict(read_lines(path))
    for number in sorted(texts.keys() ^ labels.keys()):
        got = "a text without a label" if number in texts else "a label without a text"
        raise ValueError(f"{path}, line {number}: must label the text in the same line, got {got}")
    for number, label in labels.items():
        if not re.fullmatch("[0-9]+", label.strip()):
            raise ValueError(
                f"{path}, line {number}: the label must be an integer from 0 up, got {label[:40]!r}"
            )
    return Split(tuple(texts.values()), tuple(map(int, labels.values())))


def _read_novels(folder: Path) -> dict[str, Split]:
    return {
        split: Split(tuple(line for _, line in read_lines(folder / f"corpus.{split}.txt")))
        for split in ("train", "valid")
    }


def _read_reader_reviews(folder: Path) -> dict[str, Split]:
    texts, labels = [], []
    for site in ("babelio", "critiques_libres"):
        path = folder / f"{site}_reviews.jsonl"
        for number, line in read_lines(path):
            try:
                row = json.loads(line)
                text, label = " ".join(row["reader_review"].split()), int(row["label"])
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise ValueError(
                    f"{path}, line {number}: must be a JSON object with reader_review and label, "
                    f"got {line[:60]!r}"
                ) from error
            if text:  # a few readers left stars only
                texts.append(text)
                labels.append(label - LOWEST_STARS)
    return split_texts(folder, Split(tuple(texts), tuple(labels)), share=LABELLED_SHARE)


def _read_shakespeare(folder: Path) -> dict[str, Split]:
    speeches: list[tuple[int, list[str]]] = []  # the character at which each begins, and its lines
    start, last = 0, 0
    for number, line in read_lines(folder / "input.txt"):
        start += number - last - 1  # blank lines between
        if not speeches or number != last + 1:
            speeches.append((start, []))
        speeches[-1][1].append(line.strip())
        start, last = start + len(line) + 1, number
    splits: dict[str, list[str]] = {"train": [], "valid": []}
    for first, lines in speeches:
        splits["train" if first < SHAKESPEARE_TRAIN * start else "valid"].append(" ".join(lines))
    return {name: Split(tuple(texts)) for name, texts in splits.items()}


# By name: the reader, and whether texts have labels.
_READERS: dict[str, tuple[Callable[[Path], dict[str, Split]], bool]] = {
    "cls-books": (_read_cls_books, True),
    "eltec-fra": (_read_novels, False),
    "reader-reviews-fr": (_read_reader_reviews, True),
    "tinyshakespeare": (_read_shakespeare, False),
}


@dataclass(frozen=True)
class Options:
    """How files are read, see `load_corpus`."""

    text_column: str | None = None
    label_column: str | None = None
    label_names: tuple[str, ...] = ()
    skip_bad_rows: bool = False


@dataclass
class BadRows:
    """The rows of a file that cannot be used, by the rule that they break.

    Examples
    --------
    >>> bad = BadRows("notes.tsv")
    >>> bad.add(7, "must be a label, a tab and a text", "no tab")
    >>> bad.settle(n_good=8, skip=False)
    Traceback (most recent call last):
    ValueError: notes.tsv, line 7: must be a label, a tab and a text, got no tab
    """

    source: Path | str
    unit: str = "line"
    found: dict[str, dict[int, str]] = field(default_factory=dict)  # rule -> row -> what it has instead

    def add(self, number: int, rule: str, got: str) -> None:
        """Note that a row, counted from 1, breaks a rule."""
        self.found.setdefault(rule, {}).setdefault(number, got)

    def settle(self, n_good: int, skip: bool) -> None:
        """Raise a ValueError for the rows that were noted, or warn that they are skipped."""
        if not self.found:
            return
        firsts = sorted((min(rows), rule, rows[min(rows)]) for rule, rows in self.found.items())
        number, rule, got = firsts[0]
        n_bad = len(set().union(*self.found.values()))
        message = f"{self.source}, {self.unit} {number}: {rule}, got {got}"
        if n_bad > 1:
            message += f"; {n_bad:,} of {n_good + n_bad:,} rows cannot be used"
        for first, rule, _ in firsts[1:]:
            message += f"; {rule} ({len(self.found[rule]):,} rows, from {self.unit} {first})"
        if not skip:
            raise ValueError(message)
        warnings.warn(f"{message}: skipped, {n_good:,} rows are left", CorpusWarning, stacklevel=5)


def _load_own(name: str, options: Options) -> Corpus:
    path = Path(name)
    if name.startswith(HUB_PREFIX) or (name and any(path.glob("dataset_*.json"))):
        return _load_hub(name.removeprefix(HUB_PREFIX), options)
    if name and path.is_dir():
        files = _split_files(path)
    elif path.suffix.lower() in SUFFIXES:
        files = {"train": path}
    else:
        known = ", ".join(info.name for info in list_corpora())
        raise ValueError(
            f"corpus must be one of {known}, the path of a {', '.join(SUFFIXES)} file or a folder of such, "
            f"or {HUB_PREFIX}NAME, got {name!r}"
        )
    return _corpus(path.name, {split: _read_file(file, options) for split, file in files.items()}, options)


def _split_files(folder: Path) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for split, stems in SPLIT_FILES.items():
        here = [file for stem in stems for suffix in SUFFIXES if (file := folder / (stem + suffix)).is_file()]
        if len(here) > 1:
            raise ValueError(
                f"{folder} must hold one file for {split}, got {here[0].name} and {here[1].name}"
            )
        if here:
            files[split] = here[0]
    if "train" not in files:
        raise ValueError(
            f"{folder} must hold train.txt, train.tsv, train.csv or train.jsonl, got none of them"
        )
    return files


def _read_text(path: Path) -> str:
    """The text of a file, in which a byte that is not UTF-8 is a lone surrogate, for `_fault` to find."""
    if not path.is_file():
        raise ValueError(f"corpus file must exist, got {path}")
    content = path.read_bytes()
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise ValueError(f"{path} must be UTF-8 text, got the mark of UTF-16: save it as UTF-8")
    return content.decode("utf-8-sig", "surrogateescape")


def _fault(text: str) -> tuple[str, str] | None:
    """The rule that a text breaks, and what it has instead."""
    if len(text) > MAX_CHARS:
        return f"must have at most {MAX_CHARS:,} characters", f"{len(text):,}"
    if bad := re.search("[\0\ud800-\udfff]", text):
        code = ord(bad[0])
        got = f"the byte 0x{code & 0xFF:02x}" if code == 0 or 0xDC80 <= code <= 0xDCFF else "a lone surrogate"
        return "must be UTF-8 text (save the file as UTF-8)", f"{got} as character {bad.start() + 1}"
    return None


def read_lines(path: Path, *, bad: BadRows | None = None) -> list[tuple[int, str]]:
    """Read the lines that are not blank, each with its number counted from 1 and without its end.

    Parameters
    ----------
    path : Path
        UTF-8 text, with or without a byte order mark, with either line end.
    bad : BadRows, optional
        Notes the lines that cannot be used; without it they are an error.

    Raises
    ------
    ValueError
        If the file is missing, holds no text, or has a line that cannot be used.
    """
    noted = BadRows(path) if bad is None else bad
    lines = []
    for number, line in enumerate(_read_text(path).split("\n"), start=1):
        if fault := _fault(line):
            noted.add(number, *fault)
        elif line.strip():
            lines.append((number, line.removesuffix("\r")))
    if bad is None:
        noted.settle(len(lines), skip=False)
    if not lines and not noted.found:
        raise ValueError(f"{path} must hold at least one line of text, got none")
    return lines


def _read_file(path: Path, options: Options) -> tuple[Rows, BadRows]:
    """The usable rows of a file of any kind, and the others."""
    bad, suffix = BadRows(path), path.suffix.lower()
    columns_named = options.text_column is not None or options.label_column is not None
    if suffix == ".txt":
        if columns_named or options.label_names:
            raise ValueError(f"{path} is a .txt: it must be read without columns and labels, got some")
        return [(number, line, None) for number, line in read_lines(path, bad=bad)], bad
    if suffix == ".tsv" and not columns_named:
        rows: Rows = []
        for number, line in read_lines(path, bad=bad):
            label, tab, text = line.partition("\t")
            if not tab or not text.strip():
                bad.add(number, "must be a label, a tab and a text", "no text" if tab else "no tab")
            elif not options.label_names and not INTEGER.fullmatch(label.strip()):
                bad.add(number, "the label must be an integer from 0 up", repr(label[:40]))
            else:
                rows.append((number, text, label.strip()))
        return rows, bad
    if suffix == ".jsonl":
        return _select(_read_objects(path, bad), options, bad), bad
    return _select(_read_table(path, options, bad), options, bad), bad


def _read_objects(path: Path, bad: BadRows) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, line in read_lines(path, bad=bad):
        try:
            cells = json.loads(line)
        except (ValueError, RecursionError):
            cells = None
        if isinstance(cells, dict):
            yield number, cells
        else:
            bad.add(number, "must be a JSON object", repr(line.strip()[:40]))


def _read_table(path: Path, options: Options, bad: BadRows) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The rows of a .csv, or of a .tsv, in which a quote is a character like others."""
    text, number = _read_text(path), 1
    form: dict[str, Any] = {"delimiter": _delimiter(text, options), "strict": True}
    if path.suffix.lower() == ".tsv":
        form = {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
    rows = []
    limit = csv.field_size_limit(len(text) + 1)  # else a cell of more than 131,072 characters is an error
    try:
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
    for number, cells in rows[1:]:
        if len(cells) == len(columns):
            yield number, dict(zip(columns, cells, strict=True))
        elif cells:
            bad.add(number, f"must have {len(columns)} cells, as the first line", str(len(cells)))


def _delimiter(text: str, options: Options) -> str:
    """The character that divides the first line into the needed columns, else into the most columns."""
    first, needed = text.partition("\n")[0].rstrip("\r"), {options.text_column or TEXT_COLUMN}
    headers = {sign: next(csv.reader([first], delimiter=sign), []) for sign in DELIMITERS}
    return max(DELIMITERS, key=lambda s: (needed <= {name.strip() for name in headers[s]}, len(headers[s])))


def _select(table: Iterable[tuple[int, Mapping[str, Any]]], options: Options, bad: BadRows) -> Rows:
    """Take text and label out of numbered rows of cells."""
    text_column, label_column = options.text_column or TEXT_COLUMN, options.label_column or LABEL_COLUMN
    numbered = list(table)
    columns = list(dict.fromkeys(name for _, cells in numbered for name in cells))
    for option, column in (("text_column", text_column), ("label_column", options.label_column)):
        if numbered and column is not None and column not in columns:
            listed = ", ".join(name[:40] for name in columns[:20])
            raise ValueError(f"{option} must be a column of {bad.source}, which has {listed}; got {column}")
    rows: Rows = []
    for number, cells in numbered:
        text, value = cells.get(text_column), cells.get(label_column)
        label = str(int(value)) if isinstance(value, bool) else str(value).strip()
        if not isinstance(text, str) or not text.strip():
            bad.add(number, f"must have a text in the column {text_column}", repr(text or None)[:40])
        elif fault := _fault(text):
            bad.add(number, *fault)
        elif label_column in columns and (not isinstance(value, str | int | float) or not label):
            bad.add(number, f"must have a label in the column {label_column}", repr(value or None)[:40])
        else:
            text = re.sub(r"\s*[\r\n]\s*", " ", text.strip())
            rows.append((number, text, label if label_column in columns else None))
    return rows


def _load_hub(name: str, options: Options) -> Corpus:
    """A dataset ``NAME`` or ``NAME:CONFIGURATION`` of the library ``datasets``, or a folder that it saved."""
    try:
        import datasets
    except ImportError as error:
        raise ValueError(
            f"{HUB_PREFIX}{name} must be read with the library datasets, which is not installed: "
            "pip install datasets"
        ) from error
    saved = bool(name) and any(Path(name).glob("dataset_*.json"))
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
    column, tables, names = options.label_column or LABEL_COLUMN, {}, options.label_names
    for split, stems in SPLIT_FILES.items():
        for part in [parts[stem] for stem in stems if stem in parts][:1]:
            classes: Sequence[str] = getattr(part.features.get(column), "names", None) or ()
            if classes and set(part[column]) == {NO_LABEL}:
                warnings.warn(f"{title}: {split} has no labels: left out", CorpusWarning, stacklevel=4)
                continue
            rows = list(part)
            for row in rows if classes else ():  # labels are numbers of names
                known = isinstance(row[column], int) and row[column] != NO_LABEL
                row[column] = classes[row[column]] if known else None
            bad = BadRows(f"{title} ({split})", unit="row")
            tables[split] = _select(enumerate(rows, start=1), options, bad), bad
            names = names or tuple(classes)
    if "train" not in tables:
        raise ValueError(f"{title} must have a split train, got {', '.join(parts) or 'none'}")
    return _corpus(title, tables, dataclasses.replace(options, label_names=names))


def _corpus(name: str, tables: Mapping[str, tuple[Rows, BadRows]], options: Options) -> Corpus:
    """A corpus of the rows of its files; the splits that have no file are taken out of train."""
    train, bad = tables["train"]
    labelled = any(label is not None for *_, label in train)
    names = (options.label_names or _label_names(train, bad)) if labelled else ()
    splits: dict[str, Split] = {}
    for split, (rows, bad) in tables.items():
        texts = tuple(text for _, text, _ in rows)
        texts, labels = _number_labels(rows, names, bad) if labelled else (texts, None)
        bad.settle(len(texts), options.skip_bad_rows)
        if not texts:
            raise ValueError(f"{bad.source} must hold at least one row that can be used, got none")
        splits[split] = Split(texts, labels)
    if "valid" not in splits:
        share = LABELLED_SHARE if labelled else UNLABELLED_SHARE
        source = tables["train"][1].source
        splits |= split_texts(source, splits["train"], share=share, with_test="test" not in splits)
    return Corpus(name, splits["train"], splits["valid"], splits.get("test"), label_names=names)


def _label_names(rows: Rows, bad: BadRows) -> tuple[str, ...]:
    """The different labels in order, numbers by value; empty where all are integers from 0 up."""
    names = {label or "" for *_, label in rows}
    if all(map(INTEGER.fullmatch, names)):
        return ()
    if len(names) > MAX_CLASSES:
        some = ", ".join(repr(label[:20]) for label in sorted(names)[:3])
        raise ValueError(
            f"{bad.source} must have at most {MAX_CLASSES} different labels, got {len(names):,}: {some}, ..."
        )
    value = re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,9})?")
    return tuple(sorted(names, key=lambda label: (float(label) if value.fullmatch(label) else 1e9, label)))


def _number_labels(rows: Rows, names: Sequence[str], bad: BadRows) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Texts and labels as integers; `bad` notes rows whose label is not among the names."""
    if len(set(names)) < len(names):
        raise ValueError(f"label_names must be different, got {', '.join(names)}")
    rule = "the label must be an integer from 0 up"
    if names:
        rule = "the label must be one of " + ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    texts, labels = [], []
    for number, text, label in rows:
        label = label or ""
        if label in names if names else INTEGER.fullmatch(label):
            texts.append(text)
            labels.append(names.index(label) if names else int(label))
        else:
            bad.add(number, rule, repr(label[:40]))
    return tuple(texts), tuple(labels)


def split_texts(
    source: Path | str, split: Split, *, share: float, with_test: bool = True
) -> dict[str, Split]:
    """Split texts into train, valid and test, in the same way each time, with equal texts in one split.

    Parameters
    ----------
    source : Path or str
        Named in the error message.
    split : Split
        Of each label an equal share is held out; one with fewer than three different texts is train.
    share : float
        Of the different texts, for valid and for test each, and at least one.
    with_test : bool
        Without, the texts of test are train.

    Raises
    ------
    ValueError
        If the texts are too few.
    """
    labels = split.labels or (0,) * len(split)
    first_label: dict[str, int] = {}
    for text, label in zip(split.texts, labels, strict=True):
        first_label.setdefault(text, label)
    rng = np.random.default_rng(SPLIT_SEED)
    name_of: dict[str, str] = {}
    for label in sorted(set(first_label.values())):
        texts = [text for text in first_label if first_label[text] == label]
        n_held_out = max(1, round(share * len(texts))) if len(texts) >= 3 else 0
        for rank, i in enumerate(rng.permutation(len(texts))):
            held_out = "valid" if rank < n_held_out else "test"
            name_of[texts[i]] = held_out if rank < 2 * n_held_out else "train"
    rows = {name: [i for i, text in enumerate(split.texts) if name_of[text] == name] for name in SPLIT_FILES}
    if not all(rows.values()):
        raise ValueError(
            f"{source} must hold at least 3 different texts of one label to be split, got {len(first_label)} "
            f"of {len(set(labels))} labels"
        )
    if not with_test:
        rows = {"train": sorted(rows["train"] + rows["test"]), "valid": rows["valid"]}
    return {name: _at(split, chosen) for name, chosen in rows.items()}
