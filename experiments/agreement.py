"""Does the model of lesson 08 make an adjective agree with its noun, where no short n-gram model can see it?

The cells of the lesson ask for the gender of an adjective next to the noun and behind five tokens that are
the same for all nouns. Controls: n-gram models, the longest of which does see that far back.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import pandas as pd
import torch

import tinytx as tx
from experiments.harness import Conclusions, Record, Records, Settings
from experiments.lesson_cells import from_lesson
from tinytx.ngrams import NGramModel
from tinytx_run.recipes import default_budget, plan

READER, ORDERS = "transformer", (2, 3, 4, 5, 7)
ENDINGS: Mapping[str, str] = {"near": "est", "far": "n'est ni magnifique ni"}


def agreement(settings: Settings) -> pd.DataFrame:
    """Ask models from several seeds, and n-gram models, for the gender of an adjective; see `table`."""
    budget = settings.check_budget(default_budget())  # that of the lesson's cells
    n_steps = settings.longer * plan("world", budget=budget).settings.n_steps
    cells = [(f"{n}-gram", 0, 0) for n in ORDERS] + [(READER, seed, n_steps) for seed in settings.seeds(1)]
    records = settings.measured(
        "agreement",
        cells,
        lambda reader, seed, n: f"{reader}/seed {seed}" if n else reader,
        lambda reader, seed, n: {"budget": budget, "n_steps": n},
        measure,
        n_threads=1,
    )
    return table(records)


def measure(reader: str, seed: int, n_steps: int) -> Record:
    """The share of the right gender for masculine and feminine nouns, at both distances."""
    lesson = from_lesson("08", "right_gender", "tokenizer")

    def by_model(ids: list[int]) -> torch.Tensor:
        inputs = torch.tensor([[lesson.tokenizer.bos_id, *ids]])
        return run.model(inputs)[0, -1].softmax(dim=-1)

    def by_counting(ids: list[int]) -> torch.Tensor:
        return torch.tensor(_counts().next_probs(ids, order=int(reader[0])))

    if reader == READER:
        options = tx.RunOptions(progress=False, device="cpu")
        run = tx.pretrain("world", seed=seed, training_changes={"n_steps": n_steps}, options=options)
    ask = by_model if reader == READER else by_counting
    shares = {name: lesson.right_gender(ask, ending) for name, ending in ENDINGS.items()}
    return {"reader": reader, "seed": seed, "n_steps": n_steps, **shares}


@cache
def _counts() -> NGramModel:
    lesson = from_lesson("08", "train_ids", "V")
    return NGramModel(max(ORDERS), lesson.V).fit(lesson.train_ids)


def conclusions(records: Records) -> Conclusions:
    """Sentences of lesson 08, and whether these records bear them out, each seed and gender by itself."""
    found = table(records).set_index("reader")
    near, short = found.loc[["4-gram", READER], "near, least"], found.loc[["4-gram", "5-gram"]]
    at_half = short["far, least"].gt(0.4) & short["far, most"].lt(0.6)
    return {
        "next to the noun a 4-gram model and the transformer choose the right gender": (near > 0.9).all(),
        "where the noun is out of its reach an n-gram model is at one half": at_half.all(),
        "the transformer still gives nearly all to the right gender": found.loc[READER, "far, least"] > 0.9,
    }


def table(records: Records) -> pd.DataFrame:
    """The share of the right gender by reader, the least and the most of its seeds and genders.

    Returns
    -------
    DataFrame
        Columns ``reader``, ``n`` seeds, and for ``near`` and ``far`` the ``least`` and the ``most``.
    """
    by_reader = pd.DataFrame(records.values()).groupby("reader", sort=False)
    found = by_reader.size().to_frame("n")
    for name in ENDINGS:
        shares = by_reader[name].sum()  # of both genders and all seeds, in one list
        found[f"{name}, least"], found[f"{name}, most"] = shares.map(min), shares.map(max)
    return found.reset_index()
