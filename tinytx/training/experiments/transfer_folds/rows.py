"""Rows of the table: means over folds, and paired intervals."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tinytx.training.intervals import PairedInterval, paired_interval

AGAINST = ("scratch", "tfidf-logistic", "tfidf-letters")


@dataclass(frozen=True)
class TableRow:
    """One condition with one number of labels, over all folds.

    Attributes
    ----------
    condition : str
    n_labels : int
    seeds : tuple of int
        One a fold and repetition.
    accuracies : tuple of float
        On the tested part of each fold, after the last epoch: nothing was selected by it.
    gains : dict
        Against each condition of `AGAINST` that was measured too: Student's interval of the differences in
        the same fold with the same labels, or None for a single fold. The folds of a repetition test
        different texts but learn from overlapping ones, so the interval is a little too narrow.
    """

    condition: str
    n_labels: int
    seeds: tuple[int, ...]
    accuracies: tuple[float, ...]
    gains: dict[str, PairedInterval | None]

    def __str__(self) -> str:
        line = f"{self.condition:<28}{self.n_labels:>6,} labels  {statistics.fmean(self.accuracies):.4f}"
        for name, gain in self.gains.items():
            if gain is not None:
                line += f"  against {name} {gain.mean:+.4f} [{gain.low:+.4f}, {gain.high:+.4f}]"
        return line

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON can hold them, with the mean."""
        gains = {name: None if g is None else [g.mean, g.low, g.high] for name, g in self.gains.items()}
        return {**dataclasses.asdict(self), "mean": statistics.fmean(self.accuracies), "gains": gains}


def row_of(
    name: str,
    n_labels: int,
    values: Mapping[int, float],
    whole: Mapping[tuple[str, int], Mapping[int, float]],
) -> TableRow:
    """The row of a condition, from its accuracies by seed and those of all others that are whole."""
    gains = {}
    for other in AGAINST:
        beside = whole.get((other, n_labels))
        if other != name and beside is not None:
            differences = [values[seed] - beside[seed] for seed in values]
            gains[other] = paired_interval(differences) if len(differences) > 1 else None
    return TableRow(name, n_labels, tuple(values), tuple(values.values()), gains)
