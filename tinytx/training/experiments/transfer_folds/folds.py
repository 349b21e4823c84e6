"""Repeated stratified folds over labelled texts: every one is tested, by models that never read it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tinytx.text.corpora import Corpus, Split
from tinytx.text.plain import plain

_LOST_APOSTROPHE = re.compile(r"(?<=\w)\?(?=\w)")


@dataclass(frozen=True)
class Fold:
    """One part of the texts is tested, all others may be learned from.

    Attributes
    ----------
    repeat, number : int
        Which drawing of folds, and which fold of it, from 0 up.
    seed : int
        Its own: of the subset of labels, of new weights and of the order of learning.
    train, tested : Split
        No text stands in both.
    """

    repeat: int
    number: int
    seed: int
    train: Split
    tested: Split


def readable(text: str) -> str:
    """A text in plain typography; a "?" between letters, which stands for a lost apostrophe, is mended.

    Examples
    --------
    >>> readable("l?amour  d\u2019une vie. Vraiment ?")
    "l'amour d'une vie. Vraiment ?"
    """
    return " ".join(_LOST_APOSTROPHE.sub("'", plain(text)).split())


def same_text(text: str) -> str:
    """What is left of a text when case, spaces and punctuation do not count: equal for repeated texts."""
    return " ".join(re.findall(r"\w+", readable(text).lower()))


def distinct_texts(corpus: Corpus) -> tuple[Split, int]:
    """The labelled texts of train and valid, each once; and how many repetitions were left out.

    A text that stands there with two different labels is left out altogether. The test split is not touched.
    """
    pairs: list[tuple[str, int]] = []
    for split in (corpus.train, corpus.valid):
        if split.labels is None:
            raise ValueError(f"folds need a corpus with labels, got {corpus.name}, which has none")
        pairs += zip(split.texts, split.labels, strict=True)
    labels: dict[str, set[int]] = {}
    for text, label in pairs:
        labels.setdefault(same_text(text), set()).add(label)
    kept: dict[str, tuple[str, int]] = {}
    for text, label in pairs:
        key = same_text(text)
        if key and len(labels[key]) == 1:
            kept.setdefault(key, (readable(text), label))
    texts, classes = zip(*kept.values(), strict=True)
    return Split(texts, classes), len(pairs) - len(kept)


def stratified_folds(split: Split, n_folds: int, repeat: int = 0) -> list[Fold]:
    """Folds of nearly equal size, with as many of each class in each as can be.

    Parameters
    ----------
    split : Split
        Labelled texts, each once.
    n_folds : int
        At least 2; at most the size of the smallest class.
    repeat : int
        Draws other folds. Fold ``k`` of repetition ``r`` has the seed ``r * n_folds + k``.

    Examples
    --------
    >>> one, two = stratified_folds(Split(tuple("abcd"), (0, 1, 0, 1)), 2)
    >>> sorted(one.tested.texts + two.tested.texts), set(one.tested.texts) & set(one.train.texts)
    (['a', 'b', 'c', 'd'], set())
    """
    labels = np.asarray(split.labels)
    smallest = int(np.unique(labels, return_counts=True)[1].min())
    if not 2 <= n_folds <= smallest:
        raise ValueError(f"n_folds must be from 2 to {smallest}, the smallest class, got {n_folds}")
    rng = np.random.default_rng([repeat, n_folds])
    fold_of = np.zeros(len(labels), dtype=int)
    dealt = 0
    for label in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == label))
        fold_of[members] = (dealt + np.arange(len(members))) % n_folds
        dealt += len(members)
    return [
        Fold(
            repeat,
            number,
            repeat * n_folds + number,
            _part(split, np.flatnonzero(fold_of != number)),
            _part(split, np.flatnonzero(fold_of == number)),
        )
        for number in range(n_folds)
    ]


def _part(split: Split, rows: Iterable[int]) -> Split:
    labels = split.labels or ()
    chosen = [int(i) for i in rows]
    return Split(tuple(split.texts[i] for i in chosen), tuple(labels[i] for i in chosen))
