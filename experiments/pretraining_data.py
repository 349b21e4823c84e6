"""Texts of the experiment on pretraining: labelled ones in grouped folds, unlabelled ones without leaks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from tinytx_course.labs.lesson_15 import same_text
from tinytx_run.corpora import Corpus, Split, label_subset

#: Reviews whose files name no title: the same text twice is one group, and more is not known.
WITHOUT_TITLES = ("cls-books",)


@dataclass(frozen=True)
class Fold:
    """One part of the texts is held out for testing, the others may be learned from."""

    repeat: int  # which drawing of labels
    number: int
    seed: int  # of the subset of labels, of new weights and of the order of learning
    train: Split
    test: Split


@dataclass(frozen=True)
class Texts:
    """What one task learns from and is tested on."""

    name: str  # of the corpus, or LABELLED+UNLABELLED where the unlabelled one is of another kind
    labelled: Split  # with groups; the test split of its corpus is not among them
    unlabelled: tuple[str, ...]  # to pretrain on
    held_out: tuple[str, ...]  # to measure the loss of pretraining on
    n_left_out: int  # unlabelled texts that repeat a labelled one or share its group
    test: Split | None = None  # where the test split of the corpus is tested, not folds of the labelled texts


def texts_of(corpus: Corpus, unlabelled: Corpus, on: str = "folds") -> Texts:
    """Join the labelled texts of train and valid, leave out what would leak; `on` as in `pretraining`.

    Raises
    ------
    ValueError
        If a text has no label or no group: folds that divide a group would test what was learned by heart.
        If there is no test split to test on.
    """
    parts = [corpus.train, corpus.valid]
    if on == "test" and corpus.test is not None:
        tested = set(map(same_text, corpus.test.texts))
        rows = ([i for i, text in enumerate(one.texts) if same_text(text) not in tested] for one in parts)
        parts = [*(one.take(kept) for one, kept in zip(parts, rows, strict=True)), corpus.test]
    elif on != "folds":
        raise ValueError(f"on must be folds, or test where there is that split, got {on} of {corpus.name}")
    if corpus.name in WITHOUT_TITLES:
        parts = [replace(split, groups=tuple(map(same_text, split.texts))) for split in parts]
    for split in parts:
        if split.labels is None or split.groups is None:
            lacking = "labels" if split.labels is None else "groups, such as the film of each review"
            raise ValueError(f"folds must be grouped, of labelled texts, got {corpus.name} without {lacking}")
    every, labelled = (_joined(some) for some in (parts, parts[:2]))
    known, groups = set(map(same_text, every.texts)), set(every.groups or ())

    def clean(split: Split) -> tuple[str, ...]:
        of = split.groups or (None,) * len(split)
        pairs = zip(split.texts, of, strict=True)
        return tuple(text for text, group in pairs if group not in groups and same_text(text) not in known)

    train, valid = clean(unlabelled.train), clean(unlabelled.valid)
    n_left_out = len(unlabelled.train) + len(unlabelled.valid) - len(train) - len(valid)
    own = (corpus.name, f"{corpus.name}-unlabelled")
    name = corpus.name if unlabelled.name in own else f"{corpus.name}+{unlabelled.name}"
    if on == "folds":
        return Texts(name, labelled, train, valid, n_left_out)
    return Texts(f"{name}, test", labelled, train, valid, n_left_out, parts[-1])


def _joined(parts: Sequence[Split]) -> Split:
    columns = [[getattr(split, name) for split in parts] for name in ("texts", "labels", "groups")]
    return Split(*(tuple(chain(*column)) for column in columns))


def grouped_folds(split: Split, n_folds: int, n_draws: int, n_test: int) -> list[Fold]:
    """Folds of nearly equal size that divide no group, the same for each draw of labels.

    In each, `n_test` texts are tested, equally many of each class. They come draw by draw; fold k of draw r
    has the seed ``r * n_folds + k``.

    Examples
    --------
    >>> one, two = grouped_folds(Split(tuple("abcd"), (0, 1, 0, 1), ("x", "x", "y", "y")), 2, 1, 2)
    >>> set(one.test.groups), set(one.train.groups)
    ({'x'}, {'y'})
    """
    names, sizes = np.unique(np.asarray(split.groups or ()), return_counts=True)
    if not 2 <= n_folds <= len(names):
        raise ValueError(f"n_folds must be from 2 to {len(names)}, the number of groups, got {n_folds}")
    fold_of: dict[str, int] = {}
    filled = np.zeros(n_folds, dtype=int)
    for i in np.random.default_rng(n_folds).permutation(len(names)):
        fold_of[str(names[i])] = smallest = int(filled.argmin())
        filled[smallest] += sizes[i]
    numbers, parts = np.array([fold_of[group] for group in split.groups or ()]), []
    for k in range(n_folds):
        test, train = (split.take(np.flatnonzero(rows).tolist()) for rows in (numbers == k, numbers != k))
        parts.append((k, train, label_subset(test, min(n_test, len(test)), seed=k)))
    return [Fold(draw, k, draw * n_folds + k, *own) for draw in range(n_draws) for k, *own in parts]


def last_words(split: Split, n_words: int) -> Split:
    """The end of each text, in lower case, where a review has its verdict."""
    texts = tuple(" ".join(text.lower().split()[-n_words:]) for text in split.texts)
    return Split(texts, split.labels, split.groups)


def lowered(texts: Sequence[str]) -> list[str]:
    """Texts in lower case, so a word has one embedding."""
    return [text.lower() for text in texts]
