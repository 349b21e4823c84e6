"""Texts with their labels and groups, and how they are divided: none to learn from is in what is reported."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np

from tinytx.settings import require
from tinytx.tokenizer import canonical, several
from tinytx_run.letters import plain
from tinytx_run.tables import SPLIT_FILES

SPLIT_SEED = 20_000
MAX_HASHES, HASH_DIGITS = 100_000, 10  # of the texts that a model has learned, so at most a megabyte
UNLABELLED_SHARE, LABELLED_SHARE = 0.05, 0.10  # of the different texts, for valid and for test each
INVISIBLE = re.compile("[\u00ad\u200b\u2060\ufeff]")  # others would move texts that have been split
# At the end of a text these do not make it another one.
FINAL = " .,;:!?\u2026\u3002\uff01\uff1f\"'\u2019\u201d\u00bb)]-\u2013\u2014"

Rows = Sequence[tuple[str, str]]


@dataclass(frozen=True, repr=False)
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
    >>> Split(("un beau livre", "un livre raté"), (1, 0))
    Split(2 texts with labels, the first 'un beau livre')
    """

    texts: tuple[str, ...]
    labels: tuple[int, ...] | None = None
    groups: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "texts", tuple(several(self.texts)))  # of a column of pandas, too
        require(self.texts, "a split must hold at least one text", "none")
        for name, given in (("groups", self.groups), ("labels", self.labels)):
            if given is not None and len(given) != len(self.texts):
                got = f"{len(given)} {name}, {len(self.texts)} texts"
                raise ValueError(f"{name} must be as many as texts, got {got}")
        if self.groups is not None:
            object.__setattr__(self, "groups", tuple(self.groups))
        if self.labels is not None:
            for label in self.labels:
                if not (isinstance(label, Real) and label >= 0 and label % 1 == 0):
                    raise ValueError(f"labels must be integers from 0 up, got {label!r}")
            object.__setattr__(self, "labels", tuple(map(int, self.labels)))

    def __len__(self) -> int:
        return len(self.texts)

    def __repr__(self) -> str:
        labels, first = " with labels" if self.labels else "", shorten(self.texts[0], 60)
        return f"Split({len(self):,} texts{labels}, the first {first!r})"

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


def canonical_text(text: str) -> str:
    """A text as texts are compared: without case, invisible characters, final punctuation, further spaces.

    Examples
    --------
    >>> {canonical_text(text) for text in ("te\u0301  fou", "t\u00e9 fou.", "T\u00c9\u00a0Fou\u200b !")}
    {'té fou'}
    """
    words = plain(text.casefold(), INVISIBLE)
    return words.rstrip(FINAL) or words


def text_digest(text: str) -> bytes:
    """The SHA-256 of the canonical form of a text."""
    return hashlib.sha256(canonical_text(text).encode(errors="surrogatepass")).digest()


@dataclass(frozen=True)
class TextHashes:
    """Short hashes of the canonical forms of texts: by them a checkpoint knows what it has learned.

    Parameters
    ----------
    hashes : frozenset of int
        Below `limit`.
    limit : int
        Of more than `MAX_HASHES` different texts so many are noted, those with the lowest hashes: the limit
        says which share of all texts these are.
    """

    hashes: frozenset[int] = field(repr=False)
    limit: int = 16**HASH_DIGITS

    @classmethod
    def of(cls, texts: Iterable[str]) -> TextHashes:
        """Those of some texts."""
        hashes = sorted({_short_hash(text) for text in several(texts)})
        return cls(frozenset(hashes[:MAX_HASHES]), *hashes[MAX_HASHES : MAX_HASHES + 1])

    def count(self, texts: Sequence[str]) -> int:
        """How many of some texts are among them, by `canonical_text`; about, if only a share was noted."""
        n = sum(_short_hash(text) in self.hashes for text in texts)
        return min(len(texts), round(n * 16**HASH_DIGITS / self.limit))

    def to_json(self) -> dict[str, Any]:
        """As JSON can hold them."""
        digits = "".join(f"{number:0{HASH_DIGITS}x}" for number in sorted(self.hashes))
        return {"limit": self.limit, "hashes": digits}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> TextHashes:
        """The inverse of `to_json`."""
        digits = found["hashes"]
        parts = (digits[i : i + HASH_DIGITS] for i in range(0, len(digits), HASH_DIGITS))
        return cls(frozenset(int(part, 16) for part in parts), int(found["limit"]))


def _short_hash(text: str) -> int:
    return int(text_digest(text).hex()[-HASH_DIGITS:], 16)


def _place(text: str) -> float:
    """A number from 0 to 1 that follows from the canonical form of a text."""
    return int.from_bytes(text_digest(text)[:8]) / 2**64


def _by_place(places: Mapping[Any, float], share: float, held_out: Sequence[str]) -> dict[Any, str]:
    """The split of each key: its place decides, but none is empty where there are as many keys as splits."""
    ordered = sorted(places, key=places.__getitem__)
    names, end = dict.fromkeys(ordered, "train"), 0
    if len(ordered) <= len(held_out):
        return names
    for i, name in enumerate(held_out, start=1):
        begin, room = end, len(ordered) - 1 - len(held_out) + i  # one each is left for those that follow
        end = min(room, max(begin + 1, sum(place < i * share for place in places.values())))
        names |= dict.fromkeys(ordered[begin:end], name)
    return names


def split_texts(
    source: Path | str, split: Split, *, share: float, with_test: bool = True
) -> dict[str, Split]:
    """Split texts into train, valid and test, each by the hash of its canonical form alone.

    The test texts of a labelled file are held out of training, too, where it is read without its labels.

    Texts that are equal by `canonical_text` are in one split. Whatever is added, removed or shuffled, the
    others stay where they are, but for one rule: of each label with at least as many different texts, none of
    the splits is empty; else those with the smallest hashes are test and valid, that with the largest is
    train. Such texts may change their split with their label's other texts.

    Parameters
    ----------
    source : Path or str
        Named in the ValueError that is raised if the texts are too few.
    split : Split
        A label with fewer different texts is train. A text of several labels counts for the
        lowest.
    share : float
        Of the different texts, about, for valid and for test each.
    with_test : bool
        Without, nothing is held out for test.
    """
    held_out = ("test", "valid") if with_test else ("valid",)
    keys, label_of = list(map(canonical_text, split.texts)), dict[str, int]()
    for key, label in zip(keys, split.labels or (0,) * len(split), strict=True):
        label_of[key] = min(label, label_of.get(key, label))
    by_label: dict[int, dict[str, float]] = defaultdict(dict)
    for key, label in label_of.items():
        by_label[label][key] = _place(key)
    name_of: dict[str, str] = {}
    for places in by_label.values():
        name_of |= _by_place(places, share, held_out)
    names = [name for name in SPLIT_FILES if name in ("train", *held_out)]
    rows = {name: [i for i, key in enumerate(keys) if name_of[key] == name] for name in names}
    one, got = "", f"{len(name_of)}"
    if split.labels is not None:
        such = ", ".join(repr(text[:20]) for text in dict.fromkeys(split.texts[:3]))
        one, got = " of one label", f"{got} of {len(by_label)} labels, such as {such}"
    rule = f"{source} must hold at least {len(names)} different texts{one} to be split"
    require(all(rows.values()), rule, got)
    return {name: split.take(chosen) for name, chosen in rows.items()}


def split_groups(split: Split, *, share: float) -> dict[str, Split]:
    """Split texts into train and valid by the hashes of their groups, see `split_connected`.

    Examples
    --------
    >>> splits = split_groups(Split(tuple("abcd"), None, ("x", "x", "y", "y")), share=0.1)
    >>> {name: set(one.groups) for name, one in splits.items()}
    {'train': {'y'}, 'valid': {'x'}}
    """
    groups = split.groups or ()
    if len(set(groups)) < 2:
        raise ValueError(f"texts must be of at least 2 groups to be split by group, got {len(set(groups))}")
    names = split_connected(list(zip(groups, split.texts, strict=True)), share=share, held_out=("valid",))
    return {
        name: split.take([i for i, own in enumerate(names) if own == name]) for name in ("train", "valid")
    }


def split_connected(rows: Rows, *, share: float, held_out: Sequence[str] = ("test", "valid")) -> list[str]:
    """The split of each pair; those that share a side by `canonical_text` stay together, through others too.

    Such a component is where the largest hash of its first sides puts it. A pair that is added may thus move
    what was held out into train, by connecting both, and never the other way; one that is removed may take a
    component apart. As in `split_texts`, no split is empty where there are as many components as splits.

    Examples
    --------
    >>> split_connected([("a", "x"), ("b", "y"), ("A.", "z"), ("c", "w")], share=0.1)
    ['train', 'valid', 'train', 'test']
    """
    rows = [(canonical_text(first), canonical_text(second)) for first, second in rows]
    numbers, places = connected(rows), dict[int, float]()
    for number, (first, _) in zip(numbers, rows, strict=True):
        places[number] = max(_place(first), places.get(number, 0.0))
    names = _by_place(places, share, held_out)
    return [names[number] for number in numbers]


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
