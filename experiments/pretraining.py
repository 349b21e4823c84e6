"""Does pretraining pay on real text? Accuracy by tokens read, each condition on the same grouped folds."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from experiments import linear
from experiments.harness import Record, Records, Settings, digest_of, frame, mean_table
from experiments.pretraining_data import Fold, Texts, grouped_folds, last_words, texts_of
from experiments.pretraining_models import Bodies
from experiments.pretraining_recipes import (
    FINE_TUNING,
    LAST_BAG,
    LAST_LSA_BAG,
    LSA_BAG,
    OWN_LSA_BAG,
    RECIPES,
    TIMES_LONGER,
    Condition,
    Recipe,
    condition,
    first_conditions,
    times_width,
)
from tinytx.classifier import Classifier, pool
from tinytx.inference import evaluate_rows
from tinytx.loop import train
from tinytx.objectives import ClassificationObjective
from tinytx.settings import TrainingSettings, choose_device, choose_precision
from tinytx.tokenizer import Tokenizer
from tinytx.transformer import Transformer
from tinytx_run.classify import class_probabilities, classifier_inputs
from tinytx_run.corpora import Corpus, Split, label_subset, load_corpus
from tinytx_run.finetune import epoch_ends
from tinytx_run.recipes import resize
from tinytx_run.training import seeded

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
        if wanted.way == "probe":
            return found
        recipe = self._fine_tuning(wanted)
        tuning = {name: getattr(recipe, name) for name in (*FINE_TUNING, "held_out_share")}
        return {**found, "tuning": digest_of(tuning)}

    def _fine_tuning(self, wanted: Condition) -> Recipe:
        """The recipe, with its number of updates for this condition."""
        times = TIMES_LONGER if wanted.way == "longer" else 1
        return dataclasses.replace(self.recipe, n_updates=times * self.recipe.n_updates)

    def _pretraining(self, start: str) -> Record:
        """What decides a body, apart from its dose."""
        wider = {} if times_width(start) == 1 else {"times_width": times_width(start)}
        return {"pretraining": self.bodies.identity, **wider}

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
        read = {"bag": self._bag, "probe": self._probe, "tuned": self._tuned, "longer": self._tuned}[
            wanted.way
        ]
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

    def _probe(self, wanted: Condition, train: Split, test: Split, seed: int) -> linear.Predicted:
        """A regression on the frozen states of a body."""
        body = self.bodies.body(wanted, seed)
        own, others = (
            columns_of(body, self.bodies.tokenizer, self._ends(part), self.settings.device)
            for part in (train, test)
        )
        return linear.probe(train, test, own, others, seed)

    def _tuned(self, wanted: Condition, train: Split, test: Split, seed: int) -> linear.Predicted:
        """Fine-tune with each rate on a part of the labels, then with the best on all of them."""
        from sklearn.model_selection import train_test_split

        body, tokenizer = self.bodies.body(wanted, seed), self.bodies.tokenizer
        recipe = self._fine_tuning(wanted)
        how: dict[str, Any] = {"n_classes": self._n_classes, "seed": seed, "device": self.settings.device}

        def scores(lr: float, own: Split, others: Split) -> np.ndarray:
            model = tuned(body, tokenizer, own, recipe, lr=lr, **how)
            return class_probabilities(model, tokenizer, others.texts)

        train, test = map(self._ends, (train, test))
        share = self.recipe.held_out_share
        rows, held_out = train_test_split(
            range(len(train)), test_size=share, stratify=train.labels, random_state=seed
        )
        own, others = train.take(rows), train.take(held_out)
        merits = {lr: _n_correct(scores(lr, own, others), others) for lr in self.recipe.rates}
        best = max(merits, key=lambda lr: merits[lr])
        search = {f"{lr:g}": value for lr, value in merits.items()}
        found = {"search": search, "n_held_out": len(held_out), "chosen": f"{best:g}"}
        return scores(best, train, test), found


def tuned(
    encoder: Transformer,
    tokenizer: Tokenizer,
    split: Split,
    recipe: Recipe,
    *,
    lr: float,
    n_classes: int,
    seed: int,
    device: str,
) -> Classifier:
    """Train a copy of an encoder with a new head; the seed is that of head, order and dropout."""
    where = choose_device(device)
    config = encoder.config.replace(dropout=recipe.dropout)
    model = seeded(lambda: Classifier(config, n_classes=n_classes, pooling="mean"), seed)
    model.body.load_state_dict(encoder.state_dict())
    model.to(where)
    sequences, _ = classifier_inputs(tokenizer, split.texts, config.max_len, causal=config.causal)
    objective = ClassificationObjective(sequences, split.labels or (), pad_id=tokenizer.pad_id)
    lengths = [len(sequence) for sequence in sequences]
    settings = TrainingSettings(
        n_steps=1,
        lr=lr,
        tokens_per_batch=max(max(lengths), math.ceil(recipe.texts_per_batch * float(np.mean(lengths)))),
        precision=choose_precision("auto", where),
        seed=seed,
    )
    n_epochs = math.ceil(recipe.n_updates / epoch_ends(objective, settings, 1)[0])
    n_steps = epoch_ends(objective, settings, n_epochs)[-1]
    train(model, objective, resize(settings, n_steps), progress=False)
    return model


def columns_of(body: Transformer, tokenizer: Tokenizer, split: Split, device: str) -> np.ndarray:
    """Mean embedding and mean last hidden state of each text, for a linear model to read: shape (N, 2 D)."""
    body.to(choose_device(device))
    config = body.config
    sequences, _ = classifier_inputs(tokenizer, split.texts, config.max_len, causal=config.causal)

    def columns(token_ids: Tensor, rows: list[int]) -> Tensor:
        real = token_ids != tokenizer.pad_id
        layers = body.token_embed(token_ids), body(token_ids, real)
        return torch.cat([pool(states, real, "mean") for states in layers], dim=1)  # (B, 2 D)

    return evaluate_rows(body, sequences, columns, pad_id=tokenizer.pad_id).double().numpy()


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
