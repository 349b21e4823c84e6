"""Lesson 15, real text: repeated texts, and the stored accuracies of pretraining by tokens read."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tinytx.tokenizer import plain
from tinytx_run.intervals import PairedInterval, paired_interval

Records = Mapping[str, Mapping[str, Any]]


def same_text(text: str) -> str:
    """The words of a text in lower case, without punctuation: equal for repeated texts.

    Examples
    --------
    >>> same_text("L?amour d\u2019une vie. Vraiment ?")
    'l amour d une vie vraiment'
    """
    return " ".join(re.findall(r"[^\W_]+", plain(text).lower()))


@dataclass(frozen=True)
class Measured:
    """Accuracies in percent of all conditions with one number of labels, on the same folds."""

    accuracies: dict[str, list[float]]  # a number a fold, first of the first draw of labels; some have fewer
    tokens: dict[str, int]  # what each condition read in pretraining; 0 for none
    test_share: float  # of a fold, for intervals: tested groups by those that may be learned from

    def doses(self, start: str, way: str) -> list[str]:
        """Conditions that differ in the dose of pretraining alone, from the smallest on."""
        found = [name for name in self.accuracies if name.startswith(f"{start}/{way}/")]
        return sorted(found, key=self.tokens.__getitem__)

    def __contains__(self, name: str) -> bool:
        return name in self.accuracies

    def interval(self, name: str) -> PairedInterval:
        """Mean accuracy of a condition with its interval over the folds."""
        return paired_interval(self.accuracies[name], test_share=self.test_share)

    def gain(self, name: str, other: str, n_comparisons: int = 1) -> PairedInterval:
        """Points by which a condition is above another one, paired by fold, in the draws that both have."""
        pairs = zip(self.accuracies[name], self.accuracies[other], strict=False)
        return paired_interval([a - b for a, b in pairs], n_comparisons, test_share=self.test_share)


def measured(records: Records, corpus: str = "imdb", budget: str = "study") -> dict[int, Measured]:
    """Accuracies of ``results/pretraining.json`` by number of labels; a condition needs a draw of all folds.

    Examples
    --------
    >>> cell = {"corpus": "films", "condition": "tfidf-words", "n_labels": 50, "dose": 0, "draw": 0}
    >>> cells = {
    ...     f"films/study/{k}": {**cell, "fold": k, "accuracy": 0.5 + k / 10, "origin": {"n_folds": 2}}
    ...     for k in (0, 1)}
    >>> measured(cells, "films")[50].accuracies
    {'tfidf-words': [50.0, 60.0]}
    """
    cells: dict[int, dict[str, dict[tuple[int, int], float]]] = {}
    tokens: dict[str, int] = {}
    n_folds = 0
    for key, record in records.items():
        if key.startswith(f"{corpus}/{budget}/") and "condition" in record:
            name, n_folds = record["condition"], record["origin"]["n_folds"]
            of = cells.setdefault(record["n_labels"], {}).setdefault(name, {})
            of[record["draw"], record["fold"]] = 100 * record["accuracy"]
            start = name.partition("/")[0]
            read = records.get(f"{corpus}/{budget}/pretraining {start}/{record['dose']}")
            tokens[name] = read["n_tokens"] if read else 0
    found = {}
    for n_labels, by_name in sorted(cells.items()):
        accuracies = {}
        for name, of in by_name.items():
            n_draws = 0  # that are complete, from the first
            while all((n_draws, k) in of for k in range(n_folds)):
                n_draws += 1
            if n_draws:
                accuracies[name] = [of[at] for at in itertools.product(range(n_draws), range(n_folds))]
        if accuracies:
            found[n_labels] = Measured(accuracies, tokens, 1 / (n_folds - 1))
    return found


def written(interval: PairedInterval, form: str = "+.1f") -> str:
    """A mean with its interval, as a table or a sentence holds it.

    Examples
    --------
    >>> written(PairedInterval(2.04, -0.5, 4.6, 6)), written(PairedInterval(77.6, 74.9, 80.4, 6), ".1f")
    ('+2.0 [-0.5, +4.6]', '77.6 [74.9, 80.4]')
    """
    return f"{interval.mean:{form}} [{interval.low:{form}}, {interval.high:{form}}]"
