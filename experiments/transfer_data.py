"""Texts of the transfer experiment: labelled ones in folds, unlabelled ones without any that is tested."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.harness import digest_of
from tinytx.text.corpora import Corpus, Split
from tinytx.text.tables import read_lines
from tinytx.text.tokenizer import plain
from tinytx_course.labs.docstrings import docstrings_corpus, without_giveaways
from tinytx_course.labs.lesson_15 import LOST_APOSTROPHE, same_text

SHORTEST_WORDS = 3
HIGHEST_STARS = 5.0


def readable(text: str) -> str:
    """A text in plain typography; a "?" between letters, which replaced an apostrophe, is repaired.

    Examples
    --------
    >>> readable("l?amour  d\u2019une vie. Vraiment ?")
    "l'amour d'une vie. Vraiment ?"
    """
    return " ".join(LOST_APOSTROPHE.sub("'", plain(text)).split())


def distinct_texts(corpus: Corpus) -> tuple[Split, int]:
    """The labelled texts of train and valid, each once; and how many repetitions were left out.

    A text that occurs with two different labels is left out altogether. The test split is not touched.
    """
    pairs: list[tuple[str, int]] = []
    for split in (corpus.train, corpus.valid):
        if split.labels is None:
            raise ValueError(f"folds need a corpus with labels, got {corpus.name}, which has none")
        pairs += zip(split.texts, split.labels, strict=True)
    labels: dict[str, set[int]] = {}
    for text, label in pairs:
        labels.setdefault(same_text(text), set()).add(label)
    found: dict[str, tuple[str, int]] = {}
    for text, label in pairs:
        key = same_text(text)
        if key and len(labels[key]) == 1:
            found.setdefault(key, (readable(text), label))
    texts, classes = zip(*found.values(), strict=True)
    return Split(texts, classes), len(pairs) - len(found)


@dataclass(frozen=True)
class Fold:
    """One part of the texts is held out for testing, the others may be learned from.

    It is fold `number` of drawing `repeat`; `seed` is that of the subset of labels, of new weights and of the
    order of learning.
    """

    repeat: int
    number: int
    seed: int
    train: Split
    test: Split


def stratified_folds(split: Split, n_folds: int, repeat: int = 0) -> list[Fold]:
    """Folds of nearly equal size, with nearly equally many of each class in each.

    Not those of scikit-learn, as stored results belong to these.

    Parameters
    ----------
    split : Split
        Labelled texts, each once.
    n_folds : int
        At least 2; at most the size of the smallest class.
    repeat : int
        Fold ``k`` of repetition ``r`` has the seed ``r * n_folds + k``.

    Examples
    --------
    >>> one, two = stratified_folds(Split(tuple("abcd"), (0, 1, 0, 1)), 2)
    >>> sorted(one.test.texts + two.test.texts), set(one.test.texts) & set(one.train.texts)
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

    def part(rows: np.ndarray) -> Split:
        return Split(tuple(split.texts[i] for i in rows), tuple(labels[rows].tolist()))

    found = []
    for number in range(n_folds):
        train, test = part(np.flatnonzero(fold_of != number)), part(np.flatnonzero(fold_of == number))
        found.append(Fold(repeat, number, repeat * n_folds + number, train, test))
    return found


def thinned(texts: list[str], n_words: int) -> list[str]:
    """Texts drawn with seed 0 until they hold so many words."""
    found, total = [], 0
    for index in np.random.default_rng(0).permutation(len(texts)).tolist():
        if total >= n_words:
            break
        found.append(texts[index])
        total += texts[index].count(" ") + 1
    return found


class ReviewSources:
    """Unlabelled French by name, in plain typography, without any text that is tested.

    Parameters
    ----------
    data_dir : path
        Holds ``eltec-fra/``, ``tatoeba-en-fr/`` and ``reader-reviews-fr/``, of which only what is asked for
        is read.
    left_out : iterable of str
        Texts that are never given, whatever their case and punctuation: those that will be tested.
    """

    names = ("novels", "tatoeba", "readers")

    def __init__(self, data_dir: Path | None, left_out: Iterable[str] = ()) -> None:
        if data_dir is None:
            raise ValueError("data_dir must be the folder that holds the texts, got None")
        self._folder = Path(data_dir)
        self._left_out = {same_text(text) for text in left_out}

    def texts(self, name: str, words: Mapping[str, int]) -> list[str]:
        """Texts of one source, or of all under the name "around", each thinned to so many words."""
        names = self.names if name == "around" else (name,)
        return [text for one in names for text in thinned(self._all(one), words[one])]

    def identity(self, name: str) -> dict[str, Any]:
        """Nothing: the texts are the same on every machine."""
        return {}

    @functools.cached_property
    def rated(self) -> list[tuple[str, float]]:
        """Reader reviews and their stars from 0.5 to 5, each text once."""
        found: dict[str, tuple[str, float]] = {}
        for path in sorted(self._require("reader-reviews-fr").glob("*.jsonl")):
            for number, line in read_lines(path):
                try:
                    row = json.loads(line)
                    text, stars = readable(row["reader_review"]), float(row["rating"])
                except (ValueError, KeyError, TypeError) as error:
                    raise ValueError(
                        f"{path}, line {number}: must be JSON with reader_review and rating, got {error!r}"
                    ) from error
                if stars <= HIGHEST_STARS and self._is_wanted(text):
                    found.setdefault(same_text(text), (text, stars))
        return list(found.values())

    def _all(self, name: str) -> list[str]:
        if name == "readers":
            return [text for text, _ in self.rated]
        if name == "novels":
            lines = (line for _, line in read_lines(self._require("eltec-fra") / "corpus.train.txt"))
        else:
            pairs = read_lines(self._require("tatoeba-en-fr") / "pairs.train.tsv")
            lines = (line.partition("\t")[2] for _, line in pairs)
        return [text for text in map(readable, lines) if self._is_wanted(text)]

    def _is_wanted(self, text: str) -> bool:
        return text.count(" ") + 1 >= SHORTEST_WORDS and same_text(text) not in self._left_out

    def _require(self, name: str) -> Path:
        folder = self._folder / name
        if not folder.is_dir():
            raise ValueError(f"data_dir must hold the folder {name} for this variant, looked for {folder}")
        return folder


class DocstringSources:
    """The docstrings of this machine, without those of the test splits and those that hold a tested text.

    Parameters
    ----------
    data_dir : path or None
        Not read: these texts are on every machine.
    left_out : iterable of str
        Texts of the task. A document is never given if it holds one of them, with or without the sentences
        that name packages, whatever case and punctuation.
    documents : sequence of str, optional
        By default the train and valid splits of `docstrings_corpus`.
    """

    def __init__(
        self, data_dir: Path | None, left_out: Iterable[str] = (), documents: Sequence[str] | None = None
    ) -> None:
        self._documents = documents
        wanted = {tuple(same_text(text).split()) for text in left_out} - {()}
        self._n_first = min(map(len, wanted), default=0)
        self._by_first: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
        for words in wanted:
            self._by_first.setdefault(words[: self._n_first], []).append(words)

    def texts(self, name: str, words: Mapping[str, int]) -> list[str]:
        """All documents, thinned to so many words."""
        return thinned(self._all, words[name])

    def identity(self, name: str) -> dict[str, Any]:
        """A digest of the texts: each machine has its own packages."""
        return {"documents": self._digest}

    @property
    def rated(self) -> list[tuple[str, float]]:
        """Nothing: no docstring has stars."""
        raise ValueError("stars need a task with star ratings, got docstrings")

    @functools.cached_property
    def _digest(self) -> str:
        return digest_of({"documents": self._all})

    @functools.cached_property
    def _all(self) -> list[str]:
        documents = self._documents
        if documents is None:
            corpus = docstrings_corpus()
            documents = corpus.train.texts + corpus.valid.texts
        return [readable(one) for one in documents if not self._holds_tested(one)]

    def _holds_tested(self, document: str) -> bool:
        forms = [same_text(form).split() for form in (document, without_giveaways(document))]
        return any(
            tuple(words[at : at + len(one)]) == one
            for words in forms
            for at in range(len(words) - self._n_first + 1)
            for one in self._by_first.get(tuple(words[at : at + self._n_first]), ())
        )
