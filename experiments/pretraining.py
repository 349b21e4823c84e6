"""Does pretraining pay on real text? Accuracy by tokens read, each condition on the same grouped folds."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from experiments import linear
from experiments.harness import Record, Records, Settings, digest_of, frame, mean_table
from experiments.pretraining_data import Fold, Texts, grouped_folds, last_words, texts_of
from experiments.pretraining_models import Bodies
from experiments.pretraining_readers import columns_of, tuned
from experiments.pretraining_recipes import (
    BAGS,
    FROZEN,
    LAST_BAG,
    LAST_LSA_BAG,
    LSA_BAG,
    OWN_LSA_BAG,
    RECIPES,
    Condition,
    Recipe,
    Tuning,
    condition,
    first_conditions,
    times_width,
)
from tinytx_run.classify import class_probabilities
from tinytx_run.corpora import Corpus, Split, label_subset, load_corpus

#: Named before anything was measured: each condition is compared with these, and with no others.
BASELINES = ("scratch/tuned", "tfidf-words", "tfidf-letters")


def pretraining(
    settings: Settings,
    corpus: str | Corpus = "imdb",
    *,
    unlabelled: str | Corpus | None = None,
    variants: Sequence[str] | None = None,
    label_counts: Sequence[int] = (200,),
    on: str = "folds",
) -> pd.DataFrame:
    """Measure conditions with some labels of each fold, tested on other groups of texts.

    Parameters
    ----------
    settings : Settings
        Its number of seeds is that of draws of labels in each fold.
    unlabelled : str or Corpus, optional
        To pretrain on; by default the corpus of the same name with "-unlabelled" at its end.
    variants : sequence of str, optional
        See `Condition`; by default `first_conditions`.
    on : "folds" or "test"
        With "test", folds are parts of the corpus's own test split, and labels are of all other texts.
    """
    recipe = _recipe(settings.budget)
    wanted = [condition(name, recipe) for name in variants or first_conditions(recipe)]
    if isinstance(corpus, str):
        corpus = load_corpus(corpus, settings.data_dir)
    if corpus.train.groups is not None and unlabelled is None:
        unlabelled = f"{corpus.name}-unlabelled"
    if isinstance(unlabelled, str):
        unlabelled = load_corpus(unlabelled, settings.data_dir)
    cells = _Cells(settings, texts_of(corpus, unlabelled or corpus, on), recipe, label_counts)
    cells.write_down()
    for one in wanted:
        cells.report_pretraining(one)
        due = ((one, n, fold) for fold in cells.folds for n in label_counts)
        found = settings.measured(one.name, due, cells.key, cells.origin, cells.measured).values()
        mean = np.mean([record["accuracy"] for record in found])
        settings.report(f"{one.name}: {mean:.1%}, mean of {len(found)} cells")
    return table(settings.store.data)


def _recipe(budget: str | float | None) -> Recipe:
    """The recipe of a budget; "laptop" is "study", as equal doses are compared."""
    name = "study" if budget == "laptop" else budget
    if name not in RECIPES:
        raise ValueError(f"budget must be one of {', '.join(RECIPES)}, got {budget!r}")
    return RECIPES[str(name)]


class _Cells:
    """Folds of one task, and how a condition is measured on one of them."""

    def __init__(self, settings: Settings, texts: Texts, recipe: Recipe, label_counts: Sequence[int]) -> None:
        self.settings, self.texts, self.recipe = settings, texts, recipe
        self._budget = next(name for name, one in RECIPES.items() if one == recipe)
        tested = texts.labelled if texts.test is None else texts.test
        self.folds = grouped_folds(tested, recipe.n_folds, settings.n_seeds, recipe.n_test)
        if texts.test is not None:
            self.folds = [dataclasses.replace(fold, train=texts.labelled) for fold in self.folds]
        smallest = min(len(fold.train) for fold in self.folds)
        if not label_counts or not all(8 <= n <= smallest for n in label_counts):
            raise ValueError(f"labels must be numbers from 8 to {smallest}, got {list(label_counts)}")
        self.bodies = Bodies(texts, recipe, settings.work_dir, settings.device, settings.report)
        labelled = texts.labelled
        self._lsa = functools.cache(lambda: linear.lsa(texts.unlabelled))
        self._lsa_identity = functools.cache(
            lambda: digest_of({"texts": list(texts.unlabelled), "width": linear.LSA_WIDTH})
        )
        self._n_classes = 1 + max(labelled.labels or (0,))
        settings.report(
            f"{len(labelled):,} labelled texts of {len(set(labelled.groups or ())):,} groups, "
            f"{len(texts.unlabelled):,} unlabelled ones of others, {texts.n_left_out:,} left out"
        )

    def key(self, wanted: Condition, n_labels: int, fold: Fold) -> str:
        """The name of a cell in the store."""
        where = f"fold {fold.number}/draw {fold.repeat}"
        return f"{self.texts.name}/{self._budget}/{wanted.name}/labels {n_labels}/{where}"

    def origin(self, wanted: Condition, n_labels: int, fold: Fold) -> Record:
        """All that a cell follows from."""
        recipe = self.recipe
        sizes = {"n_folds": recipe.n_folds, "n_test": recipe.n_test}
        found: Record = {"texts": _fingerprint(self.texts.labelled), **sizes}
        if self.texts.test is not None:
            found["test"] = _fingerprint(self.texts.test)
        if wanted.name in (LAST_BAG, LAST_LSA_BAG):
            found["n_words"] = recipe.n_words
        if wanted.name in (LSA_BAG, LAST_LSA_BAG):
            found["unlabelled"] = self._lsa_identity()
        if wanted.way == "bag":
            return found
        found |= {**self._pretraining(wanted.start), "n_words": recipe.n_words}
        if wanted.way in FROZEN:
            return found
        tunings = [dataclasses.asdict(one) for one in self._tunings(wanted)]
        return {**found, "tunings": digest_of({"tunings": tunings, "share": recipe.held_out_share})}

    def _pretraining(self, start: str) -> Record:
        """What decides a body, apart from its dose."""
        wider = {} if times_width(start) == 1 else {"times_width": times_width(start)}
        return {"pretraining": self.bodies.identity, **wider}

    def write_down(self) -> None:
        """Store what is tried inside the labels of each condition."""
        strengths = {
            **{"tfidf-words": linear.STRENGTHS, "probe": linear.PROBE_STRENGTHS},
            **dict.fromkeys((*BAGS[1:], "with-tfidf"), linear.MORE_STRENGTHS),
            **dict.fromkeys(("tfidf-letters-rated", "tfidf-letters-pseudo"), linear.RATED_STRENGTHS),
        }
        by = "log loss in 5 parts of the labels"
        search: Record = {name: {"C": tried, "by": by} for name, tried in strengths.items()}
        rates = [one.lr for one in self.recipe.tunings]
        search["tuned"] = {"lr": rates, "by": "accuracy on a part of the labels"}
        origin = {"recipe": dataclasses.asdict(self.recipe), "search": search}
        self.settings.cached(f"{self.texts.name}/{self._budget}/search", origin, dict)

    def report_pretraining(self, wanted: Condition) -> None:
        """Store and print what the body of a condition has read."""
        if not wanted.dose:
            return
        key = f"{self.texts.name}/{self._budget}/pretraining {wanted.start}/{wanted.dose}"
        measure = functools.partial(self.bodies.pretrained, wanted.start, wanted.dose)
        found = self.settings.cached(key, self._pretraining(wanted.start), measure)
        self.settings.report(
            f"{wanted.start}, {found['n_tokens']:,} tokens read, {found['n_distinct']:,} of them distinct, "
            f"{found['passes']:.2f} passes: {found['held_out_nats']:.3f} nats a token on held-out texts"
        )

    def measured(self, wanted: Condition, n_labels: int, fold: Fold) -> Record:
        """The record of a cell."""
        train = label_subset(fold.train, n_labels, fold.seed)
        read = self._bag if wanted.way == "bag" else self._read if wanted.way in FROZEN else self._tuned
        scores, chosen = read(wanted, train, fold.test, fold.seed)
        correct = _n_correct(scores, fold.test)
        return {
            **{"corpus": self.texts.name, "condition": wanted.name},
            **{"n_labels": n_labels, "dose": wanted.dose},
            **{"draw": fold.repeat, "fold": fold.number, "seed": fold.seed, **chosen},
            **{"correct": correct, "n": len(fold.test), "accuracy": correct / len(fold.test)},
        }

    def _ends(self, split: Split) -> Split:
        """What a transformer is given of each text."""
        return last_words(split, self.recipe.n_words)

    def _bag(self, wanted: Condition, train: Split, test: Split, seed: int) -> linear.Predicted:
        """A bag of the words of whole texts, or of those that a transformer reads."""
        if wanted.name in (LAST_BAG, LAST_LSA_BAG):
            train, test = map(self._ends, (train, test))
        if wanted.name in (LSA_BAG, OWN_LSA_BAG, LAST_LSA_BAG):
            read = linear.lsa(train.texts) if wanted.name == OWN_LSA_BAG else self._lsa()
            own, others = (read(part.texts) for part in (train, test))
            return linear.beside_tfidf(train, test, own, others, seed)
        return linear.bag_of_words(train, test, seed, letters=wanted.name != "tfidf-words")

    def _read(self, wanted: Condition, train: Split, test: Split, seed: int) -> linear.Predicted:
        """A regression on the frozen states of a body; bags read whole texts."""
        body = self.bodies.body(wanted, seed)
        own, others = (
            columns_of(body, self.bodies.tokenizer, self._ends(part), self.settings.device)
            for part in (train, test)
        )
        regression = linear.with_tfidf if wanted.way == "with-tfidf" else linear.probe
        return regression(train, test, own, others, seed)

    def _tuned(self, wanted: Condition, train: Split, test: Split, seed: int) -> linear.Predicted:
        """Fine-tune with each tuning on a part of the labels, then with the best on all of them."""
        from sklearn.model_selection import train_test_split

        body, tokenizer = self.bodies.body(wanted, seed), self.bodies.tokenizer
        how: dict[str, Any] = {"n_classes": self._n_classes, "seed": seed, "device": self.settings.device}

        def scores(tuning: Tuning, own: Split, others: Split) -> np.ndarray:
            model = tuned(body, tokenizer, own, tuning=tuning, **how)
            return class_probabilities(model, tokenizer, others.texts)

        train, test = map(self._ends, (train, test))
        share = self.recipe.held_out_share
        rows, held_out = train_test_split(
            range(len(train)), test_size=share, stratify=train.labels, random_state=seed
        )
        own, others = train.take(rows), train.take(held_out)
        tunings = self._tunings(wanted)
        merits = [_n_correct(scores(tuning, own, others), others) for tuning in tunings]
        best = tunings[int(np.argmax(merits))]
        search = {f"{one.lr:g}": value for one, value in zip(tunings, merits, strict=True)}
        found = {"search": search, "n_held_out": len(held_out), "chosen": f"{best.lr:g}"}
        return scores(best, train, test), found

    def _tunings(self, wanted: Condition) -> tuple[Tuning, ...]:
        """What is tried inside the labels: the same for each start."""
        kept = wanted.way == "tuned-kept"
        return tuple(dataclasses.replace(one, keep_embeddings=kept) for one in self.recipe.tunings)


@functools.cache
def _fingerprint(split: Split) -> str:
    return digest_of({"texts": list(split.texts), "labels": list(split.labels or ())})


def _n_correct(scores: np.ndarray, test: Split) -> int:
    """How many texts have the highest of their scores (N, C) at their label."""
    return int((scores.argmax(1) == np.asarray(test.labels)).sum())


def table(records: Records) -> pd.DataFrame:
    """Mean accuracy of each condition by number of labels, and its paired differences from `BASELINES`.

    Intervals are corrected for training sets that overlap, as if each learned from all that its fold may
    learn from: with few labels they are wider than need be.
    """
    cells = {key: one for key, one in records.items() if "condition" in one}
    data = frame(cells, ("corpus", "n_labels", "condition", "seed", "accuracy"), budget_at=1)
    n_folds = max((one["origin"]["n_folds"] for one in cells.values()), default=2)
    return mean_table(
        data,
        "accuracy",
        by=("corpus", "budget", "n_labels"),
        variant="condition",
        baselines=BASELINES,
        test_share=1 / (n_folds - 1),
    )
