"""One ladder on one task: n-gram, RNN, GRU, CNN and transformer against the entropy bound of the world.

All models read the same texts in the same tokens. What is tuned, a learning rate for each architecture and
the order of the n-gram model, is tuned with seed 0 on the valid split, and where the best rate lies at an
end, more are tried. Results are those of other seeds on the test split. At equal parameters each model takes
one pass over the text; at equal time, as many steps as fit into the processor time that the transformer's
pass takes on one core.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from itertools import product
from typing import Any

import pandas as pd
import torch
from tqdm.auto import tqdm

from experiments.harness import Conclusions, Record, Records, Settings, best_rates, entropy_bound
from tinytx.batching import batches_by_length
from tinytx.counting import count_parameters
from tinytx.ngrams import NGramModel
from tinytx.transformer import LanguageModel, tied_std
from tinytx_course.labs.ladder import (
    MIXERS,
    LadderRecipe,
    build_model,
    ladder_table,
    nats_per_token,
    train_model,
)
from tinytx_course.labs.timing import take_turns
from tinytx_run.corpora import Corpus, load_corpus
from tinytx_run.pretrain import train_tokenizer
from tinytx_run.training import fingerprint

VOCAB_SIZE = 1000
ORDERS = (1, 2, 3, 4, 5, 6)
LEARNING_RATES, N_BEYOND = (5e-3, 1e-2, 2e-2), 3
N_TIMED, N_ROUNDS = 10, 5  # steps that make a round, taken in turn by all models

table = ladder_table


def conclusions(records: Records) -> Conclusions:
    """Sentences of lesson 12, and whether these records bear them out."""
    above = table(records).pivot(index="equal", columns="model", values="above")
    counted, networks = above.filter(regex="gram").min(axis=1), above[list(MIXERS)]
    first = networks.idxmin(axis=1) == "transformer"
    return {
        "the transformer is first at equal parameters": first["parameters"],
        "the transformer is first at equal time": first["time"],
        "every network is ahead of the n-gram model": networks.max(axis=1).lt(counted).all(),
    }


def ladder(settings: Settings) -> pd.DataFrame:
    """Measure every model of the ladder, on one core of the processor; for the result see `ladder_table`.

    Results are those of seeds from 1 on. The ladder has a recipe of its own, whatever the budget.
    """
    torch.set_num_threads(1)
    runs = _Runs(load_corpus("world"))
    n_steps = settings.longer * len(runs.batches)

    def cached(key: str, asked: Record, measure: Callable[..., Record], *what: Any) -> Record:
        return settings.cached(key, runs.origin | asked, partial(measure, *what))

    def trained(kind: str, key: str, measure: str, seed: int, **how: Any) -> Record:
        recipe = LadderRecipe(**how)
        asked = {"recipe": recipe.to_dict()}
        return cached(f"{kind}/{key}", asked, runs.trained, kind, measure, seed, recipe)

    def tuned(kind: str, lr: float) -> float:
        return trained(kind, f"tuning/{lr:g}", "tuning", 0, lr=lr, n_steps=n_steps)["valid"]

    for order in ORDERS:
        cached(f"{order}-gram/counts", {"order": order}, runs.counted, order)
    timed = {"n_timed": N_TIMED, "n_rounds": N_ROUNDS}
    costs = {kind: cached(f"{kind}/cost", timed, runs.cost, kind)["milliseconds"] for kind in MIXERS}
    rates = best_rates(tuned, MIXERS, LEARNING_RATES, N_BEYOND)
    # At equal time the transformer has the same run as at equal parameters.
    in_time = {kind: round(n_steps * costs["transformer"] / costs[kind]) for kind in MIXERS}
    del in_time["transformer"]
    lengths = {"parameters": dict.fromkeys(MIXERS, n_steps), "time": in_time}
    for equal, seed in tqdm(list(product(lengths, settings.seeds(1))), desc="results", disable=None):
        for kind, n in lengths[equal].items():
            name = f"equal {equal}"
            trained(kind, f"{name}/seed {seed}", name, seed, lr=rates[kind], n_steps=n)
    return table(settings.store.data)


class _Runs:
    """The texts as rows of ids, and what is measured on them."""

    def __init__(self, data: Corpus) -> None:
        assert data.test is not None
        tokenizer = train_tokenizer(data.train.texts, VOCAB_SIZE, exact=False, kind="world")
        self._ids = {name: tokenizer.encode_batch(split.texts) for name, split in data.splits.items()}
        self._rows = {
            name: [[tokenizer.bos_id, *ids, tokenizer.eos_id] for ids in texts]
            for name, texts in self._ids.items()
        }
        self._vocab_size, self._pad_id = tokenizer.vocab_size, tokenizer.pad_id
        self._max_len = max(len(row) for rows in self._rows.values() for row in rows)
        start = tied_std(self._model("transformer", 0).config)
        self.origin = {"texts": fingerprint(data), "vocab_size": self._vocab_size, "tied_start": start}
        self._bound = entropy_bound(data, data.test.texts) / sum(len(ids) + 1 for ids in self._ids["test"])
        lengths = [len(row) for row in self._rows["train"]]
        self.batches = batches_by_length(lengths, LadderRecipe.tokens_per_batch, seed=0, epoch=0)

    def _model(self, kind: str, seed: int) -> LanguageModel:
        return build_model(kind, self._vocab_size, self._max_len, seed)

    @cached_property
    def _ngrams(self) -> NGramModel:
        return NGramModel(max(ORDERS), self._vocab_size).fit(self._ids["train"])

    def counted(self, order: int) -> Record:
        """An n-gram model, whose parameters are its counts."""
        model = self._ngrams
        losses = {name: model.nats_per_token(self._ids[name], order=order) for name in ("valid", "test")}
        sizes = {"n_params": model.n_counts(order), "bound": self._bound}
        return {"measure": "counts", "model": f"{order}-gram", **sizes, **losses}

    def cost(self, kind: str) -> Record:
        """What a model costs: parameters, processor time of a training step."""
        n_params = count_parameters(self._model(kind, 0))
        return {
            **{"measure": "cost", "model": kind, "n_params": n_params},
            "milliseconds": 1e3 * self._seconds[kind],
        }

    @cached_property
    def _seconds(self) -> dict[str, float]:
        """Median processor seconds of a training step of each model, on the same batches, in turn."""
        chosen = self.batches[:N_TIMED]
        rows = [self._rows["train"][i] for batch in chosen for i in batch]
        recipe = LadderRecipe(lr=1e-3, n_steps=len(chosen))
        tasks = {
            kind: partial(train_model, self._model(kind, 0), rows, recipe, pad_id=self._pad_id)
            for kind in MIXERS
        }
        times = take_turns(tasks, n_rounds=N_ROUNDS).processor
        return {kind: times[kind].median / len(chosen) for kind in MIXERS}

    def trained(self, kind: str, measure: str, seed: int, recipe: LadderRecipe) -> Record:
        """The losses of a model that was trained."""
        model = self._model(kind, seed)
        train_model(model, self._rows["train"], recipe, pad_id=self._pad_id, seed=seed)
        losses = {
            name: nats_per_token(model, self._rows[name], pad_id=self._pad_id) for name in ("valid", "test")
        }
        how = {"seed": seed, "lr": recipe.lr, "n_steps": recipe.n_steps, "bound": self._bound}
        return {"measure": measure, "model": kind, **how, **losses}
