"""Frozen, LoRA or full? One pretrained body fine-tuned in three ways, over numbers of labels, with controls.

Each way searches the same learning rates on the same held-out reviews with the same tuning seeds, which no
reported run uses. Passes over the labels are fixed.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from experiments.harness import (
    Conclusions,
    Record,
    Records,
    Settings,
    best_label_accuracy,
    frame,
    mean_table,
)
from tinytx.classifier import Classifier
from tinytx.transformer import LanguageModel
from tinytx_course.engine.shipped import Shipped, shipped_model
from tinytx_course.labs.lesson_16 import ALPHA, RANK, Way, adapted, fine_tune, random_body
from tinytx_run.corpora import Corpus, Split, label_subset, load_corpus
from tinytx_run.evaluate import count_correct, evaluate_language_model
from tinytx_run.finetune import class_objective
from tinytx_run.training import fingerprint, weights_fingerprint

STARTS: tuple[tuple[str, Way], ...] = (
    ("pretrained", "frozen"),
    ("pretrained", "lora"),
    ("pretrained", "full"),
    ("random", "frozen"),
    ("random", "lora"),
)
TUNING_SEEDS = (100, 101)


@dataclass(frozen=True)
class Plan:
    """What one budget measures: passes by number of labels, rates to search, and reviews to score."""

    passes: dict[int, int]
    rates: tuple[float, ...]
    n_valid: int
    n_test: int | None  # None: all
    n_forgetting: int


PLANS = {
    "smoke": Plan({4: 1, 6: 1}, (1e-3, 1e-2), 20, 20, 5),
    "laptop": Plan({20: 30, 80: 15, 320: 6}, (3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1), 300, None, 200),
}


def lora(settings: Settings) -> pd.DataFrame:
    """Fine-tune the shipped model in each way, with each number of labels and each seed; see `table`.

    A seed draws the labels, their order, the new weights and, for the controls, the random body.
    """
    budget = settings.check_budget(*PLANS)
    passes = {n: settings.longer * times for n, times in PLANS[budget].passes.items()}
    trial = _Trial(replace(PLANS[budget], passes=passes), load_corpus("world"), shipped_model())
    origin = {
        "plan": {**asdict(trial.plan), "passes": list(trial.plan.passes.items())},
        "weights": weights_fingerprint(trial.shipped.model.body),
        "texts": fingerprint(trial.corpus),
        "lora": {"rank": RANK, "alpha": ALPHA},
    }
    cells = [(n_labels, *start) for n_labels in trial.plan.passes for start in STARTS]
    records = {f"{budget}/bound": settings.cached(f"{budget}/bound", origin, trial.bound)}
    for n_labels, body, way in tqdm(cells, desc="lora", disable=None):
        name = f"{budget}/labels {n_labels}/{body} {way}"
        tuned = settings.cached(f"{name}/rates", origin, partial(trial.search, n_labels, body, way))
        records[f"{name}/rates"] = tuned
        lr = best_rate(tuned)
        for seed in settings.seeds():
            measure = partial(trial.measured, n_labels, body, way, lr, seed)
            key = f"{name}/seed {seed}"
            records[key] = settings.cached(key, {**origin, "lr": lr}, measure)
    return table(records)


def best_rate(tuned: Record) -> float:
    """The rate with the highest mean accuracy on held-out reviews; of equal ones the lowest."""
    means = np.mean(tuned["accuracies"], axis=1)
    return float(tuned["rates"][int(means.argmax())])


@dataclass(frozen=True)
class _Trial:
    plan: Plan
    corpus: Corpus
    shipped: Shipped

    @cached_property
    def test(self) -> Split:
        """The reviews that are scored."""
        split, n = self.corpus.splits["test"], self.plan.n_test
        return split if n is None else label_subset(split, n, seed=0)

    def bound(self) -> Record:
        """The share of test reviews that an exact reader gets right; a tie counts half."""
        accuracy = best_label_accuracy(self.test.texts, self.test.labels or ())
        return {"measure": "bound", "accuracy": accuracy, "n": len(self.test)}

    def search(self, n_labels: int, body: str, way: Way) -> Record:
        """Accuracy of each rate, a row, with each tuning seed, on held-out reviews of the valid split."""
        valid = label_subset(self.corpus.valid, self.plan.n_valid, seed=0)
        accuracies = [
            [self._accuracy(self._tuned(n_labels, body, way, lr, seed), valid) for seed in TUNING_SEEDS]
            for lr in self.plan.rates
        ]
        start = {"n_labels": n_labels, "start": f"{body} {way}"}
        return {"measure": "rates", **start, "rates": list(self.plan.rates), "accuracies": accuracies}

    def measured(self, n_labels: int, body: str, way: Way, lr: float, seed: int) -> Record:
        """Accuracy on the test split, what was trained, and what the body forgot of its language."""
        model = self._tuned(n_labels, body, way, lr, seed)
        record: Record = {
            **{"measure": "accuracy", "n_labels": n_labels, "start": f"{body} {way}", "seed": seed, "lr": lr},
            "accuracy": self._accuracy(model, self.test),
            "n_trained": sum(p.numel() for p in model.parameters() if p.requires_grad),
        }
        if body == "pretrained":
            record["forgotten"] = self._forgotten(model)
        return record

    def _tuned(self, n_labels: int, body: str, way: Way, lr: float, seed: int) -> Classifier:
        pretrained = self.shipped.model.body
        start = random_body(pretrained.config, seed) if body == "random" else pretrained
        model = adapted(start, way, seed=seed)
        learned = label_subset(self.corpus.train, n_labels, seed)
        n_epochs = self.plan.passes[n_labels]
        fine_tune(model, self.shipped.tokenizer, learned, lr=lr, n_epochs=n_epochs, seed=seed)
        return model

    def _accuracy(self, model: Classifier, split: Split) -> float:
        scored, _ = class_objective(self.shipped.tokenizer, split, model.config)
        return count_correct(model, scored) / len(split)

    def _forgotten(self, model: Classifier) -> float:
        """Rise of the next-token loss with the old head, in nats a token."""
        texts = self.corpus.valid.texts[: self.plan.n_forgetting]
        again = LanguageModel(self.shipped.model.config).eval()
        again.body, again.head = model.body, self.shipped.model.head
        both = (again, self.shipped.model)
        scores = [evaluate_language_model(one, self.shipped.tokenizer, texts) for one in both]
        return scores[0].nats_per_token - scores[1].nats_per_token


def conclusions(records: Records) -> Conclusions:
    """Sentences of lesson 16, and whether these records bear them out; it leaves 20 labels open."""
    rows = table(records).set_index("start")
    adapted, full = rows.loc["pretrained lora"], rows.loc["pretrained full"]
    behind = -adapted["minus pretrained full"]
    ahead = adapted["minus pretrained frozen low"][adapted["n_labels"] >= 80] > 0
    return {
        "LoRA is ahead of a frozen body with 80 labels and more": ahead.all(),
        "LoRA on a random body is far behind": (adapted["minus random lora low"] > 0.2).all(),
        "LoRA is at most two points behind full fine-tuning": (behind < 0.02).all(),
        "full fine-tuning is ahead of a frozen body": (full["minus pretrained frozen low"] > 0).all(),
    }


def table(records: Records) -> pd.DataFrame:
    """Mean accuracy of each way by number of labels, and paired differences over seeds.

    Returns
    -------
    DataFrame
        Columns of `mean_table` with the baselines full, frozen and LoRA on a random body, then ``rate`` (the
        chosen one), ``trained`` parameters and ``forgotten`` (mean, nats a token).
    """
    cells = {key: one for key, one in records.items() if one["measure"] == "accuracy"}
    facts = ["lr", "n_trained", "forgotten"]
    data = frame(cells, ("n_labels", "start", "seed", "accuracy", *facts), budget_at=0)
    by, baselines = ("budget", "n_labels"), ("pretrained full", "pretrained frozen", "random lora")
    found = mean_table(data, "accuracy", by=by, variant="start", baselines=baselines, others=facts)
    return found.rename(columns={"lr": "rate", "n_trained": "trained"})
