"""Recipes: every number of a training run, from tables of budgets."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tinytx.config import TransformerConfig
from tinytx.masking import Masking
from tinytx.settings import TrainingSettings, require
from tinytx_run.corpora import Corpus

BUDGETS = ("smoke", "laptop", "study", "gpu")
KINDS = ("world", "reviews", "text")
PAIR_KINDS = ("world", "tatoeba", "multi30k", "pairs")
OBJECTIVES = ("causal", "masked", "masked+nsp", "hybrid", "translation")
FF_FACTOR = 4
WARMUP_SHARE = 0.1
LABEL_SMOOTHING = 0.1
HYBRID_CAUSAL_SHARE = 0.5
# How Muon is used: its learning rate falls to zero.
MUON: Mapping[str, Any] = {"optimizer": "muon", "decay": "linear", "final_lr_fraction": 0.0}
# What brings a model of the world nearer to the entropy bound: see results/world-minute.json.
WORLD_MODEL: Mapping[str, Any] = {"positions": "alibi", "activation": "relu", "bias": False}
# By ALiBi a model that reads both ways cannot tell left from right, see `alibi_bias`.
WORLD_MODEL_BOTH_WAYS: Mapping[str, Any] = {**WORLD_MODEL, "positions": "rotary"}


@dataclass(frozen=True)
class Recipe:
    """All numbers of a training run."""

    budget: str
    vocab_size: int
    config: TransformerConfig
    settings: TrainingSettings
    masking: Masking | None = None  # of a masked language model, or a hybrid one
    label_smoothing: float | None = None  # of a translator: what targets spread over the whole vocabulary
    n_epochs: int | None = None  # of fine-tuning

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON can hold them; those that are None are left out."""
        own = {"config": self.config.to_dict(), "settings": self.settings.to_dict()}
        return {
            name: value for name, value in {**dataclasses.asdict(self), **own}.items() if value is not None
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Recipe:
        """The recipe that `to_dict` wrote."""
        parts: dict[str, Any] = {
            "config": TransformerConfig.from_dict(fields["config"]),
            "settings": TrainingSettings(**fields["settings"]),
            "masking": Masking(**fields["masking"]) if "masking" in fields else None,
        }
        return cls(**{**fields, **parts})

    def replace(self, **changes: Any) -> Recipe:
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)


@dataclass(frozen=True)
class _Row:
    """One row of a table: the model (a translator has as many layers in either half) and its training."""

    vocab_size: int
    d_model: int
    n_layers: int
    n_heads: int
    max_len: int
    n_steps: int
    tokens_per_batch: int  # of pairs: both sides together
    lr: float
    dropout: float = 0.0


@dataclass(frozen=True)
class FinetuneRecipe:
    """All numbers of a fine-tuning run but the number of steps, which follows from the data."""

    budget: str
    n_epochs: int
    tokens_per_batch: int
    lr: float
    dropout: float


# fmt: off
_PRETRAINING = {
    #                           vocab  width lay. heads len  steps tokens    rate  dropout
    ("world", "smoke"):    _Row( 600,  32,  1,  2, 128,    30,  1024, 3e-3),
    ("world", "laptop"):   _Row(2000, 128,  2,  8, 128,  1000,  2048, 1.2e-2),
    ("world", "study"):    _Row(2000, 128,  2,  8, 128,  4500,  2048, 1.2e-2),
    ("world", "gpu"):      _Row(2000, 256,  4, 16, 128,  2000, 65536, 4e-3),
    ("reviews", "smoke"):  _Row( 600,  32,  1,  2, 128,    20,  1024, 3e-3),
    ("reviews", "laptop"): _Row(4000, 128,  2,  4, 256,   300,  4096, 2e-3, 0.1),
    ("reviews", "study"):  _Row(4000, 192,  3,  6, 256,  1200,  4096, 1.5e-3, 0.1),
    ("reviews", "gpu"):    _Row(8000, 384,  6,  6, 512,  4000, 16384, 6e-4, 0.2),
    ("text", "smoke"):     _Row( 600,  32,  1,  2, 128,    20,  1024, 3e-3),
    ("text", "laptop"):    _Row(4000, 128,  2,  4, 256,   500,  4096, 2e-3),
    ("text", "study"):     _Row(8000, 256,  4,  8, 256,  3000,  4096, 1e-3),
    ("text", "gpu"):       _Row(8000, 512,  8,  8, 512, 20000, 32768, 5e-4, 0.1),
}
# A masked model is trained with Muon, at these rates: AdamW leaves it long where it only counts words.
_MASKED_LR = {"smoke": 1e-2, "laptop": 5e-3, "study": 4e-3, "gpu": 2e-3}
_TRANSLATION = {
    ("world", "smoke"):     _Row( 800,  32, 1, 2,  64,    30,  1024, 1e-2),
    ("world", "laptop"):    _Row(1500, 128, 2, 4,  64,   400,  2000, 5e-3),
    ("world", "study"):     _Row(1500, 192, 3, 4,  64,  1500,  3000, 4e-3, 0.1),
    ("world", "gpu"):       _Row(1500, 256, 3, 4,  64,  3000, 16000, 3e-3, 0.1),
    ("tatoeba", "smoke"):   _Row( 800,  32, 1, 2,  64,    20,  2000, 1e-2),
    ("tatoeba", "laptop"):  _Row(4000, 128, 2, 4,  80,   400,  3000, 6e-3),
    ("tatoeba", "study"):   _Row(4000, 256, 3, 4,  80,  1800,  4000, 5e-3, 0.1),
    ("tatoeba", "gpu"):     _Row(8000, 512, 6, 8, 128, 15000, 24000, 2e-3, 0.2),
    ("multi30k", "smoke"):  _Row( 800,  32, 1, 2,  64,    20,  2000, 1e-2),
    ("multi30k", "laptop"): _Row(4000, 128, 2, 4,  80,   400,  3000, 6e-3, 0.1),
    ("multi30k", "study"):  _Row(4000, 256, 3, 4,  80,  1800,  4000, 5e-3, 0.25),
    ("multi30k", "gpu"):    _Row(6000, 256, 4, 4, 128,  6000, 16000, 3e-3, 0.35),
    ("pairs", "smoke"):     _Row( 800,  32, 1, 2,  64,    20,  2000, 1e-2),
    ("pairs", "laptop"):    _Row(4000, 128, 2, 4,  80,   400,  3000, 6e-3, 0.1),
    ("pairs", "study"):     _Row(4000, 256, 3, 4,  80,  1800,  4000, 5e-3, 0.15),
    ("pairs", "gpu"):       _Row(8000, 512, 6, 8, 128, 15000, 24000, 2e-3, 0.2),
}
_FINETUNING = {
    #                     epochs tokens rate dropout
    ("world", "smoke"):    (2,  1024, 1e-3, 0.1),
    ("world", "laptop"):   (15,  512, 1e-3, 0.1),
    ("world", "study"):    (15,  512, 1e-3, 0.1),
    ("world", "gpu"):      (6, 16384, 2e-3, 0.1),
    ("reviews", "smoke"):  (1,  8192, 1e-3, 0.1),
    ("reviews", "laptop"): (6,  4096, 5e-4, 0.2),
    ("reviews", "study"):  (15, 4096, 5e-4, 0.2),
    ("reviews", "gpu"):    (15, 8192, 3e-4, 0.2),
}
# fmt: on


def plan(kind: str, objective: str = "causal", budget: str | float | None = None, *, seed: int = 0) -> Recipe:
    """The recipe for training on a kind of corpus with a budget.

    Parameters
    ----------
    kind : str
        See `corpus_kind` and, for translation, `pair_kind`.
    objective : {"causal", "masked", "masked+nsp", "hybrid", "translation"}
        All but "causal" tie the output layer to the embeddings. They train with Muon, as does the world.
    budget : str or float, optional
        For a number of seconds the number of steps is a placeholder, until steps have been timed.
    seed : int
    """
    require(objective in OBJECTIVES, f"objective must be one of {', '.join(OBJECTIVES)}", repr(objective))
    kinds, table = (PAIR_KINDS, _TRANSLATION) if objective == "translation" else (KINDS, _PRETRAINING)
    require(kind in kinds, f"kind of corpus must be one of {', '.join(kinds)}", repr(kind))
    budget = named_budget(budget)
    row, masked, paired = table[kind, budget], objective.startswith("masked"), objective == "masked+nsp"
    masks = masked or objective == "hybrid"
    causal_share = HYBRID_CAUSAL_SHARE if objective == "hybrid" else 0.0
    of_world = WORLD_MODEL_BOTH_WAYS if masks else WORLD_MODEL
    config = TransformerConfig(
        vocab_size=row.vocab_size,
        d_model=row.d_model,
        n_heads=row.n_heads,
        n_layers=row.n_layers,
        d_ff=FF_FACTOR * row.d_model,
        max_len=row.max_len,
        dropout=row.dropout,
        causal=not masked,
        tie_embeddings=objective != "causal",
        n_segments=2 if paired else 0,
        **(of_world if kind == "world" and objective != "translation" else {}),
    )
    settings = TrainingSettings(
        n_steps=1,
        lr=_MASKED_LR[budget] if masks else row.lr,
        tokens_per_batch=row.tokens_per_batch,
        seed=seed,
        **({} if objective == "causal" and kind != "world" else MUON),
    )
    return Recipe(
        budget,
        row.vocab_size,
        config,
        resize(settings, row.n_steps),
        masking=Masking(next_sentence=paired, causal_share=causal_share) if masks else None,
        label_smoothing=LABEL_SMOOTHING if objective == "translation" else None,
    )


def plan_finetuning(kind: str, budget: str | float | None = None) -> FinetuneRecipe:
    """The recipe for fine-tuning on a kind of labelled corpus with a budget."""
    name = named_budget(budget)
    if (kind, name) not in _FINETUNING:
        got = f"one of kind {kind!r}: label_column names the column of labels"
        raise ValueError(f"fine-tuning needs a corpus with labels, got {got}")
    return FinetuneRecipe(name, *_FINETUNING[kind, name])


def resize(settings: TrainingSettings, n_steps: int) -> TrainingSettings:
    """The same settings for another number of steps: warm-up and intervals keep their share."""
    return settings.replace(
        n_steps=n_steps,
        warmup_steps=int(WARMUP_SHARE * n_steps),
        checkpoint_every=max(10, n_steps // 10),
        log_every=max(1, min(50, n_steps // 50)),
    )


def default_budget() -> str:
    """The budget of the environment variable ``TINYTX_BUDGET``, "laptop" where it is not set."""
    return os.environ.get("TINYTX_BUDGET") or "laptop"


def parse_budget(budget: str | float | None) -> str | float:
    """A budget's name, or a positive number of seconds; None means `default_budget`.

    Examples
    --------
    >>> parse_budget("smoke"), parse_budget("90"), parse_budget(2.5)
    ('smoke', 90.0, 2.5)
    """
    budget = default_budget() if budget is None else budget
    if budget in BUDGETS:
        return budget
    with contextlib.suppress(ValueError, TypeError):
        if 0 < float(budget) < math.inf and budget is not True:
            return float(budget)
    raise ValueError(
        f"budget must be one of {', '.join(BUDGETS)}, or a positive number of seconds, got {budget!r}"
    )


def named_budget(budget: str | float | None) -> str:
    """The budget whose model suits a number of seconds; a name stays as it is."""
    budget = parse_budget(budget)
    if isinstance(budget, str):
        return budget
    if budget < 10:
        return "smoke"
    return "laptop" if budget < 300 else "study"


def corpus_kind(corpus: Corpus) -> str:
    """What decides the numbers of a run: "world", "reviews" (any labelled texts) or "text"."""
    if corpus.name == "world":
        return "world"
    return "reviews" if corpus.train.labels is not None else "text"


def pair_kind(corpus_name: str) -> str:
    """What decides the numbers of a translator's training: one of `PAIR_KINDS`."""
    kind = corpus_name.removesuffix("-en-fr")
    return kind if kind in PAIR_KINDS else "pairs"
