"""The corpora that ``tinytx data get`` downloads, read from their folders into splits."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tinytx.settings import require
from tinytx_run.splits import LABELLED_SHARE, UNLABELLED_SHARE, Split, split_groups, split_texts
from tinytx_run.tables import read_aligned, read_lines, read_objects

SHAKESPEARE_TRAIN = 0.9  # of the characters, from the beginning
LOWEST_STARS = -1  # the lowest label of reader-reviews-fr


def _read_cls_books(folder: Path) -> dict[str, Split]:
    splits = {}
    for name in ("train", "valid", "test") if (folder / "test.label").exists() else ("train", "valid"):
        label_path = folder / f"{name}.label"
        rows = read_aligned(folder / f"{name}.review.txt", label_path)
        for number, _, label in rows:
            if not re.fullmatch("[01]", label.strip()):
                raise ValueError(f"{label_path}, line {number}: the label must be 0 or 1, got {label[:40]!r}")
        splits[name] = Split(tuple(text for _, text, _ in rows), tuple(int(label) for *_, label in rows))
    return splits


def _read_novels(folder: Path) -> dict[str, Split]:
    return {
        split: Split(tuple(line for _, line in read_lines(folder / f"corpus.{split}.txt")))
        for split in ("train", "valid")
    }


def _read_reader_reviews(folder: Path) -> dict[str, Split]:
    files = [folder / f"{site}_reviews.jsonl" for site in ("babelio", "critiques_libres")]
    rows = [row for file in files for row in read_objects(file, reader_review=str, label=int)]
    rows = [row for row in rows if row["reader_review"].strip()]  # a few readers left stars only
    texts = tuple(" ".join(row["reader_review"].split()) for row in rows)
    labels = tuple(row["label"] - LOWEST_STARS for row in rows)
    return split_texts(folder, Split(texts, labels), share=LABELLED_SHARE)


def _read_films(folder: Path) -> dict[str, Split]:
    splits = split_groups(_film_reviews(folder / "train.jsonl.gz", label=int), share=LABELLED_SHARE)
    test = folder / "test.jsonl.gz"
    return splits | ({"test": _film_reviews(test, label=int)} if test.exists() else {})


def _film_reviews(path: Path, **label: type) -> Split:
    """Reviews with their films as groups; a text that occurs again is left out."""
    rows: dict[str, dict[str, Any]] = {}
    for row in read_objects(path, text=str, movie=str, **label):
        rows.setdefault(row["text"], row)
    labels = tuple(row["label"] for row in rows.values()) if label else None
    return Split(tuple(rows), labels, tuple(row["movie"] for row in rows.values()))


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
    rule = f"{folder / 'input.txt'} must hold speeches to learn from and others to hold out"
    require(all(splits.values()), rule, len(speeches))
    return {name: Split(tuple(texts)) for name, texts in splits.items()}


READERS: dict[str, Callable[[Path], dict[str, Split]]] = {
    "cls-books": _read_cls_books,
    "eltec-fra": _read_novels,
    "imdb": _read_films,
    "imdb-unlabelled": lambda folder: split_groups(
        _film_reviews(folder / "unlabelled.jsonl.gz"), share=UNLABELLED_SHARE
    ),
    "reader-reviews-fr": _read_reader_reviews,
    "tinyshakespeare": _read_shakespeare,
}
DESCRIPTIONS = {"imdb-unlabelled": "English reviews of other films than those of imdb, without labels"}
