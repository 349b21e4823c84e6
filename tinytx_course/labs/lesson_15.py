"""Lesson 15, real text and real models: a baseline for short texts, and the stored results of transfer."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from tinytx.text.corpora import Split
from tinytx.text.tokenizer import plain
from tinytx.training.intervals import PairedInterval, paired_interval
from tinytx_course.labs.docstrings import docstrings_corpus, gathered, installed, packages_corpus
from tinytx_course.labs.lesson_06 import PUBLISHED

__all__ = [
    "PUBLISHED",
    "bag_of_words",
    "display_name",
    "docstrings_corpus",
    "gathered",
    "installed",
    "kind_of",
    "packages_corpus",
    "same_text",
    "transfer_rows",
]

LOST_APOSTROPHE = re.compile(r"(?<=\w)\?(?=\w)")


def same_text(text: str) -> str:
    """The words of a text in lower case, without punctuation: equal for repeated texts.

    Examples
    --------
    >>> same_text("L?amour d\u2019une vie. Vraiment ?")
    'l amour d une vie vraiment'
    """
    return " ".join(re.findall(r"\w+", LOST_APOSTROPHE.sub("'", plain(text)).lower()))


def bag_of_words(train: Split, texts: Sequence[str], seed: int) -> np.ndarray:
    """Baseline: logistic regression on TF-IDF of words and pairs of words; the predicted labels (N,).

    Its regularisation is chosen by cross-validation on the training texts; `seed` draws the folds.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, StratifiedKFold

    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    features = vectorizer.fit_transform(train.texts)
    folds = StratifiedKFold(min(5, *Counter(train.labels).values()), shuffle=True, random_state=seed)
    strengths = {"C": (10.0, 1.0, 100.0)}
    search = GridSearchCV(LogisticRegression(max_iter=500), strengths, scoring="neg_log_loss", cv=folds)
    return search.fit(features, train.labels).predict(vectorizer.transform(texts))


AGAINST = ("scratch", "tfidf-logistic", "tfidf-letters")


@dataclass(frozen=True)
class TransferRow:
    """One way of learning with one number of labels, over all folds; a seed is a fold of a repetition.

    `gains` has, against each condition of `AGAINST` that was measured too, the confidence interval of the
    paired differences of accuracy, or None for a single fold. The folds of a repetition test different texts
    but learn from overlapping ones, so the interval is a little too narrow.
    """

    condition: str
    n_labels: int
    seeds: tuple[int, ...]
    accuracies: tuple[float, ...]
    gains: dict[str, PairedInterval | None]


def transfer_rows(records: Mapping[str, Mapping[str, Any]]) -> list[TransferRow]:
    """Rows of ``results/transfer-*.json`` for which every fold is measured.

    Only records of the commonest budget and of the commonest set of texts and folds are compared, over as
    many repetitions of the folds as all rows have.

    Examples
    --------
    >>> cell = {"condition": "scratch", "n_labels": 50, "origin": {"texts": "a", "n_folds": 2}}
    >>> records = {
    ...     f"mine/study/scratch/labels 50/repeat 0/fold {k}": {**cell, "repeat": 0, "fold": k, "seed": k,
    ...     "accuracy": 0.5 + k / 10} for k in (0, 1)}
    >>> transfer_rows(records)[0].accuracies
    (0.5, 0.6)
    """
    if not records:
        return []

    def compared(key: str) -> tuple[Any, ...]:
        origin = records[key]["origin"]
        return key.split("/")[1], origin["texts"], origin["n_folds"]

    ((common, _),) = Counter(map(compared, records)).most_common(1)
    n_folds = common[-1]
    cells: dict[tuple[str, int], dict[int, float]] = defaultdict(dict)
    for key, record in records.items():
        if compared(key) == common:
            cells[record["condition"], record["n_labels"]][record["seed"]] = record["accuracy"]
    # Fold k of repetition r has the seed r * n_folds + k.
    repeats = {name: next(i for i in count() if i not in cell) // n_folds for name, cell in cells.items()}
    seeds = range(n_folds * min((n for n in repeats.values() if n), default=0))
    values = {name: [cell[seed] for seed in seeds] for name, cell in cells.items() if repeats[name]}
    rows = []
    for (name, n_labels), mine in values.items():
        gains: dict[str, PairedInterval | None] = {}
        for other in AGAINST:
            if other != name and (other, n_labels) in values:
                differences = [a - b for a, b in zip(mine, values[other, n_labels], strict=True)]
                gains[other] = paired_interval(differences) if len(differences) > 1 else None
        rows.append(TransferRow(name, n_labels, tuple(seeds), tuple(mine), gains))
    return rows


_BAGS = {
    "majority": "the commoner class",
    "tfidf-logistic": "bag of words",
    "tfidf-bayes": "naive Bayes",
    "tfidf-letters": "bag of words and letters",
    "tfidf+linear-stars": "bag of words + predicted stars",
}
_BODIES = {"scratch": "from scratch", "scratch-causal": "from scratch, causal", "stars": "star ratings first"}
_WAYS = {
    "brief": "tuned briefly",
    "probe": "frozen",
    "tfidf": "+ bag",
    "letters": "+ bag and letters",
    "tfidf+stars": "+ bag + predicted stars",
}


def display_name(condition: str) -> str:
    """The name of a condition in a table or a figure.

    Examples
    --------
    >>> [display_name(name) for name in ("masked:near/probe", "counts:readers+stars", "tfidf-logistic")]
    ['masked, near, frozen', 'counts, readers, then stars', 'bag of words']
    """
    if condition in _BAGS:
        return _BAGS[condition]
    body, _, way = condition.partition("/")
    pretrained, _, stars = body.partition("+")
    name = _BODIES.get(body) or pretrained.replace(":", ", ") + (", then stars" if stars else "")
    if not way:
        return name
    way = _WAYS.get(way, way)
    return f"{name} {way}" if way.startswith("+") else f"{name}, {way}"


def kind_of(condition: str) -> str:
    """What a condition learned from before it saw labels: "words", "nothing", "text" or "neighbour".

    "words" are those of a bag of words; a "neighbour" is another task with labels, the stars of readers.

    Examples
    --------
    >>> [kind_of(name) for name in ("majority", "scratch", "masked:near/probe", "tfidf+linear-stars")]
    ['words', 'nothing', 'text', 'neighbour']
    """
    if "stars" in condition:
        return "neighbour"
    if condition in _BAGS:
        return "words"
    return "nothing" if condition.partition("/")[0] in _BODIES else "text"
