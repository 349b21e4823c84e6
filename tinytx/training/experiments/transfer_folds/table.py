"""The experiment, cell by cell: each is measured once and kept."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from tinytx.model import Classifier, TransformerBody
from tinytx.text.corpora import Corpus, Split
from tinytx.training.budgets import parse_budget
from tinytx.training.engine.progress import progress_bar
from tinytx.training.experiments.kept import Store
from tinytx.training.experiments.transfer_folds import linear
from tinytx.training.experiments.transfer_folds.bodies import Bodies, is_finished
from tinytx.training.experiments.transfer_folds.conditions import Condition, condition
from tinytx.training.experiments.transfer_folds.folds import Fold, distinct_texts, stratified_folds
from tinytx.training.experiments.transfer_folds.recipes import transfer_recipe
from tinytx.training.experiments.transfer_folds.rows import TableRow, row_of
from tinytx.training.experiments.transfer_folds.sources import digest_of
from tinytx.training.experiments.transfer_folds.stars import LinearStars
from tinytx.training.experiments.transfer_folds.task import Task
from tinytx.training.experiments.transfer_folds.tasks import task_of
from tinytx.training.experiments.transfer_folds.tuning import fine_tuned, opinions, pooled_states
from tinytx.training.pretraining import Report
from tinytx.training.subsets import label_subset

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
        Such as ``tinytx.teaching.results.Results("transfer-cls-books")``.
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
            answers = linear.majority(learned, tested)
        elif name == "tfidf+linear-stars":
            own, others = (self._linear_stars(part) for part in (learned, tested))
            answers, chosen = linear.beside_words(learned, tested, own, others, seed)
        else:
            answers, chosen = linear.bag_of_words(learned, tested, name.removeprefix("tfidf-"), seed)
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
            answers, chosen = linear.read_columns(learned, tested, own, others, fold.seed)
        else:
            letters = wanted.way == "letters"
            answers, chosen = linear.beside_words(learned, tested, own, others, fold.seed, letters=letters)
        return {"correct": _n_right(answers, tested), **chosen}

    def _columns(
        self, wanted: Condition, model: nn.Module | None, body: TransformerBody, part: Split
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
