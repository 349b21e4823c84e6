"""What each part of the GPT of lesson 07 is for: trained without it, next to the whole and to a 2-gram model.

Model, text and training loop are those of the lesson's cells, for as many steps as it trains the whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import pandas as pd

from experiments.harness import Conclusions, Record, Records, Settings
from experiments.lesson_cells import from_lesson
from tinytx.ngrams import NGramModel

BIGRAM = "2-gram"
N_STEPS: Mapping[str, int] = {"laptop": 350, "smoke": 2}


def ablation(settings: Settings) -> pd.DataFrame:
    """Train the whole model and one without each part, from several seeds; see `table`."""
    n_steps = settings.longer * N_STEPS[settings.check_budget(*N_STEPS)]
    parts = from_lesson("07", "parts").parts
    cells = [(BIGRAM, 0, 0), *((part, seed, n_steps) for seed, part in product(settings.seeds(1), parts))]
    records = settings.measured(
        "ablation",
        cells,
        lambda part, seed, n: f"{part}/seed {seed}" if n else part,
        lambda part, seed, n: {"n_steps": n},
        measure,
        n_threads=1,
    )
    return table(records)


def measure(part: str, seed: int, n_steps: int) -> Record:
    """Held-out loss of a model without a part, or of counts of pairs of tokens."""
    if part == BIGRAM:
        lesson = from_lesson("07", "rows", "held_out", "tokenizer")
        counts = NGramModel(2, lesson.tokenizer.vocab_size).fit([row[1:-1] for row in lesson.rows])
        loss = counts.nats_per_token([row[1:-1] for row in lesson.held_out])
    else:
        loss = from_lesson("07", "without").without(part, seed, n_steps)
    return {"left out": part, "seed": seed, "n_steps": n_steps, "loss": round(loss, 4)}


def conclusions(records: Records) -> Conclusions:
    """Sentences of lesson 07, and whether these records bear them out, each seed by itself."""
    losses = pd.DataFrame(records.values()).pivot_table("loss", "seed", "left out")
    bigram, losses = losses[BIGRAM].dropna().iloc[0], losses.drop(columns=BIGRAM).dropna()
    cost = losses.drop(columns="no part").sub(losses["no part"], axis=0)
    away, others = abs(losses["attention"] - bigram), ("feed-forward network", "positions")
    small = {f"without {part} some is lost, less than a tenth": cost[part].between(0, 0.1) for part in others}
    found = {
        "the model without attention loses most": cost.idxmax(axis=1) == "attention",
        "it ends within a tenth of a nat of the 2-gram model": away < 0.1,
    }
    return {sentence: holds.all() for sentence, holds in (found | small).items()}


def table(records: Records) -> pd.DataFrame:
    """Held-out nats per token without each part.

    Returns
    -------
    DataFrame
        Columns ``left out``, ``n`` seeds, ``mean``, ``min`` and ``max``.
    """
    found = pd.DataFrame(records.values()).groupby("left out", sort=False)["loss"]
    return found.agg(n="size", mean="mean", min="min", max="max").reset_index()
