"""What changed since 2017, one change at a time: each swapped into the block of the paper, and all together.

Every model has as many parameters as that of 2017, evened by the width of the feed-forward network, and reads
as many tokens in as many steps. Learning rates are tried with seed 0 on the valid split, the same ones for
every variant, and more where the best one is at an end of the grid; results are those of other seeds on the
test split, paired by seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial
from itertools import product
from typing import Any
from unittest.mock import patch

import pandas as pd
import torch
from tqdm.auto import tqdm

from experiments.harness import Conclusions, Record, Records, Settings, best_rates, mean_table
from tinytx import transformer
from tinytx.config import TransformerConfig
from tinytx.counting import count_parameters, parameter_table
from tinytx_run.corpora import Corpus, load_corpus
from tinytx_run.evaluate import Evaluation, evaluate
from tinytx_run.intervals import paired_interval
from tinytx_run.pretrain import pretrain, train_tokenizer
from tinytx_run.training import RunOptions, fingerprint

BASELINE = "2017"
#: The model of the paper in small. Its optimizer was Adam; all variants have AdamW or Muon with weight decay.
MODEL: Mapping[str, Any] = {
    **{"d_model": 64, "n_heads": 4, "n_layers": 2, "d_ff": 256, "norm": "last", "norm_kind": "layer"},
    **{"activation": "relu", "positions": "sinusoidal", "bias": True, "tie_embeddings": False},
}
SWAPS: Mapping[str, Mapping[str, Any]] = {
    "pre-norm": {"norm": "first"},
    "RMSNorm": {"norm_kind": "rms"},
    "SwiGLU": {"activation": "swiglu"},
    "rotary": {"positions": "rotary"},
    "grouped queries": {"n_kv_heads": 2},
    "tied embeddings": {"tie_embeddings": True},
    "no biases": {"bias": False},
    "Muon": {"optimizer": "muon"},
}
_ALL = {name: value for swap in SWAPS.values() for name, value in swap.items()}
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    BASELINE: {},
    **SWAPS,
    "all together": _ALL,
    "all but the tie": {**_ALL, "tie_embeddings": False},
}
#: What tied embeddings cost where they start smaller than untied ones, as which the package starts them.
STARTS: Mapping[str, Mapping[str, Any]] = {
    f"tied embeddings, start {start:g}": {**SWAPS["tied embeddings"], "tied_start": start}
    for start in (0.25, 0.5)
}
TRAINING: Mapping[str, Any] = {
    **{"optimizer": "adamw", "decay": "linear", "final_lr_fraction": 0.0},
    **{"tokens_per_batch": 2048, "precision": "fp32"},
}
VOCAB_SIZE, N_STEPS = 600, 300
LEARNING_RATES = (5e-3, 1e-2, 2e-2, 4e-2)
N_BEYOND = 2  # rates that may be tried beyond an end of the grid, each half or twice the last


def since_2017(settings: Settings) -> pd.DataFrame:
    """Train the model of 2017, each swap alone and all together, on one core of the processor; see `table`.

    Results are those of seeds from 1 on. The recipe is the experiment's own, whatever the budget.
    """
    torch.set_num_threads(1)
    n_steps, corpus = settings.longer * N_STEPS, load_corpus("world")
    vocab_size = train_tokenizer(corpus.train.texts, VOCAB_SIZE, exact=False, kind="world").vocab_size
    variants = {**VARIANTS, **STARTS}
    recipes = {name: recipe_of(changes, vocab_size) for name, changes in variants.items()}

    def run(key: str, name: str, lr: float, seed: int, split: str) -> Record:
        model, training = recipes[name]
        changes = {"model_changes": model, "training_changes": {**training, "lr": lr, "n_steps": n_steps}}
        asked = {"texts": fingerprint(corpus), "vocab_size": vocab_size, "seed": seed, **changes}
        start = variants[name].get("tied_start")
        if model["tie_embeddings"]:
            config = TransformerConfig(vocab_size=vocab_size, **model)
            asked["tied_start"] = start or transformer.tied_std(config)
        facts = {"measure": split, "variant": name, "seed": seed, "lr": lr, "d_ff": model["d_ff"]}
        measure = partial(_measured, corpus, split, start, vocab_size=vocab_size, seed=seed, **changes)
        return settings.cached(f"{name}/{key}", asked, lambda: {**facts, **measure()})

    def tune(name: str, lr: float) -> float:
        return run(f"tuning/lr {lr:g}", name, lr, 0, "valid")["above"]

    best = best_rates(tune, variants, LEARNING_RATES, N_BEYOND)
    cells = list(product(settings.seeds(1), variants))
    for seed, name in tqdm(cells, desc="results", disable=None):
        run(f"result/seed {seed}", name, best[name], seed, "test")
    return table(settings.store.data)


def recipe_of(changes: Mapping[str, Any], vocab_size: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments of the model and of its training, with as many parameters as the model of 2017.

    Examples
    --------
    >>> recipe_of({"activation": "swiglu"}, vocab_size=600)[0]["d_ff"]
    170
    """
    own = {name: value for name, value in changes.items() if name not in ("optimizer", "tied_start")}
    model = {**MODEL, **own}
    training = {**TRAINING, **{name: value for name, value in changes.items() if name == "optimizer"}}
    due, narrow, wide = (
        parameter_table(TransformerConfig(vocab_size=vocab_size, **settings)).total
        for settings in (MODEL, {**model, "d_ff": 1}, {**model, "d_ff": 2})
    )
    return {**model, "d_ff": 1 + round((due - narrow) / (wide - narrow))}, training


def _measured(corpus: Corpus, split: str, start: float | None, **how: Any) -> Record:
    """Nats per token above the entropy bound of a model trained as `pretrain` is asked to."""
    options = RunOptions(device="cpu", progress=False, report=lambda line: None)
    other_start = patch.object(transformer, "tied_std", lambda config: start) if start else nullcontext()
    with other_start:
        result = pretrain(corpus, budget="laptop", options=options, **how)
    found = evaluate(result.model, corpus, tokenizer=result.tokenizer, split=split, device="cpu")
    assert isinstance(found, Evaluation)
    n_params = count_parameters(result.model)
    return {"n_params": n_params, "above": found.gap, "bound": found.entropy_bound}


def conclusions(records: Records) -> Conclusions:
    """Sentences of lesson 14, and whether these records bear them out, all comparisons at once."""
    rows = table(records).set_index("variant")
    gain, lowest, highest = (rows[name] for name in ("minus 2017", "widest low", "widest high"))
    both, alone, same = gain["all together"], gain["rotary"], ["RMSNorm", "grouped queries", "no biases"]
    open_ones = (lowest < 0) & (highest > 0)
    return {
        "all together is ahead of the model of 2017": highest["all together"] < 0,
        "of the swaps rotary positions bring most": gain[list(SWAPS)].idxmin() == "rotary",
        "all together brings at most a fifth more than rotary positions alone": both > 1.2 * alone,
        "Muon and SwiGLU are ahead too": (highest[["Muon", "SwiGLU"]] < 0).all(),
        "RMSNorm, grouped queries and no biases change nothing that can be seen": open_ones[same].all(),
    }


def table(records: Records) -> pd.DataFrame:
    """Nats per token above the entropy bound of each variant, and its difference from the model of 2017.

    Returns
    -------
    DataFrame
        As of `mean_table` with the baseline "2017"; ``widest low`` and ``widest high`` are the ends of the
        difference when the intervals of all comparisons shall hold together (Bonferroni). Then the learning
        rate, the feed-forward width and the number of parameters.
    """
    data = pd.DataFrame([one for one in records.values() if one["measure"] == "test"])
    above = data.pivot(index="seed", columns="variant", values="above")
    facts = data.groupby("variant")[["lr", "d_ff", "n_params"]].first()
    found = mean_table(data, "above", by=(), variant="variant", baselines=(BASELINE,))
    for row, name in enumerate(found["variant"]):
        differences = (above[name] - above[BASELINE]).dropna()
        if name != BASELINE and len(differences) > 1:
            widest = paired_interval(differences, n_comparisons=len(VARIANTS) - 1)
            found.loc[row, ["widest low", "widest high"]] = widest.low, widest.high
    return found.join(facts, on="variant")
