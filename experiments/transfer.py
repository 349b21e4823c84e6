"""Pretrained against scratch on the world: the same labels, order and seeds, with and without pretraining."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from functools import partial
from itertools import product

import pandas as pd

from experiments.harness import Conclusions, Record, Records, Settings, digest_of, frame, mean_table
from tinytx_run.checkpoint import load
from tinytx_run.corpora import Corpus, load_corpus
from tinytx_run.finetune import Body, body_and_tokenizer, finetune
from tinytx_run.intervals import paired_interval
from tinytx_run.pretrain import pretrain
from tinytx_run.recipes import corpus_kind, plan, plan_finetuning
from tinytx_run.training import fingerprint, weights_fingerprint

# The body of each start; frozen: a pretrained backbone of which only the head learns.
STARTS: dict[str, Body] = {"pretrained": "pretrained", "scratch": "fresh", "frozen": "frozen"}
LABEL_COUNTS = (20, 50, 100, 200, 500)


def transfer(
    settings: Settings,
    corpus: str | os.PathLike[str] | Corpus = "world",
    *,
    label_counts: Sequence[int] = LABEL_COUNTS,
) -> pd.DataFrame:
    """Fine-tune from each start, with each number of labels and each seed.

    A seed draws another subset of the labels, another order and other new weights. One model is pretrained,
    in a folder below ``settings.work_dir``; the budget is that of pretraining and of each fine-tuning.
    """
    data = corpus if isinstance(corpus, Corpus) else load_corpus(corpus, settings.data_dir)
    if data.train.labels is None:
        raise ValueError(f"transfer needs a corpus with labels, got {data.name}, which has none")
    if not label_counts or not all(1 <= n <= len(data.train) for n in label_counts):
        raise ValueError(f"labels must be numbers from 1 to {len(data.train)}, got {list(label_counts)}")
    kind, texts, budget = corpus_kind(data), fingerprint(data), settings.budget
    recipe, tuning = settings.lengthened(plan(kind, "causal", budget)), plan_finetuning(kind, budget)
    n_steps = {"n_steps": recipe.settings.n_steps}
    tuning = dataclasses.replace(tuning, n_epochs=settings.longer * tuning.n_epochs)
    request = {"recipe": recipe.to_dict(), "texts": texts}
    checkpoint = settings.work_dir / f"transfer-{data.name}-{budget}-{digest_of(request)}"
    pretrain(data, budget=budget, out=checkpoint, training_changes=n_steps, options=settings.resumed)
    origin = {
        "budget": budget,
        "pretraining": request["recipe"],
        "weights": weights_fingerprint(body_and_tokenizer(load(checkpoint))[0]),
        "texts": texts,
        "finetuning": dataclasses.asdict(tuning),
    }

    def measure(n_labels: int, seed: int, start: str) -> Record:
        result = finetune(
            checkpoint,
            data,
            body=STARTS[start],
            budget=budget,
            seed=seed,
            n_labels=n_labels,
            n_epochs=tuning.n_epochs,
            options=settings.quiet,
        )
        score = result.evaluation.score
        return {
            **{"corpus": data.name, "n_labels": n_labels, "seed": seed, "start": start},
            **{"split": result.evaluation.split, "correct": score.correct, "n": score.n},
            "accuracy": score.accuracy,
        }

    key = "{}/{}/labels {}/seed {}/{}".format
    cells = product(label_counts, settings.seeds(), STARTS)
    return table(
        settings.measured("transfer", cells, partial(key, data.name, budget), lambda *cell: origin, measure)
    )


def conclusions(records: Records) -> Conclusions:
    """Sentences of lesson 09, and whether these records bear them out: no interval over seeds holds zero."""
    data = pd.DataFrame(records.values())
    accuracies = data.pivot(index="seed", columns=["n_labels", "start"], values="accuracy")

    def ahead(one: tuple[int, str], other: tuple[int, str]) -> bool:
        return paired_interval((accuracies[one] - accuracies[other]).tolist()).low > 0

    found = {
        f"pretrained is ahead of {start} at every number of labels": all(
            ahead((n, "pretrained"), (n, start)) for n in LABEL_COUNTS
        )
        for start in ("frozen", "scratch")
    }
    worth = ahead((50, "pretrained"), (500, "scratch"))
    return {**found, "50 labels after pretraining are worth more than 500 from scratch": worth}


def table(records: Records) -> pd.DataFrame:
    """Mean accuracy of each start by number of labels, and its paired differences from scratch."""
    data = frame(records, ("n_labels", "start", "seed", "accuracy"), budget_at=1)
    return mean_table(data, "accuracy", by=("budget", "n_labels"), variant="start", baselines=("scratch",))
