"""Texts with their labels and groups, and how they are divided: none to learn from is in what is reported."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tinytx.tokenizer import canonical
from tinytx_run.tables import SPLIT_FILES

SPLIT_SEED = 20_000
UNLABELLED_SHARE, LABELLED_SHARE = 0.05, 0.10  # of the different texts, for valid and for test each

Rows = Sequence[tuple[str, str]]


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
        for name, given in (("groups", self.groups), ("labels", self.labels)):
            if given is not None and len(given) != len(self.texts):
                got = f"{len(given)} {name}, {len(self.texts)} texts"
                raise ValueError(f"{name} must be as many as texts, got {got}")

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, rows: Sequence[int]) -> Split:
        """The texts at some indices."""
        labels = None if self.labels is None else tuple(self.labels[i] for i in rows)
        groups = None if self.groups is None else tuple(self.groups[i] for i in rows)
        return Split(tuple(self.texts[i] for i in rows), labels, groups)


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
        one, got = "", f"{len(name_of)}"
        if split.labels is not None:
            one, got = " of one label", f"{got} of {len(set(labels))} labels"
        raise ValueError(f"{source} must hold at least 3 different texts{one} to be split, got {got}")
    if not with_test:
        rows = {"train": sorted(rows["train"] + rows["test"]), "valid": rows["valid"]}
    return {name: split.take(chosen) for name, chosen in rows.items()}


def split_pairs(rows: Rows, *, n_held_out: int) -> dict[str, list[tuple[str, str]]]:
    """Split sentence pairs into train, valid and test such that no sentence is in two of them.

    Pairs that share a sentence by `canonical`, directly or through others, stay together. The groups, in the
    order of the sha256 of a seed and their first pair, fill test, then valid, each up to exactly its size; a
    group larger than the remaining room goes to train. Equal pairs are taken once.

    Parameters
    ----------
    rows : sequence of (str, str)
        In any order; that of the splits does not depend on it.
    n_held_out : int
        Pairs of valid and of test each.
    """
    rows = sorted(set(rows), key=_order)
    groups: dict[int, list[tuple[str, str]]] = {}
    for group, row in zip(connected([(canonical(a), canonical(b)) for a, b in rows]), rows, strict=True):
        groups.setdefault(group, []).append(row)
    splits: dict[str, list[tuple[str, str]]] = {"train": [], "valid": [], "test": []}
    for members in sorted(groups.values(), key=lambda members: _order(min(members))):
        room = (s for s in ("test", "valid") if len(splits[s]) + len(members) <= n_held_out)
        splits[next(room, "train")] += members
    return {split: sorted(members, key=_order) for split, members in splits.items()}


def _order(row: tuple[str, str]) -> bytes:
    return hashlib.sha256(f"{SPLIT_SEED}\t{row[0]}\t{row[1]}".encode()).digest()


def connected(rows: Rows) -> list[int]:
    """Number the connected components of pairs that share a source or a target.

    Examples
    --------
    >>> connected([("a", "x"), ("b", "y"), ("a", "z"), ("c", "z")])
    [0, 1, 0, 0]
    """
    above: dict[tuple[int, str], tuple[int, str]] = {}  # of a side and its sentence: another of its component

    def top(key: tuple[int, str]) -> tuple[int, str]:
        while (parent := above.setdefault(key, key)) != key:
            above[key] = key = above[parent]  # shorter for the next
        return key

    for source, target in rows:
        above[top((1, target))] = top((0, source))
    numbers: dict[tuple[int, str], int] = {}
    return [numbers.setdefault(top((0, source)), len(numbers)) for source, _ in rows]
