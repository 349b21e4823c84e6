"""A scaling law whose constant is known: models of several sizes, each trained to its end on several amounts.

Every model is a finished one: its learning rate falls to zero at its last step, and no text is read twice.
The recipe is that of the world's laptop budget (Muon, linear decay, ALiBi, ReLU, no biases, 2 layers) in
fp32, with a vocabulary of 600. The learning rate of a width is the best of those tried on the valid split
with seed 0 and `TUNING_STEPS` steps, whatever the length of the run. Results are those of other seeds on the
test split, next to the exact entropy of the same texts.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import torch
from tqdm.auto import tqdm

from experiments.harness import Conclusions, Record, Records, Settings, best_rates, entropy_bound
from tinytx.counting import parameter_table
from tinytx.loop import train
from tinytx_run.corpora import Corpus, load_corpus
from tinytx_run.evaluate import evaluate_language_model
from tinytx_run.pretrain import corpus_objective, new_language_model, train_tokenizer
from tinytx_run.recipes import FF_FACTOR, Recipe, corpus_kind, plan, resize
from tinytx_run.training import fingerprint

VOCAB_SIZE, HEAD_DIM = 600, 8
WIDTHS = (8, 16, 32, 64)
STEPS = (160, 360, 800, 1800, 4000)
LEARNING_RATES = (6e-3, 1.2e-2, 2.4e-2, 4.8e-2, 9.6e-2)
TUNING_STEPS = 250


def scaling(settings: Settings) -> pd.DataFrame:
    """Train every size on every amount of text, on one core of the processor; for the result see `table`.

    Results are those of seeds from 1 on. The recipe is the experiment's own, whatever the
    budget; texts are those of the world.
    """
    torch.set_num_threads(1)
    runs = _Runs(load_corpus("world"))

    def cached(key: str, split: str, **how: Any) -> Record:
        recipe = runs.recipe(**how)
        origin = {"texts": runs.fingerprint, "recipe": recipe.to_dict(), "split": split}
        return settings.cached(key, origin, partial(runs.measured, recipe, split))

    def tuned(width: int, lr: float) -> float:
        key, how = f"{width}/tuning/lr {lr:g}", {"n_steps": TUNING_STEPS, "seed": 0}
        return cached(key, "valid", width=width, lr=lr, **how)["loss"]

    best = best_rates(tuned, WIDTHS, LEARNING_RATES)
    lengths = [settings.longer * n_steps for n_steps in STEPS]
    cells = list(product(lengths, settings.seeds(1), WIDTHS))
    for n_steps, seed, width in tqdm(cells, desc="results", disable=None):
        key = f"{width}/{n_steps} steps/seed {seed}"
        cached(key, "test", width=width, n_steps=n_steps, lr=best[width], seed=seed)
    return table(settings.store.data)


class _Runs:
    """The texts, and what is measured of a model that learned from them."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus, self.fingerprint = corpus, fingerprint(corpus)
        texts, kind = corpus.train.texts, corpus_kind(corpus)
        self._tokenizer = train_tokenizer(texts, VOCAB_SIZE, exact=False, kind=kind)
        self._learning = corpus_objective(plan("world", "causal", "laptop"), self._tokenizer, corpus)

    def recipe(self, *, width: int, n_steps: int, lr: float, seed: int) -> Recipe:
        """The laptop recipe with another width, length, rate and seed."""
        given, vocab_size = plan("world", "causal", "laptop", seed=seed), self._tokenizer.vocab_size
        sizes = {"d_model": width, "d_ff": FF_FACTOR * width, "n_heads": width // HEAD_DIM}
        config = given.config.replace(vocab_size=vocab_size, **sizes)
        settings = resize(given.settings, n_steps).replace(lr=lr, precision="fp32")
        return given.replace(vocab_size=vocab_size, config=config, settings=settings)

    def measured(self, recipe: Recipe, split: str) -> Record:
        """Train a model; its loss on a split, the entropy bound there, and its sizes."""
        settings, learning = recipe.settings, self._learning
        model = new_language_model(recipe.config, settings.seed)
        pace = {"seed": settings.seed, "tokens_per_batch": settings.tokens_per_batch}
        batches = learning.epoch_batches(epoch=0, **pace)
        tokens_per_step = float(np.mean([learning.n_predictions(batch) for batch in batches]))
        train(model, learning, settings, progress=False)
        texts = self._corpus.splits[split].texts
        score = evaluate_language_model(model, self._tokenizer, texts)
        sizes = parameter_table(recipe.config)
        return {
            **{"measure": split, "width": recipe.config.d_model, "n_steps": settings.n_steps},
            **{"seed": settings.seed, "lr": settings.lr, "n_params": sizes.total},
            "n_non_embedding": sizes.parts["blocks"] + sizes.parts["final_norm"],
            "n_tokens": round(settings.n_steps * tokens_per_step),
            "loss": score.nats_per_token,
            "bound": entropy_bound(self._corpus, texts) / score.n_tokens,
        }


def conclusions(records: Records) -> Conclusions:
    """Sentences of lesson 14, and whether these records bear them out, seeds taken together."""
    above = table(records).pivot_table("above", "width", "n_steps")
    # Twice the width is about thrice the parameters: along a diagonal of the table operations are equal.
    n_widths, n_lengths = above.shape
    best = [
        min(range(max(0, d - n_lengths + 1), min(n_widths, d + 1)), key=lambda i: above.iloc[i, d - i])
        for d in range(1, n_widths + n_lengths - 2)
    ]
    return {
        "more text brings every size nearer to the bound": (np.diff(above) < 0).all(),
        "more operations pay for a larger model": best == sorted(best) and best[0] < best[-1],
    }


def table(records: Records) -> pd.DataFrame:
    """One row a run: sizes, tokens read, loss, entropy bound, and what is between them, in nats per token."""
    data = pd.DataFrame([one for one in records.values() if one["measure"] == "test"])
    columns = ["width", "n_non_embedding", "n_params", "n_steps", "n_tokens", "seed", "lr", "loss", "bound"]
    data = data[columns].sort_values(["width", "n_steps", "seed"], ignore_index=True)
    return data.assign(above=data["loss"] - data["bound"])
