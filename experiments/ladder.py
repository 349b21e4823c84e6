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

import pandas as pd
import torch
from tqdm.auto import tqdm

from experiments.harness import Record, Records, Settings, best_rate
from tinytx.attention import record_attention
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
from tinytx_course.labs.layers import count_flops
from tinytx_course.labs.timing import take_turns
from tinytx_run.corpora import Corpus, load_corpus
from tinytx_run.evaluate import exact_nats
from tinytx_run.pretrain import train_tokenizer
from tinytx_run.training import fingerprint

VOCAB_SIZE = 1000
ORDERS = (1, 2, 3, 4, 5, 6)
LEARNING_RATES, N_BEYOND = (5e-3, 1e-2, 2e-2), 3
N_TIMED, N_ROUNDS = 10, 5  # steps that make a round, taken in turn by all models
N_COUNTED = 100  # reviews in which operations are counted

table = ladder_table


def conclusions(records: Records) -> dict[str, bool]:
    """Sentences of lesson 12, and whether these records bear them out."""
    above = table(records).pivot(index="equal", columns="model", values="above")
    counted, networks = above.filter(regex="gram").min(axis=1), above[list(MIXERS)]
    first = networks.idxmin(axis=1) == "transformer"
    return {
        "the transformer is first at equal parameters": bool(first["parameters"]),
        "the transformer is first at equal time": bool(first["time"]),
        "every network is ahead of the n-gram model": bool(networks.max(axis=1).lt(counted).all()),
    }


def ladder(settings: Settings) -> pd.DataFrame:
    """Measure every model of the ladder, on one core of the processor; for the result see `ladder_table`.

    Results are those of seeds from 1 on. The ladder has a recipe of its own, whatever the budget.
    """
    torch.set_num_threads(1)
    runs = _Runs(settings, load_corpus("world"))
    for order in ORDERS:
        runs.counts(order)
    for kind in MIXERS:
        runs.cost(kind)
    rates = {
        kind: best_rate(partial(runs.tuned, kind), LEARNING_RATES, N_BEYOND)
        for kind in tqdm(MIXERS, desc="learning rates", disable=None)
    }
    cells = [
        (equal, seed, kind)
        for equal, seed, kind in product(("parameters", "time"), settings.seeds(1), MIXERS)
        if (equal, kind) != ("time", "transformer")  # the same run as at equal parameters
    ]
    for equal, seed, kind in tqdm(cells, desc="results", disable=None):
        runs.result(kind, equal, seed, rates[kind])
    return table(settings.store.data)


class _Runs:
    """The texts as rows of ids, and what is measured on them."""

    def __init__(self, settings: Settings, data: Corpus) -> None:
        assert data.test is not None
        tokenizer = train_tokenizer(data.train.texts, VOCAB_SIZE, exact=False, kind="world")
        self._ids = {name: tokenizer.encode_batch(split.texts) for name, split in data.splits.items()}
        self._rows = {
            name: [[tokenizer.bos_id, *ids, tokenizer.eos_id] for ids in texts]
            for name, texts in self._ids.items()
        }
        self._settings, self._pad_id = settings, tokenizer.pad_id
        self._vocab_size = tokenizer.vocab_size
        self._max_len = max(len(row) for rows in self._rows.values() for row in rows)
        start = tied_std(build_model("transformer", self._vocab_size, self._max_len).config)
        self._origin = {"texts": fingerprint(data), "vocab_size": self._vocab_size, "tied_start": start}
        exact = exact_nats(data, data.test.texts)
        assert exact is not None
        self._bound = float(exact.sum()) / sum(len(ids) + 1 for ids in self._ids["test"])
        self._n_steps = settings.longer * len(self._batches())

    def _batches(self) -> list[list[int]]:
        lengths = [len(row) for row in self._rows["train"]]
        return batches_by_length(lengths, LadderRecipe.tokens_per_batch, seed=0, epoch=0)

    def _cached(self, key: str, asked: Record, task: Callable[[], Record]) -> Record:
        return self._settings.cached(key, self._origin | asked, task)

    @cached_property
    def _ngrams(self) -> NGramModel:
        return NGramModel(max(ORDERS), self._vocab_size).fit(self._ids["train"])

    def counts(self, order: int) -> Record:
        """Measure an n-gram model, whose parameters are its counts."""

        def count() -> Record:
            model, name = self._ngrams, f"{order}-gram"
            losses = {
                split: model.nats_per_token(self._ids[split], order=order) for split in ("valid", "test")
            }
            sizes = {"n_params": model.n_counts(order), "bound": self._bound}
            return {"measure": "counts", "model": name, **sizes, **losses}

        return self._cached(f"{order}-gram/counts", {"order": order}, count)

    def cost(self, kind: str) -> Record:
        """Measure what a model costs: parameters, operations, processor time of a training step."""
        asked = {"n_timed": N_TIMED, "n_rounds": N_ROUNDS}
        return self._cached(f"{kind}/cost", asked, partial(self._cost, kind))

    def _cost(self, kind: str) -> Record:
        model, rows = self._model(kind, 0), self._rows["test"][:N_COUNTED]
        n_tokens = sum(len(row) - 1 for row in rows)

        def forward() -> None:
            with torch.no_grad(), record_attention(model):  # the counter does not see fused attention
                for row in rows:
                    model(torch.tensor([row[:-1]]))

        costs = {"n_params": count_parameters(model), "flops": round(count_flops(forward) / n_tokens)}
        return {"measure": "cost", "model": kind, **costs, "milliseconds": 1e3 * self._seconds[kind]}

    @cached_property
    def _seconds(self) -> dict[str, float]:
        """Median processor seconds of a training step of each model, on the same batches, in turn."""
        chosen = self._batches()[:N_TIMED]
        rows = [self._rows["train"][i] for batch in chosen for i in batch]
        recipe = LadderRecipe(lr=1e-3, n_steps=len(chosen))
        tasks = {
            kind: partial(train_model, self._model(kind, 0), rows, recipe, pad_id=self._pad_id)
            for kind in MIXERS
        }
        times = take_turns(tasks, n_rounds=N_ROUNDS).processor
        return {kind: times[kind].median / len(chosen) for kind in MIXERS}

    def tuned(self, kind: str, lr: float) -> float:
        """The loss of a learning rate on the valid split, with seed 0."""
        record = self._trained(f"{kind}/tuning/{lr:g}", kind, lr, self._n_steps, 0, "tuning")
        return float(record["valid"])

    def result(self, kind: str, equal: str, seed: int, lr: float) -> Record:
        """Measure a model at a learning rate, with as many parameters or as much time as the transformer."""
        n_steps = self._n_steps
        if equal == "time":
            own, transformer = (self.cost(name)["milliseconds"] for name in (kind, "transformer"))
            n_steps = round(n_steps * transformer / own)
        return self._trained(f"{kind}/equal {equal}/seed {seed}", kind, lr, n_steps, seed, f"equal {equal}")

    def _model(self, kind: str, seed: int) -> LanguageModel:
        return build_model(kind, self._vocab_size, self._max_len, seed)

    def _trained(self, key: str, kind: str, lr: float, n_steps: int, seed: int, measure: str) -> Record:
        recipe = LadderRecipe(lr=lr, n_steps=n_steps)

        def train() -> Record:
            model = self._model(kind, seed)
            train_model(model, self._rows["train"], recipe, pad_id=self._pad_id, seed=seed)
            found = {
                name: nats_per_token(model, self._rows[name], pad_id=self._pad_id)
                for name in ("valid", "test")
            }
            self._settings.report(f"{kind}, {measure}, lr {lr:g}, seed {seed}: {found}")
            return {
                **{"measure": measure, "model": kind, "seed": seed, "lr": lr, "n_steps": n_steps},
                **{"bound": self._bound, **found},
            }

        return self._cached(key, {"recipe": recipe.to_dict()}, train)
