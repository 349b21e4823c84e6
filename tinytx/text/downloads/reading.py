"""What `tinytx data get` left, read as texts in their splits."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tinytx.text.corpus import Split
from tinytx.text.downloads.folder import corpus_folder
from tinytx.text.files import parse_label, read_lines, split_rows
from tinytx.text.own import TSV_HELD_OUT

SHAKESPEARE_TRAIN = 0.9  # of the characters, the first; as is usual for this text
LOWEST_LABEL = -1  # of the readers' reviews: low, middling or high praise


def read_splits(name: str, folder: Path) -> dict[str, Split]:
    """Read the folder of a corpus that is no parallel one.

    Parameters
    ----------
    name : str
        "cls-books", "eltec-fra", "reader-reviews-fr" or "tinyshakespeare".
    folder : Path

    Returns
    -------
    dict from str to Split
        "train", "valid" and, where there is one, "test".

    Raises
    ------
    ValueError
        If a file is missing, not UTF-8 or has a line that cannot be read; the message names the line.
    """
    return _READERS[name](folder)


def join_pieces(line: str) -> str:
    """Join the pieces of a sentencepiece model, set apart by spaces, to the text that they stand for.

    Examples
    --------
    >>> join_pieces("\u2581Un \u2581li vre \u2581!")
    'Un livre !'
    """
    return line.replace(" ", "").replace("\u2581", " ").strip()


def _cls_books(folder: Path) -> dict[str, Split]:
    has_test = (folder / "test.label").exists()
    return {name: _cls_split(folder, name) for name in ("train", "valid", "test")[: 2 + has_test]}


def _cls_split(folder: Path, split_name: str) -> Split:
    text_path = folder / f"{split_name}.review.txt"
    label_path = folder / f"{split_name}.label"
    pieces_path = folder / f"{split_name}.review.spm"
    if text_path.exists() or not pieces_path.exists():
        lines = read_lines(text_path)
        texts = [line for _, line in lines]
    else:
        lines = read_lines(pieces_path)
        texts = [join_pieces(line) for _, line in lines]
    label_lines = read_lines(label_path)
    labels = [parse_label(line, label_path, number) for number, line in label_lines]
    filled = {number for number, _ in lines}
    for number in sorted(filled ^ {number for number, _ in label_lines}):
        got = "a text without a label" if number in filled else "a label without a text"
        raise ValueError(f"{label_path}, line {number}: must label the text in the same line, got {got}")
    return Split(tuple(texts), tuple(labels))


def _novels(folder: Path) -> dict[str, Split]:
    return {
        split: Split(tuple(line for _, line in read_lines(folder / f"corpus.{split}.txt")))
        for split in ("train", "valid")
    }


def _reader_reviews(folder: Path) -> dict[str, Split]:
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
                labels.append(label - LOWEST_LABEL)
    rows = split_rows(folder, texts, labels, share=TSV_HELD_OUT)
    return {
        split: Split(tuple(texts[i] for i in chosen), tuple(labels[i] for i in chosen))
        for split, chosen in zip(("train", "valid", "test"), rows, strict=True)
    }


def _shakespeare(folder: Path) -> dict[str, Split]:
    speeches: list[tuple[int, list[str]]] = []  # the character at which each starts, and its lines
    start, last = 0, 0
    for number, line in read_lines(folder / "input.txt"):
        start += number - last - 1  # blank lines between
        if not speeches or number != last + 1:
            speeches.append((start, []))
        speeches[-1][1].append(line.strip())
        start, last = start + len(line) + 1, number
    splits: dict[str, list[str]] = {"train": [], "valid": []}
    for first, spoken in speeches:
        splits["train" if first < SHAKESPEARE_TRAIN * start else "valid"].append(" ".join(spoken))
    return {name: Split(tuple(texts)) for name, texts in splits.items()}


def shakespeare_text(data_dir: str | os.PathLike[str] | None = None) -> tuple[str, str]:
    """Every character of tinyshakespeare, line breaks included: the first 90 % for training, the rest.

    Raises
    ------
    ValueError
        If the corpus is not there; the message names the command that brings it.
    """
    path = corpus_folder("tinyshakespeare", data_dir) / "input.txt"
    if not path.is_file():
        raise ValueError(f"corpus file must exist, got {path}")
    text = path.read_text(encoding="utf-8")
    n_train = int(SHAKESPEARE_TRAIN * len(text))
    return text[:n_train], text[n_train:]


_READERS = {
    "cls-books": _cls_books,
    "eltec-fra": _novels,
    "reader-reviews-fr": _reader_reviews,
    "tinyshakespeare": _shakespeare,
}
