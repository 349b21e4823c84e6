"""Fine-tuning on reviews of their true lengths, beside loops that pad every batch to one length."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch

from tinytx.bench.ceiling import Ceiling
from tinytx.bench.in_turn import take_turns
from tinytx.bench.padded import (
    ReviewsCase,
    bert_padded,
    bert_padded_to_its_batch,
    our_contestant,
    same_model_padded,
)
from tinytx.bench.report import OURS, Record, compare
from tinytx.bench.settings import BenchSettings
from tinytx.bench.texts import reviews, tokenizer_for
from tinytx.bench.workers import Contestant, workers
from tinytx.model import TransformerConfig
from tinytx.model.interop import BERT
from tinytx.training.evaluation import classifier_inputs
from tinytx.training.settings import choose_precision


def measure(settings: BenchSettings, ceiling: Ceiling) -> Iterator[tuple[str, Record]]:
    """Time an update on each text of a sample, on average over the sample."""
    corpus = reviews(settings)
    case, n_cut = _case(settings)
    key = f"{corpus.name}, {len(case.rows)} reviews, up to {case.config.max_len} ids"
    with workers(4) as (ours, same, own, theirs):
        builders: list[tuple[Any, Callable[[ReviewsCase], dict[str, Contestant]]]] = [
            (ours, our_contestant),
            (same, same_model_padded),
            (own, bert_padded_to_its_batch),
            (theirs, bert_padded),
        ]
        tasks, details, left_out = {}, {}, {}
        for worker, make in builders:
            try:
                built = worker.build(partial(make, case))
            except ImportError as missing:
                left_out["transformers BERT"] = str(missing)
                continue
            details.update(built)
            tasks.update({name: worker.task(name) for name in built})
        turns = take_turns(
            tasks,
            n_rounds=settings.n_rounds,
            device=settings.device,
            label=key,
            progress=settings.progress,
        ).per({name: about["n_texts"] for name, about in details.items()})
    groups: dict[str, list[str]] = {}
    for name, about in details.items():
        about["texts_per_second"] = 1 / turns.wall[name].median
        if name != OURS:
            groups.setdefault(about["group"], []).append(name)
    yield (
        key,
        {
            "kind": "reviews",
            "config": case.config.to_dict(),
            "corpus": corpus.name,
            "n_texts": len(case.rows),
            "n_cut": n_cut,
            "mean_length": float(np.mean(case.lengths)),
            "precision": case.precision,
            "threads": torch.get_num_threads(),
            "n_rounds": settings.n_rounds,
            "left_out": left_out,
            **compare(turns, details=details, groups=groups),
        },
    )


def _case(settings: BenchSettings) -> tuple[ReviewsCase, int]:
    """A sample of labelled reviews with the lengths they have, as both models read them."""
    corpus = reviews(settings)
    n_texts, max_len = 256, 512
    sizes: dict[str, Any] = {"d_model": 200, "n_heads": 2, "n_layers": 4, "d_ff": 200}
    if settings.tiny:
        n_texts, max_len = 8, 24
        sizes = {"d_model": 8, "n_heads": 2, "n_layers": 1, "d_ff": 8}
    tokenizer = tokenizer_for(corpus, 600 if settings.tiny else 8_000)
    chosen = np.random.default_rng(0).permutation(len(corpus.train))[:n_texts]
    texts = [corpus.train.texts[i] for i in chosen]
    rows, n_cut = classifier_inputs(tokenizer, texts, max_len, causal=False)
    config = TransformerConfig(
        vocab_size=tokenizer.vocab_size, max_len=max_len, dropout=0.1, n_segments=2, **sizes, **BERT
    )
    labels = tuple((corpus.train.labels or ())[i] for i in chosen)
    precision = choose_precision("auto", settings.device)
    return ReviewsCase(config, tuple(map(tuple, rows)), labels, precision, settings.device), n_cut
