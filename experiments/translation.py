"""Translators measured: greedy and beam search on the held-out split, and one broken on purpose.

`broken_translation` takes a model whose output was "suis suis . . . suis": post-norm, no warm-up, a learning
rate that is too high, no dropout. It repairs one ingredient at a time, and breaks one at a time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import pandas as pd

from experiments.harness import Record, Records, Settings, digest_of
from tinytx.beam import Search
from tinytx.history import DivergenceError
from tinytx.translate import translate
from tinytx_course.labs.lesson_11 import DIAGNOSES, alignment_mass
from tinytx_run.bleu import evaluate_translator
from tinytx_run.pairs import LAB_SENTENCES, PairCorpus, Pairs, load_pairs
from tinytx_run.pretrain import train_translator
from tinytx_run.recipes import pair_kind, plan
from tinytx_run.runs import find_run
from tinytx_run.training import RunOptions, TrainingResult, fingerprint
from tinyworld.world import World

SEARCHES = {"greedy": Search(), "beam of 4": Search(beam_size=4)}
N_ALIGNED, ALIGNMENT_SEED = 300, 23_000  # sentences of the world whose attention is measured

SOUND = {"norm": "first", "warm-up": True, "rate": 2e-3, "dropout": 0.1}
BROKEN = {"norm": "last", "warm-up": False, "rate": 2e-2, "dropout": 0.0}
N_EVALUATED, N_EXAMPLES = 300, 5  # held-out pairs
WARMUP_SHARE = 0.1
STEPS_FACTOR = 3  # times the steps of the budget's recipe: AdamW needs more of them than Muon


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
    is_new = find_run(folder, resume=True) is None
    begin = time.perf_counter()
    result = train_translator(
        data,
        budget=settings.budget,
        seed=seed,
        out=folder,
        search=None,
        options=RunOptions(resume=True, device=settings.device, report=settings.report),
    )
    seconds = time.perf_counter() - begin if is_new else None
    model, tokenizer = result.model, result.tokenizer
    record = {
        **{"seed": seed, "seconds": seconds},
        "n_pairs": len(data.train),
        "n_removed": data.n_removed,
        **{key: value for key, value in result.to_dict().items() if key != "path"},
        "recipe": result.recipe.to_dict(),
        "history": {"step": result.history.step, "loss": result.history.loss},
        "scores": {
            name: evaluate_translator(model, tokenizer, data, search=search).to_dict()
            for name, search in SEARCHES.items()
        },
        "sentences": {} if data.name == "world" else _translations(result, LAB_SENTENCES, SEARCHES),
    }
    if data.name == "world":
        pairs = World().sentence_pairs(N_ALIGNED, seed=ALIGNMENT_SEED)
        found = alignment_mass(model, tokenizer, pairs)
        record["alignment"] = {"mass": found.mass.tolist(), "uniform": found.uniform, "n": found.n_tokens}
    return record


def _translations(
    result: TrainingResult, texts: Sequence[str], searches: Mapping[str, Search]
) -> dict[str, dict[str, str]]:
    """Text -> name of the search -> translation."""
    model, tokenizer = result.model, result.tokenizer
    found = {name: translate(model, tokenizer, texts, search=search) for name, search in searches.items()}
    return {text: {name: found[name][i].text for name in searches} for i, text in enumerate(texts)}


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


def variants() -> dict[str, dict[str, Any]]:
    """The ingredients of each broken translator: all broken, each repair alone, all sound, each fault alone.

    Examples
    --------
    >>> list(variants())[:3]
    ['all four faults', 'repaired: norm', 'repaired: warm-up']
    """
    found: dict[str, dict[str, Any]] = {"all four faults": dict(BROKEN)}
    found |= {f"repaired: {name}": {**BROKEN, name: SOUND[name]} for name in SOUND}
    found["sound"] = dict(SOUND)
    return found | {f"only fault: {name}": {**SOUND, name: BROKEN[name]} for name in SOUND}


def broken_translation(
    settings: Settings,
    corpus: str | os.PathLike[str] | PairCorpus = "world",
    names: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Train variants, by default all, with each seed, by AdamW and otherwise the recipe of the budget.

    For the result see `broken_table`.
    """
    names = list(variants()) if names is None else names
    if unknown := set(names) - set(variants()):
        raise ValueError(f"variant must be one of {', '.join(variants())}, got {', '.join(unknown)}")
    data = corpus if isinstance(corpus, PairCorpus) else load_pairs(corpus, settings.data_dir)
    records = settings.measured(
        "broken translation",
        product(range(settings.n_seeds), names),
        lambda seed, name: f"{data.name}/{settings.budget}/seed {seed}/{name}",
        lambda seed, name: {
            **_asked(settings, data, seed),
            "ingredients": variants()[name],
            "n_times": STEPS_FACTOR,
        },
        partial(_broken, settings, data),
    )
    return broken_table(records)


def _broken(settings: Settings, data: PairCorpus, seed: int, name: str) -> Record:
    ingredients = variants()[name]
    recipe = plan(pair_kind(data.name), "translation", settings.budget, seed=seed)
    n_steps = STEPS_FACTOR * recipe.settings.n_steps
    record: Record = {"seed": seed, "name": name}
    try:
        result = train_translator(
            data,
            budget=settings.budget,
            seed=seed,
            model_changes={"norm": ingredients["norm"], "dropout": ingredients["dropout"]},
            training_changes={
                "n_steps": n_steps,
                "lr": ingredients["rate"],
                "warmup_steps": int(WARMUP_SHARE * n_steps) if ingredients["warm-up"] else 0,
                "optimizer": "adamw",
            },
            search=None,
            options=RunOptions(device=settings.device, progress=False, report=settings.report),
        )
    except DivergenceError as stop:
        settings.report(f"{name}: {stop}")
        return record | {"step": [], "loss": [], "bleu": None, "nats_per_token": None, "shown": []}
    held_out = Pairs(data.valid.sources[:N_EVALUATED], data.valid.targets[:N_EVALUATED])
    few = PairCorpus(data.name, data.train, held_out)
    score = evaluate_translator(result.model, result.tokenizer, few, split="valid")
    sources = held_out.sources[:N_EXAMPLES]
    found = _translations(result, sources, DIAGNOSES)
    examples = zip(sources, held_out.targets, strict=False)
    shown = [{"source": one, "reference": target, **found[one]} for one, target in examples]
    return record | {
        "step": result.history.step,
        "loss": result.history.loss,
        "bleu": score.score.bleu,
        "nats_per_token": score.nats_per_token,
        "shown": shown,
    }


def broken_table(records: Records) -> pd.DataFrame:
    """Last training loss and BLEU of each variant; missing where training diverged."""
    rows = [(one["name"], one["seed"], (one["loss"] or [None])[-1], one["bleu"]) for one in records.values()]
    return pd.DataFrame(rows, columns=["variant", "seed", "loss", "bleu"])
