"""Translators measured: greedy and beam search on the held-out split."""

from __future__ import annotations

import os
from functools import partial

import pandas as pd

from experiments.harness import Record, Records, Settings, digest_of
from tinytx.beam import Search
from tinytx_run.bleu import evaluate_translator
from tinytx_run.pairs import PairCorpus, load_pairs
from tinytx_run.pretrain import train_translator
from tinytx_run.recipes import pair_kind, plan
from tinytx_run.training import fingerprint

SEARCHES = {"greedy": Search(), "beam of 4": Search(beam_size=4)}


def translation(settings: Settings, corpus: str | os.PathLike[str] | PairCorpus = "world") -> pd.DataFrame:
    """Train one translator a seed and evaluate both searches of `SEARCHES` on the whole held-out split.

    The corpus is one of `load_pairs`; for the result see `table`.
    """
    data = corpus if isinstance(corpus, PairCorpus) else load_pairs(corpus, settings.data_dir)
    searches = {name: search.to_dict() for name, search in SEARCHES.items()}
    records = settings.measured(
        "translation",
        ((seed,) for seed in range(settings.n_seeds)),
        lambda seed: f"{data.name}/{settings.budget}/seed {seed}",
        lambda seed: {**_asked(settings, data, seed), "searches": searches},
        partial(_trained, settings, data),
    )
    return table(records)


def _asked(settings: Settings, data: PairCorpus, seed: int) -> Record:
    """What is learned, and how."""
    recipe = plan(pair_kind(data.name), "translation", settings.budget, seed=seed)
    return {"texts": fingerprint(data), "recipe": recipe.to_dict()}


def _trained(settings: Settings, data: PairCorpus, seed: int) -> Record:
    digest = digest_of(_asked(settings, data, seed))
    folder = settings.work_dir / f"translation-{data.name}-{settings.budget}-seed{seed}-{digest}"
    result = train_translator(
        data, budget=settings.budget, seed=seed, out=folder, search=None, options=settings.resumed
    )
    return {
        "seed": seed,
        "n_pairs": len(data.train),
        **{key: value for key, value in result.to_dict().items() if key != "path"},
        "recipe": result.recipe.to_dict(),
        "scores": {
            name: evaluate_translator(result.model, result.tokenizer, data, search=search).to_dict()
            for name, search in SEARCHES.items()
        },
    }


def table(records: Records) -> pd.DataFrame:
    """BLEU with its interval, chrF and errors of grammar, one row a model and search."""
    rows = []
    for key, record in records.items():
        for search, score in record["scores"].items():
            low, high = score["interval"]
            several, grammar = score["all_references"], score["grammar"]
            row = {"model": key, "search": search, "bleu": score["bleu"], "low": low, "high": high}
            row |= {"chrf": score["chrf"], "bleu_all_references": several and several["bleu"]}
            rows.append(row | {"grammar_errors": grammar and grammar["n_errors"]})
    return pd.DataFrame(rows)
