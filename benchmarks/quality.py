"""Whether speed costs quality: the same training in float32 and in the precision that pays, several seeds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from benchmarks.report import Record
from benchmarks.settings import BenchSettings
from tinytx.loop import train
from tinytx.settings import choose_precision
from tinytx_run.corpora import load_corpus
from tinytx_run.evaluate import evaluate_language_model
from tinytx_run.intervals import paired_interval
from tinytx_run.pretrain import causal_objective, new_language_model, train_tokenizer
from tinytx_run.recipes import plan, resize


def measure(settings: BenchSettings, ceiling: Record) -> Iterator[tuple[str, Record]]:
    """Train a model of the world, seed by seed, both ways; compare how well each predicts held-out text."""
    budget, n_steps, n_seeds = ("smoke", 2, 2) if settings.tiny else ("laptop", 400, 3)
    n_train, n_valid = (50, 20) if settings.tiny else (30_000, 1_000)
    precision = choose_precision("auto", settings.device)
    corpus = load_corpus("world")
    recipe = plan("world", "causal", budget)
    texts, valid = corpus.train.texts[:n_train], corpus.valid.texts[:n_valid]
    tokenizer = train_tokenizer(texts, recipe.vocab_size, exact=False, kind="world")
    config = recipe.config.replace(vocab_size=tokenizer.vocab_size)
    objective = causal_objective(tokenizer, texts, config.max_len)
    nats: dict[str, list[float]] = {name: [] for name in dict.fromkeys(("fp32", precision))}
    for seed in range(n_seeds):
        for name, found in nats.items():
            model = new_language_model(config, seed).to(settings.device)
            how = resize(recipe.settings.replace(seed=seed, precision=name), n_steps)
            train(model, objective, how, label=f"{name}, seed {seed}")
            found.append(evaluate_language_model(model, tokenizer, valid).nats_per_token)
    record: Record = {
        "kind": "quality",
        "config": config.to_dict(),
        "corpus": corpus.name,
        "precision": precision,
        "threads": torch.get_num_threads(),
        "n_steps": n_steps,
        "seeds": list(range(n_seeds)),
        "nats_per_token": nats,
    }
    if len(nats) > 1:
        interval = paired_interval(np.subtract(nats[precision], nats["fp32"]))
        record["worse_by"] = {"mean": interval.mean, "low": interval.low, "high": interval.high}
    yield f"world, {n_steps} steps, {n_seeds} seeds", record
