"""Corpora by name or by file, each in splits, so that reported texts were never in training."""

from __future__ import annotations

import functools
import gzip
import json
import os
import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np

from tinytx.text.conversion import SPLIT_SEED, join_subwords
from tinytx.text.download import corpus_folder, data_folder, dataset
from tinytx.text.streaming import STREAM_FROM, LargeFile
from tinytx.text.tables import (
    HUB_PREFIX,
    SPLIT_FILES,
    SUFFIXES,
    CorpusWarning,
    Options,
    read_aligned,
    read_lines,
    read_own,
)

UNLABELLED_SHARE, LABELLED_SHARE = 0.05, 0.10  # of the different texts, for valid and for test each
SHAKESPEARE_TRAIN = 0.9  # of the characters, from the beginning
LOWEST_STARS = -1  # the lowest label of reader-reviews-fr
WORLD_SIZES = {"train": 30_000, "valid": 2_000, "test": 2_000}
WORLD_SEED = 20_000  # of train; the next two seeds draw valid and test
NOVELS_FOLDER = Path(__file__).parent / "novels"
DRAW_SEED = 1_000_000  # plus i: of the i-th further set of training texts


@dataclass(frozen=True)
class Split:
    """Texts of one purpose, all with a label or all without.

    Parameters
    ----------
    texts : tuple of str
        At least one.
    labels : tuple of int, optional
        From 0 up, one for each text.
    groups : tuple of str, optional
        What each text is about or comes from, such as a film or a novel: texts of one group resemble each
        other, so folds should not divide them.

    Examples
    --------
    >>> len(Split(("un beau livre", "un livre raté"), (1, 0)))
    2
    """

    texts: tuple[str, ...]
    labels: tuple[int, ...] | None = None
    groups: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not self.texts:
            raise ValueError("a split must hold at least one text, got none")
        if self.groups is not None and len(self.groups) != len(self.texts):
            raise ValueError(
                f"groups must be as many as texts, got {len(self.groups)} groups, {len(self.texts)} texts"
            )
        if self.labels is not None and len(self.labels) != len(self.texts):
            raise ValueError(
                f"labels must be as many as texts, got {len(self.labels)} labels, {len(self.texts)} texts"
            )

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, rows: Sequence[int]) -> Split:
        """The texts at some indices."""
        labels = None if self.labels is None else tuple(self.labels[i] for i in rows)
        groups = None if self.groups is None else tuple(self.groups[i] for i in rows)
        return Split(tuple(self.texts[i] for i in rows), labels, groups)


S = TypeVar("S")


@dataclass(frozen=True)
class Splits(Generic[S]):
    """What every corpus has.

    Parameters
    ----------
    name : str
        That by which it was loaded, or the name of the file.
    train, valid : Split or Pairs
        To learn from, and to choose hyperparameters by.
    test : Split or Pairs, optional
        To report on; it selects nothing.
    licence, source : str
        As stated where the texts come from; of one's own, the size of a file that is read in parts.
    """

    name: str
    train: S
    valid: S
    test: S | None = None
    licence: str = ""
    source: str = ""

    @property
    def splits(self) -> dict[str, S]:
        """The splits that exist, by name."""
        named = {"train": self.train, "valid": self.valid, "test": self.test}
        return {name: split for name, split in named.items() if split is not None}


@dataclass(frozen=True)
class Corpus(Splits[Split]):
    """Texts in their splits; for the other parameters see `Splits`.

    Parameters
    ----------
    label_names : tuple of str
        Meaning of the labels 0, 1, ...; empty where unknown.
    draw : callable, optional
        Of a generated language or a large file: ``draw(i)`` gives the training texts of pass i >= 1, in place
        of `train`; others for each i, until the file has been read to its end.
    """

    label_names: tuple[str, ...] = ()
    draw: Callable[[int], tuple[str, ...]] | None = field(default=None, repr=False, compare=False)

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
    labelled: bool = False
    licence: str = "CC BY 4.0"
    source: str = "generated by tinytx"
    available: bool = True


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
    n_before: dict[int, int] = defaultdict(int)
    rank = {}  # the first text of each class has rank 0, the second 1, and so on
    for index in shuffled:
        rank[index] = n_before[labels[index]]
        n_before[labels[index]] += 1
    return split.take(sorted(sorted(shuffled, key=rank.__getitem__)[:n_labels]))


_WORLD = CorpusInfo(
    "world", "generated French book reviews with exactly known probabilities; label 1 = positive", True
)
_NOVELS = CorpusInfo(
    "novels",
    "passages of French novels without names; the label is the author, the splits share no novel",
    labelled=True,
    licence="public domain",
    source="European Literary Text Collection (ELTeC-fra), see tinytx/text/novels/ATTRIBUTION.md",
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
    >>> [info.name for info in list_corpora()][:3]
    ['world', 'novels', 'cls-books']
    """
    return _WORLD, _NOVELS, *(downloaded_info(name, data_dir) for name in _READERS)


def downloaded_info(name: str, data_dir: str | os.PathLike[str] | None) -> CorpusInfo:
    """Description of a corpus that ``tinytx data get`` downloads."""
    known = dataset(_FOLDERS.get(name, name))
    source = f"{known.citation} ({known.address.partition('//')[2] or 'github.com/' + known.repository})"
    available = (data_folder(data_dir) / known.name).is_dir()
    labelled = known.labelled and name not in _FOLDERS
    return CorpusInfo(name, known.description, labelled, known.licence, source, available)


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
        Blank lines are skipped. A ``.txt`` of `STREAM_FROM` bytes or more is read in parts, one a pass: only
        the first is split and scored, and only one is in memory.
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
    if name not in {_WORLD.name, _NOVELS.name, *_READERS}:
        path = Path(name)
        is_large = path.suffix.lower() == ".txt" and path.is_file() and path.stat().st_size >= STREAM_FROM
        corpus = _stream(LargeFile(path)) if is_large and options == Options() else _load_own(name, options)
    elif options != Options():
        raise ValueError(f"options must go with texts of one's own, got the corpus {name}")
    elif name == _WORLD.name:
        return _world()  # drawn independently, so short texts repeat
    elif name == _NOVELS.name:
        return _novels()
    else:
        splits = _READERS[name](corpus_folder(_FOLDERS.get(name, name), data_dir))
        corpus = _corpus(downloaded_info(name, data_dir), splits)
    _warn_of_repeats(corpus)
    _warn_of_labels(corpus)
    return corpus


def _corpus(info: CorpusInfo, splits: Mapping[str, Split]) -> Corpus:
    return Corpus(info.name, splits["train"], splits["valid"], splits.get("test"), info.licence, info.source)


@functools.cache
def _world() -> Corpus:
    from tinytx.world.world import World

    world = World()

    def drawn(size: int, seed: int) -> Split:
        reviews = world.reviews(size, seed=seed)
        return Split(tuple(" ".join(r.words) for r in reviews), tuple(r.label for r in reviews))

    splits = {name: drawn(size, WORLD_SEED + i) for i, (name, size) in enumerate(WORLD_SIZES.items())}
    corpus = _corpus(_WORLD, splits)
    return replace(corpus, draw=lambda i: drawn(WORLD_SIZES["train"], DRAW_SEED + i).texts)


@functools.cache
def _novels() -> Corpus:
    with gzip.open(NOVELS_FOLDER / "novels.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    authors = tuple(sorted({row["author"] for row in rows}))
    parts = {name: [row for row in rows if row["split"] == name] for name in ("train", "valid")}
    splits = {
        name: Split(
            tuple(row["text"] for row in part),
            tuple(authors.index(row["author"]) for row in part),
            tuple(row["novel"] for row in part),
        )
        for name, part in parts.items()
    }
    return replace(_corpus(_NOVELS, splits), label_names=authors)


def _load_own(name: str, options: Options) -> Corpus:
    """A corpus of one's own; the splits that have no file are taken out of train."""
    own = read_own(name, options)
    if own is None:
        known = ", ".join(info.name for info in list_corpora())
        raise ValueError(
            f"corpus must be one of {known}, the path of a {', '.join(SUFFIXES)} file or a folder of such, "
            f"or {HUB_PREFIX}NAME, got {name!r}"
        )
    title, tables, names = own
    labelled = any(label is not None for *_, label in tables["train"].rows)
    names = (names or tables["train"].label_names()) if labelled else ()
    if len(set(names)) < len(names):
        raise ValueError(f"label_names must be different, got {', '.join(names)}")
    splits: dict[str, Split] = {}
    for split, table in tables.items():
        texts, labels = tuple(text for _, text, _ in table.rows), None
        if labelled:
            texts, labels = table.number_labels(names)
        table.settle(len(texts), options.skip_bad_rows)
        if not texts:
            raise ValueError(f"{table.source} must hold at least one {table.unit} that can be used, got none")
        splits[split] = Split(texts, labels)
    if "valid" not in splits:
        share = LABELLED_SHARE if labelled else UNLABELLED_SHARE
        source = tables["train"].source
        splits |= split_texts(source, splits["train"], share=share, with_test="test" not in splits)
    return Corpus(title, splits["train"], splits["valid"], splits.get("test"), label_names=names)


def _stream(file: LargeFile) -> Corpus:
    """A file in parts; no text of valid, which is of the first part, is learned from in another one."""
    splits = split_texts(file.path, Split(file.lines(0)), share=UNLABELLED_SHARE, with_test=False)
    held_out = set(splits["valid"].texts)

    def draw(i: int) -> tuple[str, ...]:
        parts = (file.lines(part) for part in range(i, i + file.n_parts))
        own = (tuple(text for text in part if text not in held_out) for part in parts)
        return next(texts for texts in own if texts)

    size = f"{file.n_bytes:,} bytes, read in {file.n_parts:,} parts"
    return replace(Corpus(file.path.name, splits["train"], splits["valid"], source=size), draw=draw)


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
    splits = {}
    for name in ("train", "valid", "test") if (folder / "test.label").exists() else ("train", "valid"):
        path, label_path = folder / f"{name}.review.txt", folder / f"{name}.label"
        subwords = folder / f"{name}.review.spm"
        as_subwords = subwords.exists() and not path.exists()
        rows = read_aligned(subwords if as_subwords else path, label_path)
        for number, _, label in rows:
            if not re.fullmatch("[0-9]+", label.strip()):
                rule = "the label must be an integer from 0 up"
                raise ValueError(f"{label_path}, line {number}: {rule}, got {label[:40]!r}")
        texts = tuple(join_subwords(text) if as_subwords else text for _, text, _ in rows)
        splits[name] = Split(texts, tuple(int(label) for *_, label in rows))
    return splits


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


def _read_films(folder: Path) -> dict[str, Split]:
    splits = split_groups(_film_reviews(folder / "train.jsonl.gz"), share=LABELLED_SHARE)
    test = folder / "test.jsonl.gz"
    return splits | ({"test": _film_reviews(test)} if test.exists() else {})


def _read_unlabelled_films(folder: Path) -> dict[str, Split]:
    return split_groups(_film_reviews(folder / "unlabelled.jsonl.gz", labelled=False), share=UNLABELLED_SHARE)


def _film_reviews(path: Path, *, labelled: bool = True) -> Split:
    """Reviews with their films as groups; a text that occurs again is left out."""
    rows: dict[str, tuple[str, int]] = {}
    for number, line in read_lines(path):
        try:
            row = json.loads(line)
            text, film, label = row["text"], row["movie"], row["label"] if labelled else 0
            if not (text and film and isinstance(film, str) and label in (0, 1)):
                raise ValueError("a text or a film is empty, or the label is neither 0 nor 1")
            rows.setdefault(text, (film, label))
        except (ValueError, KeyError, TypeError) as error:
            wanted = "text, movie and label" if labelled else "text and movie"
            raise ValueError(
                f"{path}, line {number}: must be a JSON object with {wanted}, got {line[:60]!r}: {error!r}"
            ) from error
    films, labels = zip(*rows.values(), strict=True)
    return Split(tuple(rows), labels if labelled else None, films)


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


_READERS: dict[str, Callable[[Path], dict[str, Split]]] = {
    "cls-books": _read_cls_books,
    "eltec-fra": _read_novels,
    "imdb": _read_films,
    "imdb-unlabelled": _read_unlabelled_films,
    "reader-reviews-fr": _read_reader_reviews,
    "tinyshakespeare": _read_shakespeare,
}
_FOLDERS = {"imdb-unlabelled": "imdb"}  # of a corpus in the folder of another one


def split_groups(split: Split, *, share: float) -> dict[str, Split]:
    """Split texts into train and valid, in the same way each time, with each group in one of them.

    Examples
    --------
    >>> splits = split_groups(Split(tuple("abcd"), None, ("x", "x", "y", "y")), share=0.1)
    >>> {name: set(one.groups) for name, one in splits.items()}
    {'train': {'y'}, 'valid': {'x'}}
    """
    names = sorted(set(split.groups or ()))
    if len(names) < 2:
        raise ValueError(f"texts must be of at least 2 groups to be split by group, got {len(names)}")
    order = np.random.default_rng(SPLIT_SEED).permutation(len(names))
    held_out = {names[i] for i in order[: max(1, round(share * len(names)))]}
    in_valid = [group in held_out for group in split.groups or ()]
    return {
        name: split.take([i for i, valid in enumerate(in_valid) if valid == (name == "valid")])
        for name in ("train", "valid")
    }


def split_texts(
    source: Path | str, split: Split, *, share: float, with_test: bool = True
) -> dict[str, Split]:
    """Split texts into train, valid and test, in the same way each time, with equal texts in one split.

    Parameters
    ----------
    source : Path or str
        Named in the ValueError that is raised if the texts are too few.
    split : Split
        Of each label an equal share is held out; one with fewer than three different texts is train.
    share : float
        Of the different texts, for valid and for test each, and at least one.
    with_test : bool
        Without, the texts of test are train.
    """
    labels = split.labels or (0,) * len(split)
    first_label: dict[str, int] = {}
    for text, label in zip(split.texts, labels, strict=True):
        first_label.setdefault(text, label)
    by_label: dict[int, list[str]] = defaultdict(list)
    for text, label in first_label.items():
        by_label[label].append(text)
    rng = np.random.default_rng(SPLIT_SEED)
    name_of: dict[str, str] = {}
    for _, texts in sorted(by_label.items()):
        n_held_out = max(1, round(share * len(texts))) if len(texts) >= 3 else 0
        for rank, i in enumerate(rng.permutation(len(texts))):
            held_out = "valid" if rank < n_held_out else "test"
            name_of[texts[i]] = held_out if rank < 2 * n_held_out else "train"
    rows = {name: [i for i, text in enumerate(split.texts) if name_of[text] == name] for name in SPLIT_FILES}
    if not all(rows.values()):
        raise ValueError(
            f"{source} must hold at least 3 different texts of one label to be split, got {len(name_of)} "
            f"of {len(set(labels))} labels"
        )
    if not with_test:
        rows = {"train": sorted(rows["train"] + rows["test"]), "valid": rows["valid"]}
    return {name: split.take(chosen) for name, chosen in rows.items()}
