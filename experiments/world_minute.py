"""How near a model of the world comes to the entropy bound in one minute and in five."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch

from experiments.harness import Record, Records, Settings, entropy_bound, frame, mean_table
from tinytx.loop import TrainingStep
from tinytx.settings import choose_device, choose_precision
from tinytx_run.corpora import Corpus, load_corpus
from tinytx_run.evaluate import evaluate_language_model
from tinytx_run.pretrain import new_model, objective_for, pretrain, train_tokenizer
from tinytx_run.recipes import plan

PACE_STEPS = 100


@dataclass(frozen=True)
class Variant:
    """The laptop recipe, with some of it changed."""

    name: str
    changes: dict[str, Any] = field(default_factory=dict)  # arguments of `pretrain`
    repeats: bool = False  # whether each pass reads the same 30,000 reviews


def variants() -> list[Variant]:
    """Other choices for each part of the recipe, one at a time; all read equally many tokens."""
    adamw = {"optimizer": "adamw", "decay": "cosine", "final_lr_fraction": 0.05, "lr": 8e-3}
    return [
        Variant("sinusoidal positions", {"model_changes": {"positions": "sinusoidal"}}),
        Variant("rotary positions", {"model_changes": {"positions": "rotary"}}),
        Variant("AdamW", {"training_changes": adamw}),
        Variant("a vocabulary of 1,000", {"vocab_size": 1000}),
        Variant("4 heads", {"model_changes": {"n_heads": 4}}),
        Variant("16 heads", {"model_changes": {"n_heads": 16}}),
        Variant("tied embeddings", {"model_changes": {"tie_embeddings": True}}),
        Variant("GELU and biases", {"model_changes": {"activation": "gelu", "bias": True}}),
        Variant("30,000 reviews, read again", repeats=True),
    ]


def rivals() -> list[Variant]:
    """Choices that change what a step costs: each gets the time of the recipe, not its tokens."""
    recipe = plan("world", "causal", "laptop").settings
    half = {"tokens_per_batch": recipe.tokens_per_batch // 2}
    slower = half | {"lr": 0.7 * recipe.lr}
    return [
        Variant("batches half as large", {"training_changes": half}),
        Variant("batches half as large, 0.7 of the rate", {"training_changes": slower}),
        *(Variant(f"{n} layers", {"model_changes": {"n_layers": n}}) for n in (3, 4)),
    ]


def world_minute(settings: Settings) -> pd.DataFrame:
    """Train on the world with the budgets laptop and study, and with the laptop recipe changed; see `table`.

    Losses are those of the valid split, on which the parts of the recipe were compared. The number of steps
    decides the result; how long a step takes is measured on its own, with two threads on
    a machine that does nothing else (records "pace"), so losses may be computed on a busy one. The rivals get
    as many steps as take the time of the recipe's.
    """
    short = settings.check_budget("smoke", "laptop") == "smoke"
    corpus, recipe = load_corpus("world"), Variant("recipe")
    budgets = ("smoke",) if short else ("laptop", "study")
    cells = [(budget, recipe, seed) for budget in budgets for seed in range(settings.n_seeds)]
    paces = settings.measured(
        "pace", ((one,) for one in budgets), "{}/pace".format, lambda one: _origin(one, recipe), _pace
    )
    if not short:
        cells += [("laptop", variant, 0) for variant in variants()]
        entrants = [recipe, *rivals()]
        key, origin = "laptop/in turn", {"variants": [_origin("laptop", one) for one in entrants]}
        turns = settings.cached(key, origin, partial(_paces, "laptop", entrants))
        first, *others = turns["seconds_per_step"]
        for rival, seconds in zip(entrants[1:], others, strict=True):
            in_time = _in_time(rival, first / seconds)
            cells += [("laptop", in_time, seed) for seed in range(settings.n_seeds)]
    records = settings.measured(
        "world-minute",
        cells,
        lambda budget, variant, seed: f"{budget}/seed {seed}/{variant.name}",
        lambda budget, variant, seed: _origin(budget, variant),
        partial(_measured, settings, corpus),
    )
    return table({**paces, **records})


def _origin(budget: str, variant: Variant) -> Record:
    return {"recipe": plan("world", "causal", budget).to_dict(), **dataclasses.asdict(variant)}


def _in_time(rival: Variant, share: float) -> Variant:
    """The rival with a share of the recipe's steps."""
    n_steps = round(share * plan("world", "causal", "laptop").settings.n_steps)
    changes = {"training_changes": {**rival.changes.get("training_changes", {}), "n_steps": n_steps}}
    return Variant(f"{rival.name}, in the same time", rival.changes | changes)


def _pace(budget: str) -> Record:
    """Seconds of a training step of the recipe."""
    paces = _paces(budget, [Variant("recipe")])
    return {**paces, "measure": "pace", "seconds_per_step": paces["seconds_per_step"][0]}


def _paces(budget: str, entrants: Sequence[Variant]) -> Record:
    """Seconds of a training step: for each variant the median of many, which take turns."""
    texts, device = load_corpus("world").train.texts, choose_device("auto")
    recipe = plan("world", "causal", budget)
    tokenizer = train_tokenizer(texts, recipe.vocab_size, exact=False, kind="world")
    learning = objective_for(recipe, tokenizer, texts)
    steps = []
    for one in entrants:
        config = recipe.config.replace(**one.changes.get("model_changes", {}))
        settings = recipe.settings.replace(**one.changes.get("training_changes", {}))
        model = new_model(dataclasses.replace(recipe, config=config), 0).to(device)
        steps.append(TrainingStep(model, learning, settings))
    batches = [step.batches(0)[:PACE_STEPS] for step in steps]
    seconds: list[list[float]] = [[] for _ in entrants]
    for turn in zip(*batches, strict=False):
        for step, batch, taken in zip(steps, turn, seconds, strict=True):
            begin = time.perf_counter()
            step.backward(batch)
            step.update(step.settings.lr)
            taken.append(time.perf_counter() - begin)
    return {
        "measure": "paces",
        "seconds_per_step": [statistics.median(taken) for taken in seconds],
        "tokens_per_step": float(np.mean([learning.n_predictions(batch) for batch in batches[0]])),
        "threads": torch.get_num_threads(),
        "precision": choose_precision("auto", device),
    }


def _measured(settings: Settings, corpus: Corpus, budget: str, variant: Variant, seed: int) -> Record:
    result = pretrain(
        dataclasses.replace(corpus, draw=None) if variant.repeats else corpus,
        budget=budget,
        seed=seed,
        options=settings.quiet,
        **variant.changes,
    )
    texts = corpus.valid.texts
    score = evaluate_language_model(result.model, result.tokenizer, texts)
    bound = entropy_bound(corpus, texts)
    return {
        **{"measure": "loss", "variant": variant.name, "seed": seed},
        **{"n_steps": result.recipe.settings.n_steps, "n_texts": len(texts)},
        "nats_per_review": score.total_nats / len(texts),
        "bound_per_review": bound / len(texts),
        "above": score.total_nats / bound - 1,
    }


def table(records: Records) -> pd.DataFrame:
    """Per cent above the bound, mean over seeds with its interval.

    Returns
    -------
    DataFrame
        One row a budget and variant: ``n`` seeds, ``seconds`` of training at the measured pace (of the recipe
        itself), and ``mean``, ``low`` and ``high`` in per cent above the entropy bound.
    """
    fields = ("measure", "variant", "seed", "n_steps", "above", "seconds_per_step")
    by_measure = frame(records, fields, budget_at=0).set_index(["measure", "budget"])
    data, pace = by_measure.loc["loss"].reset_index(), by_measure.loc["pace", "seconds_per_step"]
    seconds = data["n_steps"] * data["budget"].map(pace)
    data = data.assign(above=100 * data["above"], seconds=seconds.where(data["variant"] == "recipe"))
    return mean_table(data, "above", by=("budget",), variant="variant", others=("seconds",))
