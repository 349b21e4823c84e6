"""Causal, masked and hybrid pretraining, measured on the world.

All have one body, and read the same tokens in as many steps. The learning rate of each objective is the best
for one other seed, in shorter runs, and that of each fine-tuning the best for the body of that seed, on valid
texts; more are tried where the best one is at an end. Controls: a causal model that predicts at a masked
model's number of positions, bodies with new weights, and a bag of words.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from experiments.harness import (
    Conclusions,
    Record,
    Records,
    Settings,
    best_label_accuracy,
    best_rate,
    digest_of,
    mean_table,
)
from experiments.linear import STRENGTHS, bag_of_words
from tinytx.loop import train
from tinytx.masked_lm import MaskedLanguageModel
from tinytx.masking import Masking
from tinytx.objectives import CausalObjective, FreshObjective
from tinytx.tokenizer import Tokenizer
from tinytx.transformer import LanguageModel, bidirectional, tied_std
from tinytx_run.corpora import Corpus, label_subset, load_corpus
from tinytx_run.evaluate import Sides, fill_probs
from tinytx_run.finetune import finetune
from tinytx_run.pretrain import corpus_objective, new_model, pretrain, train_tokenizer
from tinytx_run.recipes import HYBRID_CAUSAL_SHARE, Recipe, plan, plan_finetuning, resize
from tinytx_run.training import TrainingResult, fingerprint
from tinyworld.tokens import TokenWorld
from tinyworld.world import World

# Of all objectives. ALiBi, which recipes of the world have, cannot tell left from right in a model that reads
# both ways; rotary positions can.
BACKBONE = {"tie_embeddings": True, "n_segments": 2, "positions": "rotary"}
TRAINING = ("n_steps", "lr", "optimizer", "decay", "final_lr_fraction")  # all but the rate alike, too
RATES, TUNING_SHARE, TUNING_SEED = (0.006, 0.012, 0.024), 0.4, 100  # rates tried, in that share of the steps
FINETUNING_RATES = (1e-3, 2e-3, 4e-3)
N_BEYOND = 3  # rates that may be tried beyond an end
N_LABELS = 100  # of fine-tuning
N_BLANKS, N_TUNING_BLANKS = 60, 600  # texts in which one token is filled: of the test split, of valid
_BLANK_SEED = 41
SPARSE = "causal, few positions"  # as many as a masked model has
# New weights in place of the body of an objective, which is what decides whether they read both ways.
FRESH = {"from scratch, one way": "causal", "from scratch, both ways": "masked"}
BAG = "bag of words"
CONTESTANTS = ("causal", "masked", "hybrid", SPARSE, *FRESH, BAG)


def objectives(settings: Settings) -> pd.DataFrame:
    """Pretrain with every objective and seed on the world, and evaluate what was learned; see `table`.

    The masked recipe of the budget is that of all objectives, but for mask and learning rate. A budget in
    seconds is refused, as equal numbers of steps are compared.
    """
    if not isinstance(settings.budget, str):
        raise ValueError(f"budget must be a name, as equal steps are compared, got {settings.budget} s")
    runs = _Runs(settings, load_corpus("world"))
    cells = (
        (seed, objective, measure)
        for seed in settings.seeds()
        for objective in CONTESTANTS
        for measure in runs.measures(objective)
    )
    key = f"{settings.budget}/seed {{}}/{{}}/{{}}".format
    return table(settings.measured("objectives", cells, key, runs.origin, runs.measured))


class FewPositions:
    """Next-token prediction whose loss counts at a random share of the positions, as many as are masked."""

    def __init__(self, objective: FreshObjective | CausalObjective, pad_id: int) -> None:
        self._objective, self._pad_id = objective, pad_id
        self.epoch_batches, self.n_predictions = objective.epoch_batches, objective.n_predictions

    def loss(self, model: LanguageModel, indices: list[int]) -> Tensor:
        """Mean nats of the counted tokens."""
        inputs, targets = self._objective.batch(indices)
        counted = torch.rand(targets.shape) < Masking().p
        return model.loss(inputs, targets.where(counted, self._pad_id), ignore_id=self._pad_id)


def _exact_token(
    through: TokenWorld, ids: Sequence[int], position: int, sides: Sides, eos_id: int
) -> np.ndarray:
    """The exact distribution of a token given `sides`; as in `fill_probs`, the text does not end here."""
    if sides == "both":
        return through.fill_token(ids, position)
    probs = through.next_token(ids[:position]).copy()
    probs[eos_id] = 0.0
    return probs / probs.sum()


def fill_measures(
    model: LanguageModel | MaskedLanguageModel,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    n_blanks: int,
    sides: Sides = "both",
    *,
    hybrid: bool = False,
) -> dict[str, Any]:
    """Predict one masked token in each of some texts of the world, as in `fill_probs`.

    Returns
    -------
    dict
        ``nats`` (mean negative log-probability of the true token), ``accuracy`` of the most probable one,
        ``excess`` (mean KL divergence from the exact distribution given `sides`), and under ``exact`` the
        first two for that exact distribution. Positions are the same for every model.
    """
    through, rng, rows = World().through(tokenizer), np.random.default_rng(_BLANK_SEED), []
    for ids in tokenizer.encode_batch(texts[:n_blanks]):
        position = int(rng.integers(len(ids)))
        truth = _exact_token(through, ids, position, sides, tokenizer.eos_id)
        predicted = fill_probs(model, tokenizer, ids, position, sides=sides, hybrid=hybrid)
        possible = truth > 0
        excess = (truth[possible] * np.log(truth[possible] / predicted[possible])).sum()
        pairs = [
            (-np.log(probs[ids[position]]), probs.argmax() == ids[position]) for probs in (predicted, truth)
        ]
        rows.append([excess, *pairs[0], *pairs[1]])
    excess, *means = np.mean(rows, axis=0).tolist()
    own, exact = (dict(zip(("nats", "accuracy"), pair, strict=True)) for pair in (means[:2], means[2:]))
    return {"n": len(rows), "exact_given": sides, **own, "excess": excess, "exact": exact}


class _Runs:
    """The models of all objectives, trained when first needed, and what is measured on them."""

    def __init__(self, settings: Settings, data: Corpus) -> None:
        self.settings, self.data = settings, data
        self._texts, self._test = fingerprint(data), data.splits["test"]
        self._trained = lru_cache(1)(self._train)
        self.rate = cache(self._rate)
        self._label_bound = cache(lambda: best_label_accuracy(self._test.texts, self._test.labels or ()))

    def measures(self, objective: str) -> list[str]:
        """Names of what is measured on a contestant."""
        fills = [] if objective in (*FRESH, BAG, SPARSE) else ["fill"]
        left = ["fill, left side"] if objective in ("causal", "hybrid", SPARSE) else []
        return [*fills, *left, *([] if objective == SPARSE else [f"finetune {N_LABELS}"])]

    def origin(self, seed: int, objective: str, measure: str) -> Record:
        """All that a record follows from."""
        if objective == BAG:
            return {"texts": self._texts, "strengths": STRENGTHS}
        settings: Record = {"n_blanks": N_BLANKS}
        if not measure.startswith("fill"):
            settings = {**self._finetuning(), "lr": self._finetuning_rate(objective)}
        return self._origin(self._recipe(seed, FRESH.get(objective, objective)), settings=settings)

    def _origin(self, recipe: Recipe, **own: Any) -> Record:
        start = tied_std(recipe.config)
        return {"texts": self._texts, "recipe": recipe.to_dict(), "tied_start": start, **own}

    def _finetuning(self) -> Record:
        return {**dataclasses.asdict(plan_finetuning("world", self.settings.budget)), "pooling": "mean"}

    def _tuning(self, contestant: str, trial: str, origin: Record, measure: Callable[[], Record]) -> Record:
        """The record of a learning rate that is tried."""
        facts = {"contestant": contestant, "measure": "tuning", "seed": TUNING_SEED}
        key = f"{self.settings.budget}/tuning/{contestant}/{trial}"
        return self.settings.cached(key, origin, lambda: {**facts, **measure()})

    def _rate(self, objective: str) -> float:
        """The learning rate of an objective: the best in shorter runs of one other seed."""

        def excess(lr: float) -> float:
            recipe = self._recipe(TUNING_SEED, objective, lr)
            origin = self._origin(recipe, n_blanks=N_TUNING_BLANKS)
            task = partial(self._excess, objective, recipe)
            return self._tuning(objective, str(lr), origin, task)["excess"]

        return best_rate(excess, RATES, N_BEYOND)

    def _finetuning_rate(self, contestant: str) -> float:
        """The learning rate of a fine-tuning: the best on valid texts, for the body of one other seed."""
        recipe = self._recipe(TUNING_SEED, FRESH.get(contestant, contestant))
        held_out = dataclasses.replace(self.data, test=None)

        def error(lr: float) -> float:
            origin = self._origin(recipe, settings={**self._finetuning(), "lr": lr})
            task = partial(self._finetuned, contestant, TUNING_SEED, lr, held_out)
            return 1 - self._tuning(contestant, f"finetune {N_LABELS} {lr}", origin, task)["accuracy"]

        return best_rate(error, FINETUNING_RATES, N_BEYOND)

    def _excess(self, objective: str, recipe: Recipe) -> Record:
        """The excess of `fill_measures` on valid texts, given each side that the objective trains for."""
        result, hybrid = self._fitted(objective, recipe, None), objective == "hybrid"
        own: Sides = "left" if objective in ("causal", SPARSE) else "both"
        sides: tuple[Sides, ...] = ("left", "both") if hybrid else (own,)
        asked = result.model, result.tokenizer, self.data.valid.texts, N_TUNING_BLANKS
        found = [fill_measures(*asked, one, hybrid=hybrid)["excess"] for one in sides]
        return {"excess_by_side": found, "excess": float(np.mean(found))}

    def _recipe(self, seed: int, objective: str, lr: float | None = None) -> Recipe:
        """The recipe for an objective, or with a rate to be tried that of a shorter run."""
        base, masking = plan("world", "masked", self.settings.budget, seed=seed), None
        config = base.config.replace(**BACKBONE, causal=objective in ("causal", SPARSE, "hybrid"))
        if objective == "hybrid":
            masking = Masking(causal_share=HYBRID_CAUSAL_SHARE, transform=False)
        elif config.causal is False:
            masking = Masking(transform=False)
        n_steps = base.settings.n_steps
        if lr is not None:
            n_steps = max(10, round(TUNING_SHARE * n_steps))
        rate = self.rate(objective) if lr is None else lr
        settings = resize(base.settings, self.settings.longer * n_steps).replace(lr=rate)
        return dataclasses.replace(base, config=config, settings=settings, masking=masking)

    def _train(self, seed: int, objective: str) -> TrainingResult:
        recipe, budget = self._recipe(seed, objective), self.settings.budget
        digest = digest_of({"texts": self._texts, "recipe": recipe.to_dict()})
        folder = self.settings.work_dir / f"objectives-{objective}-{budget}-seed{seed}-{digest}"
        return self._fitted(objective, recipe, folder)

    def _fitted(self, objective: str, recipe: Recipe, folder: Path | None) -> TrainingResult:
        if objective == SPARSE:
            return self._fitted_to_few(recipe)
        return pretrain(
            self.data,
            objective=objective,
            budget=self.settings.budget,
            seed=recipe.settings.seed,
            out=folder,
            model_changes=BACKBONE,
            training_changes={name: getattr(recipe.settings, name) for name in TRAINING},
            masking_changes=None if recipe.masking is None else {"transform": False},
            options=self.settings.quiet if folder is None else self.settings.resumed,
        )

    def _fitted_to_few(self, recipe: Recipe) -> TrainingResult:
        tokenizer = train_tokenizer(self.data.train.texts, recipe.vocab_size, exact=False, kind="world")
        recipe = recipe.replace(config=recipe.config.replace(vocab_size=tokenizer.vocab_size))
        model = new_model(recipe, recipe.settings.seed)
        learning = FewPositions(corpus_objective(recipe, tokenizer, self.data), tokenizer.pad_id)
        history = train(model, learning, recipe.settings, progress=False)
        done: Any = {"history": history, "recipe": recipe, "evaluation": None, "data": {}, "path": None}
        return TrainingResult(model=model, tokenizer=tokenizer, **done)

    def measured(self, seed: int, objective: str, measure: str) -> Record:
        """One record."""
        if objective == BAG:
            found = self._counted(seed)
        elif measure.startswith("fill"):
            result = self._trained(seed, objective)
            sides: Sides = "left" if measure.endswith("left side") else "both"
            asked = result.model, result.tokenizer, self._test.texts, N_BLANKS
            found = fill_measures(*asked, sides, hybrid=objective == "hybrid")
        else:
            found = self._finetuned(objective, seed, self._finetuning_rate(objective), self.data)
        return {"seed": seed, "contestant": objective, "measure": measure, **found}

    def _counted(self, seed: int) -> Record:
        learned = label_subset(self.data.train, N_LABELS, seed)
        scores, chosen = bag_of_words(learned, self._test, seed)
        right = scores.argmax(axis=1) == np.array(self._test.labels)
        exact = {"accuracy": self._label_bound()}
        return {"accuracy": float(right.mean()), "n": len(right), **chosen, "exact": exact}

    def _finetuned(self, contestant: str, seed: int, lr: float, data: Corpus) -> Record:
        result = self._trained(seed, FRESH.get(contestant, contestant))
        with bidirectional(result.model.body) if contestant == "hybrid" else nullcontext():
            tuned = finetune(
                result,
                data,
                body="fresh" if contestant in FRESH else "pretrained",
                budget=self.settings.budget,
                seed=seed,
                n_labels=N_LABELS,
                training_changes={"lr": lr},
                options=self.settings.quiet,
            )
        found = {"lr": lr, **tuned.evaluation.score.to_dict(), "last_loss": tuned.history.loss[-1]}
        return {**found, "exact": {"accuracy": self._label_bound()}}


def conclusions(records: Records) -> Conclusions:
    """Sentences of lesson 10, and whether these records bear them out, each seed by itself."""
    fills = pd.DataFrame([one for one in records.values() if one["measure"].startswith("fill")])
    data = fills.pivot_table(["excess", "nats"], "seed", ["measure", "contestant"])
    left, masked = data["excess", "fill, left side"], data["excess", "fill"]["masked"]
    nearer, away = left["causal"] < masked, (left[SPARSE] - masked).mean()
    better = data["nats", "fill", "masked"] < data["nats", "fill, left side", "causal"]
    return {
        "a causal model is nearer to the exact value of its side than a masked one": nearer.all(),
        "few positions cost a causal model": (left["causal"] < left[SPARSE]).all(),
        "with few positions it ends about as far from it as a masked one": abs(away) < 0.05,
        "a masked model fills a blank better than a causal one that is given the left": better.all(),
    }


def table(records: Records) -> pd.DataFrame:
    """Each measure of each objective: mean over seeds, and its paired difference from the causal model."""
    rows = [
        (key.split("/")[0], f"{one['measure']}: {field}", one["contestant"], one["seed"], one[field])
        for key, one in records.items()
        if one["measure"] != "tuning"
        for field in ("nats", "excess", "accuracy")
        if field in one
    ]
    data = pd.DataFrame(rows, columns=["budget", "row", "variant", "seed", "value"])
    return mean_table(data, "value", by=("budget", "row"), variant="variant", baselines=("causal",))
