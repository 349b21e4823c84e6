"""Is pretraining worth it on real text? Every variant on the same folds, each cell measured once."""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm.auto import tqdm

from experiments import transfer_linear as linear
from experiments.harness import Record, Records, Settings, digest_of, frame, mean_table
from experiments.transfer_data import Fold, distinct_texts, stratified_folds
from experiments.transfer_encoders import Encoders, columns_of, fine_tuned
from experiments.transfer_variants import STAR_BASELINE, STAR_WAY, TASKS, Task, Variant, variant
from tinytx.model.transformer import Classifier
from tinytx.text.corpora import Corpus, Split, label_subset, load_corpus
from tinytx_course.labs.docstrings import packages_corpus
from tinytx_course.labs.lesson_15 import AGAINST

if TYPE_CHECKING:
    import pandas as pd


def transfer_on_folds(
    settings: Settings,
    corpus: str | Corpus,
    *,
    variants: Sequence[str] | None = None,
    label_counts: Sequence[int] = (200,),
    task: Task | None = None,
) -> pd.DataFrame:
    """Measure variants with some labels of each fold, tested on the rest of the fold.

    Parameters
    ----------
    settings : Settings
        Its number of seeds is that of repetitions: each draws other folds.
    corpus : str or Corpus
        One of `TASKS`.
    variants : sequence of str, optional
        See `Variant`; by default those of the task.
    label_counts : sequence of int
    task : Task, optional
        By default that of the corpus.
    """
    if isinstance(corpus, str):
        is_local = corpus == "docstrings-packages"
        corpus = packages_corpus() if is_local else load_corpus(corpus, settings.data_dir)
    cells = _Cells(settings, corpus, task or TASKS[corpus.name], label_counts)
    wanted = [variant(name, cells.task) for name in variants or cells.task.variants]
    due = [(one, n, fold) for one in wanted for n in label_counts for fold in cells.folds]
    records = {}
    for cell in tqdm(due, desc=f"transfer on {corpus.name}", disable=None):
        key = cells.key(*cell)
        records[key] = settings.cached(key, cells.origin(*cell), functools.partial(cells.measured, *cell))
    return table(records)


class _Cells:
    """Folds of one corpus, and how a variant is measured on one of them."""

    def __init__(self, settings: Settings, corpus: Corpus, task: Task, label_counts: Sequence[int]) -> None:
        assert settings.budget is not None
        self.settings, self.task, self._name = settings, task, corpus.name
        self._budget, self._recipe = task.recipe(settings.budget)
        texts, n_repeated = distinct_texts(corpus)
        settings.report(f"{len(texts):,} texts of {corpus.name}, {n_repeated} repeated ones left out")
        if task.n_texts is not None and task.n_texts < len(texts):
            texts = label_subset(texts, task.n_texts, seed=0)
        self._fingerprint = digest_of({"texts": list(texts.texts), "labels": list(texts.labels or ())})
        repeats = range(settings.n_seeds)
        self.folds = [fold for repeat in repeats for fold in stratified_folds(texts, task.n_folds, repeat)]
        smallest = min(len(fold.train) for fold in self.folds)
        if not label_counts or not all(2 <= n <= smallest for n in label_counts):
            raise ValueError(f"labels must be numbers from 2 to {smallest}, got {list(label_counts)}")
        self._sources = task.sources(settings.data_dir, texts.texts)
        folder = settings.work_dir / f"transfer-{corpus.name}"
        self.encoders = Encoders(task, self._budget, self._sources, folder, settings.device, settings.report)
        self._stars: linear.StarRegression | None = None

    def key(self, wanted: Variant, n_labels: int, fold: Fold) -> str:
        """The name of a cell in the store."""
        where = f"repeat {fold.repeat}/fold {fold.number}"
        return f"{self._name}/{self._budget}/{wanted.name}/labels {n_labels}/{where}"

    def origin(self, wanted: Variant, n_labels: int, fold: Fold) -> Record:
        """All that a cell follows from."""
        found: Record = {"texts": self._fingerprint, "n_folds": self.task.n_folds}
        if wanted.way == "baseline":
            return found
        stages = [folder.name for _, folder in self.encoders.stages(wanted, fold)]
        return {**found, "stages": stages, **wanted.origin(self._recipe)}

    def measured(self, wanted: Variant, n_labels: int, fold: Fold) -> Record:
        """The record of a cell."""
        begin = time.process_time()
        train = label_subset(fold.train, n_labels, fold.seed)
        tuning = wanted.tuning(self._recipe)
        if tuning is not None:
            model = self.encoders.model(wanted, fold)
            new = self.encoders.new_encoder(causal=wanted.causal, seed=fold.seed)
            correct, curve = fine_tuned(
                new if model is None else model.body,
                self.encoders.tokenizer,
                train,
                fold.test,
                tuning=tuning,
                seed=fold.seed,
                device=self.settings.device,
            )
            found: Record = {"correct": correct, "accuracy_by_epoch": curve}
        else:
            answers, chosen = self._predicted(wanted, train, fold)
            found = {"correct": int((answers == np.asarray(fold.test.labels)).sum()), **chosen}
        return {
            **{"corpus": self._name, "condition": wanted.name, "n_labels": n_labels},
            **{"repeat": fold.repeat, "fold": fold.number, "seed": fold.seed},
            **found,
            **{"n": len(fold.test), "accuracy": found["correct"] / len(fold.test)},
            "cpu_seconds": round(time.process_time() - begin, 1),
        }

    def _predicted(self, wanted: Variant, train: Split, fold: Fold) -> tuple[np.ndarray, dict[str, Any]]:
        """Answers of a linear model, and what it chose among the training texts."""
        test, seed = fold.test, fold.seed
        if wanted.name == "majority":
            return linear.majority(train, test), {}
        if wanted.name == STAR_BASELINE:
            return linear.with_words(train, test, self._rated(train), self._rated(test), seed)
        if wanted.way == "baseline":
            return linear.bag_of_words(train, test, wanted.name.removeprefix("tfidf-"), seed)
        own, others = self._columns(wanted, train, fold), self._columns(wanted, test, fold)
        if wanted.way == "probe":
            return linear.probe(train, test, own, others, seed)
        return linear.with_words(train, test, own, others, seed, letters=wanted.way == "letters")

    def _columns(self, wanted: Variant, texts: Split, fold: Fold) -> np.ndarray:
        model = self.encoders.model(wanted, fold)
        if model is None:
            reader: Any = self.encoders.new_encoder(causal=wanted.causal, seed=fold.seed)
        else:
            reader = model if isinstance(model, Classifier) and wanted.way != "probe" else model.body
        columns = columns_of(reader, self.encoders.tokenizer, texts, self.settings.device)
        return np.hstack([columns, self._rated(texts)]) if wanted.way == STAR_WAY else columns

    def _rated(self, texts: Split) -> np.ndarray:
        self._stars = self._stars or linear.StarRegression(self._sources.rated)
        return self._stars(texts.texts)


def table(records: Records) -> pd.DataFrame:
    """Mean accuracy of each variant by number of labels, and its paired differences from the baselines.

    The folds of a repetition test different texts but learn from overlapping ones, so the intervals are a
    little too narrow.
    """
    data = frame(records, ("n_labels", "condition", "seed", "accuracy"), budget_at=1)
    data = data.rename(columns={"condition": "variant"})
    by = ("budget", "n_labels")
    return mean_table(data, "accuracy", by=by, variant="variant", baselines=AGAINST)
