"""A causal language model pretrained on real French, and how it continues prompts."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import product
from typing import Any

import pandas as pd

from experiments.harness import Record, Records, Settings
from tinytx.generate import Sampling, generate
from tinytx.tokenizer import Tokenizer, plain
from tinytx.transformer import LanguageModel
from tinytx_run.corpora import Corpus, Split, load_corpus
from tinytx_run.evaluate import LanguageModelScore
from tinytx_run.pairs import load_pairs
from tinytx_run.pretrain import pretrain
from tinytx_run.recipes import MUON, plan
from tinytx_run.training import describe, fingerprint

PROMPTS = ("Bonjour les", "Bonjour les amis,", "Ce livre est", "La jeune fille")
N_NEW = 30  # tokens that are generated
# By budget. With Muon and a rate that falls to nothing, few steps bring more than with the budget's AdamW.
RATES = {"smoke": 1e-2, "laptop": 1e-2, "study": 5e-3, "gpu": 2e-3}
MORE_STEPS = (1_000, 2_000)  # measured after the budget's own number of steps
SEARCHES: Mapping[str, Mapping[str, Any]] = {
    "greedy": {"top_k": 1},
    "drawn, seed 0": {"temperature": 0.8, "top_p": 0.9, "seed": 0},
    "drawn, seed 1": {"temperature": 0.8, "top_p": 0.9, "seed": 1},
    "drawn, seed 2": {"temperature": 0.8, "top_p": 0.9, "seed": 2},
}


def french_corpus(data_dir: str | os.PathLike[str] | None = None) -> Corpus:
    """French without labels: novels, sentences and readers' reviews; held out, novels of other authors.

    They are read from ``eltec-fra/``, ``tatoeba-en-fr/`` and ``reader-reviews-fr/`` below the folder, by
    default where ``tinytx data get`` leaves them.
    """
    novels = load_corpus("eltec-fra", data_dir)
    held_out = _distinct(novels.valid.texts)
    sources = (
        novels.train.texts,
        load_pairs("tatoeba-en-fr", data_dir).train.targets,
        load_corpus("reader-reviews-fr", data_dir).train.texts,
    )
    seen = set(held_out)
    train = [text for texts in sources for text in _distinct(texts) if text not in seen]
    return Corpus("french", Split(tuple(train)), Split(tuple(held_out)))


def _distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(filter(None, map(plain, texts))))


def completions(settings: Settings) -> pd.DataFrame:
    """Pretrain on real French, and let each model continue the prompts; see `table`.

    Models are trained for the budget's own number of steps, and for each of `MORE_STEPS`.
    """
    settings.report("reading novels, sentences and reviews")
    corpus = french_corpus(settings.data_dir)
    records = {}
    for seed, asked in product(range(settings.n_seeds), (None, *MORE_STEPS)):
        recipe = plan("text", "causal", settings.budget, seed=seed)
        n_steps = recipe.settings.n_steps if asked is None else asked
        changes = {**MUON, "lr": RATES[recipe.budget], **({} if asked is None else {"n_steps": asked})}
        origin = {
            "texts": fingerprint(corpus),
            "recipe": recipe.to_dict(),
            "changes": changes,
            "prompts": list(PROMPTS),
            "ways": {name: dict(how) for name, how in SEARCHES.items()},
        }
        key = f"{corpus.name}/{settings.budget}/{n_steps} steps/seed {seed}"
        records[key] = settings.cached(
            key, origin, partial(_measured, settings, corpus, seed, n_steps, changes)
        )
    return table(records)


def _measured(
    settings: Settings, corpus: Corpus, seed: int, n_steps: int, changes: Mapping[str, Any]
) -> Record:
    result = pretrain(
        corpus,
        budget=settings.budget,
        seed=seed,
        training_changes=changes,
        out=settings.work_dir / f"completions-{corpus.name}-{settings.budget}-{n_steps}-seed{seed}",
        options=settings.resumed,
    )
    model, tokenizer, score = result.model, result.tokenizer, result.evaluation.score
    assert isinstance(model, LanguageModel) and isinstance(score, LanguageModelScore)
    n_words = sum(len(text.split()) for text in corpus.train.texts)
    return {
        "model": describe(model, result.recipe.settings),
        "train": f"{len(corpus.train):,} texts, {n_words:,} words",
        "nats_per_token": score.nats_per_token,
        "bits_per_character": score.total_nats / math.log(2) / sum(map(len, corpus.valid.texts)),
        "completions": [_completed(model, tokenizer, *way) for way in product(PROMPTS, SEARCHES)],
        **{"budget": settings.budget, "seed": seed},
    }


def _completed(model: LanguageModel, tokenizer: Tokenizer, prompt: str, name: str) -> Record:
    text = generate(model, tokenizer, prompt, Sampling(max_new_tokens=N_NEW, **SEARCHES[name]))
    return {"prompt": prompt, "way": name, "text": str(text), "finished": text.finished}


def table(records: Records) -> pd.DataFrame:
    """Every completion, with the loss of its model."""
    rows = [
        {"nats_per_token": one["nats_per_token"], "model": key, **text}
        for key, one in records.items()
        for text in one["completions"]
    ]
    return pd.DataFrame(rows)
