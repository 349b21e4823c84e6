"""The experiment, cell by cell: each is measured once and kept."""

from __future__ import annotations

import dataclasses
import os
import statistics
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from experiments import transfer_encoders
from experiments.store import Store
from experiments.transfer_conditions import TASKS, Condition, condition, task_of
from experiments.transfer_data import Fold, Task, digest_of, distinct_texts, stratified_folds, transfer_recipe
from experiments.transfer_encoders import (
    Bodies,
    LinearStars,
    fine_tuned,
    is_finished,
    opinions,
    pooled_states,
)
from tinytx.model.transformer import Classifier, Transformer
from tinytx.text.corpora import Corpus, Split, label_subset
from tinytx.training.fit import Report
from tinytx.training.intervals import PairedInterval, paired_interval
from tinytx.training.loop import progress_bar
from tinytx.training.recipes import parse_budget

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


def kept_rows(records: Mapping[str, Mapping[str, Any]], budget: str | None = None) -> list[TableRow]:
    """Rows of which every fold is kept; others are left out.

    Parameters
    ----------
    records : mapping of str to mapping
        By key, as ``python -m experiments transfer --corpus cls-books`` keeps them.
    budget : str, optional
        By default that of most records.

    Returns
    -------
    list of TableRow
        In the order of the records, over as many repetitions of the folds as all of them have. Only those of
        one set of texts and folds, that of most records, and of the conditions, models and fine-tuning that
        the recipes have now, as others cannot be compared.

    Examples
    --------
    >>> cell = {"condition": "scratch", "n_labels": 50, "origin": {"texts": "a", "n_folds": 2}}
    >>> records = {
    ...     f"mine/study/scratch/labels 50/repeat 0/fold {k}": {**cell, "repeat": 0, "fold": k, "seed": k,
    ...     "accuracy": 0.5 + k / 10} for k in (0, 1)}
    >>> kept_rows(records)[0].accuracies
    (0.5, 0.6)
    """
    if not records:
        return []
    budgets = {key: key.split("/")[1] for key in records}
    budget = _commonest(budgets.values()) if budget is None else budget
    chosen = [one for key, one in records.items() if budgets[key] == budget and _is_of_the_recipe(key, one)]
    if not chosen:
        return []
    texts, n_folds = _commonest((one["origin"]["texts"], one["origin"]["n_folds"]) for one in chosen)
    cells: dict[tuple[str, int], dict[tuple[int, int], tuple[int, float]]] = {}
    for one in chosen:
        if (one["origin"]["texts"], one["origin"]["n_folds"]) == (texts, n_folds):
            row = cells.setdefault((one["condition"], one["n_labels"]), {})
            row[one["repeat"], one["fold"]] = one["seed"], one["accuracy"]
    for row_name in [name for name, row in cells.items() if _repeats(row, n_folds) == 0]:
        del cells[row_name]
    shared = min((_repeats(row, n_folds) for row in cells.values()), default=0)
    due = [(repeat, fold) for repeat in range(shared) for fold in range(n_folds)]
    whole = {name: dict(row[place] for place in due) for name, row in cells.items()}
    return [row_of(name, n, values, whole) for (name, n), values in whole.items()]


def _is_of_the_recipe(key: str, record: Mapping[str, Any]) -> bool:
    """Whether a record follows from the recipe as it is now, so far as can be told without the texts."""
    corpus, budget = key.split("/")[:2]
    task = TASKS.get(corpus)
    if task is None:
        return True
    try:
        wanted = condition(record["condition"], task)
    except ValueError:  # kept under a name that has been given up since
        return False
    origin = wanted.origin(task.recipes[budget])
    return all(record["origin"].get(name) == value for name, value in origin.items())


def _repeats(row: Mapping[tuple[int, int], Any], n_folds: int) -> int:
    """How many repetitions, from the first on, have all their folds."""
    repeat = 0
    while all((repeat, fold) in row for fold in range(n_folds)):
        repeat += 1
    return repeat


def _commonest(values: Any) -> Any:
    return Counter(values).most_common(1)[0][0]


_BAGS = {
    "majority": "the commoner class",
    "tfidf-logistic": "bag of words",
    "tfidf-bayes": "naive Bayes",
    "tfidf-letters": "bag of words and letters",
    "tfidf+linear-stars": "bag of words + stars foretold",
}
_BODIES = {"scratch": "from scratch", "scratch-causal": "from scratch, causal", "stars": "star ratings first"}
_WAYS = {
    "brief": "tuned briefly",
    "probe": "frozen",
    "tfidf": "+ bag",
    "letters": "+ bag and letters",
    "tfidf+stars": "+ bag + stars foretold",
}


def spoken(condition: str) -> str:
    """The name of a condition as a table for people has it.

    Examples
    --------
    >>> spoken("masked:near/probe"), spoken("counts:readers+stars"), spoken("tfidf-logistic")
    ('masked, near, frozen', 'counts, readers, then stars', 'bag of words')
    """
    if condition in _BAGS:
        return _BAGS[condition]
    body, _, way = condition.partition("/")
    pretrained, _, stars = body.partition("+")
    words = _BODIES.get(body) or pretrained.replace(":", ", ") + (", then stars" if stars else "")
    if not way:
        return words
    read = _WAYS.get(way, way)
    return f"{words} {read}" if read.startswith("+") else f"{words}, {read}"


def kind_of(condition: str) -> str:
    """What a condition learned from before it saw labels.

    Returns
    -------
    str
        "words" for a bag of words and "nothing" for a new body, which saw nothing before; "text", for one
        pretrained on text without labels; "neighbour", for whatever learned another task with labels, the
        stars that readers gave.

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


@dataclass(frozen=True)
class Listed:
    """One condition with one number of labels: how many folds are measured, and the CPU time they took."""

    condition: str
    n_labels: int
    measured: int
    missing: int
    cpu_seconds: float

    def __str__(self) -> str:
        state = "done" if not self.missing else f"{self.missing} missing"
        return (
            f"{self.condition:<28}{self.n_labels:>6,} labels  {self.measured:>3} measured "
            f"({self.cpu_seconds:,.0f} s of CPU), {state}"
        )


@dataclass(frozen=True)
class Listing:
    """All cells of an experiment, and the stages of pretraining that missing ones wait for."""

    cells: tuple[Listed, ...]
    unfinished: tuple[str, ...]

    def __str__(self) -> str:
        lines = [str(cell) for cell in self.cells]
        if self.unfinished:
            lines.append(f"to be pretrained first: {len(self.unfinished)} stages")
            lines += [f"    {name}" for name in self.unfinished]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON can hold them."""
        return {
            "cells": [dataclasses.asdict(cell) for cell in self.cells],
            "unfinished": list(self.unfinished),
        }


def listing(experiment: TransferExperiment) -> Listing:
    """What is there and what is not; nothing is computed but that."""
    found: dict[tuple[str, int], list[dict[str, Any] | None]] = {}
    for cell in experiment.cells:
        found.setdefault((cell.condition.name, cell.n_labels), []).append(experiment.measured(cell))
    cells = []
    for (name, n_labels), records in found.items():
        there = [record for record in records if record is not None]
        seconds = sum(record["cpu_seconds"] for record in there)
        cells.append(Listed(name, n_labels, len(there), len(records) - len(there), seconds))
    return Listing(tuple(cells), tuple(experiment.unfinished()))


LABELS = (50, 100, 200, 400, 800, 1_600)


@dataclass(frozen=True)
class Cell:
    """One thing to be measured."""

    condition: Condition
    n_labels: int
    fold: Fold


class TransferExperiment:
    """Everything that is measured on one corpus of labelled texts, and what is still missing.

    Parameters
    ----------
    corpus : Corpus
        Its train and valid splits are folded; its test split is not touched.
    store : Store
        Such as ``tinytx_course.results.Results("transfer-cls-books")``.
    data_dir : path or None
        Where the unlabelled texts lie.
    budget : str
    conditions : sequence of str, optional
        See `condition`; by default those of the task.
    label_counts : sequence of int
    n_folds, n_seeds : int, optional
        Seeds are as many as folds, or a multiple: then the folds are drawn again.
    work_dir, device : path, str
    report : callable
        Told what is folded and what is pretrained.
    task : Task, optional
        By default the one of the corpus.
    """

    def __init__(
        self,
        corpus: Corpus,
        *,
        store: Store,
        data_dir: str | os.PathLike[str] | None,
        budget: str | float | None = None,
        conditions: Sequence[str] | None = None,
        label_counts: Sequence[int] = (200,),
        n_folds: int | None = None,
        n_seeds: int | None = None,
        work_dir: str | os.PathLike[str] = "build",
        device: str = "auto",
        report: Report = print,
        task: Task | None = None,
    ) -> None:
        task = task_of(corpus.name) if task is None else task
        self._recipe = transfer_recipe(parse_budget(budget), task.recipes, report)
        self._store, self._budget, self._name = store, self._recipe.budget, corpus.name
        self._texts, self.n_repeated = distinct_texts(corpus)
        if task.n_texts is not None and task.n_texts < len(self._texts):
            report(f"{task.n_texts:,} of {len(self._texts):,} texts of {corpus.name} are drawn and folded")
            self._texts = label_subset(self._texts, task.n_texts, seed=0)
        self._fingerprint = digest_of(
            {"texts": list(self._texts.texts), "labels": list(self._texts.labels or ())}
        )
        n_folds = task.n_folds if n_folds is None else n_folds
        n_seeds = n_folds if n_seeds is None else n_seeds
        if n_seeds < 1 or n_seeds % n_folds:
            raise ValueError(
                f"seeds must be a multiple of folds, as every text is tested, got {n_seeds} and {n_folds}"
            )
        repeats = range(n_seeds // n_folds)
        self._folds = [fold for r in repeats for fold in stratified_folds(self._texts, n_folds, r)]
        smallest = min(len(fold.train) for fold in self._folds)
        if not label_counts or not all(2 <= n <= smallest for n in label_counts):
            raise ValueError(f"labels must be numbers from 2 to {smallest}, got {list(label_counts)}")
        self._n_folds = n_folds
        self.cells = [
            Cell(one, n, fold)
            for one in [condition(name, task) for name in (conditions or task.conditions)]
            for n in label_counts
            for fold in self._folds
        ]
        self._sources = task.sources(None if data_dir is None else Path(data_dir), self._texts.texts)
        folder = Path(work_dir) / f"transfer-{self._name}"
        self._bodies = Bodies(task, self._recipe, self._sources, folder, device, report)
        self._device = device
        self._rater: LinearStars | None = None

    def key(self, cell: Cell) -> str:
        """The name of a cell in the store."""
        where = f"repeat {cell.fold.repeat}/fold {cell.fold.number}"
        return f"{self._name}/{self._budget}/{cell.condition.name}/labels {cell.n_labels}/{where}"

    def origin(self, cell: Cell) -> dict[str, Any]:
        """Everything that a cell follows from."""
        found: dict[str, Any] = {"texts": self._fingerprint, "n_folds": self._n_folds}
        if cell.condition.way == "bag":
            return found
        stages = [folder.name for _, folder in self._bodies.stages(cell.condition, cell.fold)]
        return {**found, "stages": stages, **cell.condition.origin(self._recipe)}

    def measured(self, cell: Cell) -> dict[str, Any] | None:
        """The record of a cell, or None where it is missing or follows from something else."""
        record = self._store.get(self.key(cell))
        return record if record is not None and record.get("origin") == self.origin(cell) else None

    def missing(self) -> list[Cell]:
        """Cells that are not measured yet."""
        return [cell for cell in self.cells if self.measured(cell) is None]

    def unfinished(self) -> list[str]:
        """Names of the folders of pretraining that missing cells wait for."""
        found: dict[str, None] = {}
        for cell in self.missing():
            if cell.condition.way != "bag":
                for stage, folder in self._bodies.stages(cell.condition, cell.fold):
                    if not is_finished(stage, folder):
                        found[folder.name] = None
        return list(found)

    def run(self, *, progress: bool | None = None) -> list[TableRow]:
        """Measure what is missing, each cell kept at once, and give the rows."""
        missing = self.missing()
        with progress_bar(len(missing), label=f"transfer on {self._name}", show=progress) as bar:
            for cell in missing:
                self._store.put(self.key(cell), {**self._measure(cell), "origin": self.origin(cell)})
                bar.update()
        return self.rows()

    def rows(self) -> list[TableRow]:
        """Conditions and numbers of labels of which every fold is measured."""
        found: dict[tuple[str, int], dict[int, float]] = {}
        for cell in self.cells:
            record = self.measured(cell)
            if record is not None:
                found.setdefault((cell.condition.name, cell.n_labels), {})[cell.fold.seed] = record[
                    "accuracy"
                ]
        whole = {key: values for key, values in found.items() if len(values) == len(self._folds)}
        return [row_of(name, n, values, whole) for (name, n), values in whole.items()]

    def _measure(self, cell: Cell) -> dict[str, Any]:
        begin = time.process_time()
        learned = label_subset(cell.fold.train, cell.n_labels, cell.fold.seed)
        found = (
            self._with_bag(cell, learned) if cell.condition.way == "bag" else self._with_body(cell, learned)
        )
        return {
            "corpus": self._name,
            "condition": cell.condition.name,
            "n_labels": cell.n_labels,
            "repeat": cell.fold.repeat,
            "fold": cell.fold.number,
            "seed": cell.fold.seed,
            **found,
            "n": len(cell.fold.tested),
            "accuracy": found["correct"] / len(cell.fold.tested),
            "cpu_seconds": round(time.process_time() - begin, 1),
        }

    def _with_bag(self, cell: Cell, learned: Split) -> dict[str, Any]:
        name, tested, seed = cell.condition.name, cell.fold.tested, cell.fold.seed
        chosen: dict[str, Any] = {}
        if name == "majority":
            answers = transfer_encoders.majority(learned, tested)
        elif name == "tfidf+linear-stars":
            own, others = (self._linear_stars(part) for part in (learned, tested))
            answers, chosen = transfer_encoders.beside_words(learned, tested, own, others, seed)
        else:
            answers, chosen = transfer_encoders.bag_of_words(
                learned, tested, name.removeprefix("tfidf-"), seed
            )
        return {"correct": _n_right(answers, tested), **chosen}

    def _with_body(self, cell: Cell, learned: Split) -> dict[str, Any]:
        wanted, fold, tested = cell.condition, cell.fold, cell.fold.tested
        model, pieces = self._bodies.model(wanted, fold), self._bodies.tokenizer
        new = self._bodies.new_body(causal=wanted.causal, seed=fold.seed)
        body = new if model is None else model.body
        tuning = wanted.tuning(self._recipe)
        if tuning is not None:
            correct, curve = fine_tuned(
                body, pieces, learned, tested, tuning=tuning, seed=fold.seed, device=self._device
            )
            return {"correct": correct, "accuracy_by_epoch": curve}
        own, others = (self._columns(wanted, model, body, part) for part in (learned, tested))
        if wanted.way == "probe":
            answers, chosen = transfer_encoders.read_columns(learned, tested, own, others, fold.seed)
        else:
            letters = wanted.way == "letters"
            answers, chosen = transfer_encoders.beside_words(
                learned, tested, own, others, fold.seed, letters=letters
            )
        return {"correct": _n_right(answers, tested), **chosen}

    def _columns(
        self, wanted: Condition, model: nn.Module | None, body: Transformer, part: Split
    ) -> np.ndarray:
        """What a linear model is told of each text by a body."""
        pieces = self._bodies.tokenizer
        if wanted.way == "probe" or not isinstance(model, Classifier):
            columns = pooled_states(body, pieces, part, device=self._device)
        else:
            columns = opinions(model, pieces, part, device=self._device)
        return np.hstack([columns, self._linear_stars(part)]) if wanted.way == "tfidf+stars" else columns

    def _linear_stars(self, part: Split) -> np.ndarray:
        self._rater = self._rater or LinearStars(self._sources.rated)
        return self._rater(part.texts)


def _n_right(answers: np.ndarray, tested: Split) -> int:
    return int((answers == np.asarray(tested.labels)).sum())
