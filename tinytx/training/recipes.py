"""Recipes: how much each budget spends on pretraining, fine-tuning and translation."""

from __future__ import annotations

import itertools
import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from tinytx.model.config import TransformerConfig
from tinytx.model.transformer import Classifier
from tinytx.text.corpora import Corpus, Split, label_subset
from tinytx.text.tokenizer import Tokenizer
from tinytx.training.distributed import Processes
from tinytx.training.evaluate import ClassifierScore, classifier_inputs, count_correct
from tinytx.training.loop import OnStep, train
from tinytx.training.objectives import ClassificationObjective, Masking, Objective
from tinytx.training.settings import Layout, TrainingSettings
from tinytx.training.timing import wait_for


def objective_of(
    tokenizer: Tokenizer, split: Split, config: TransformerConfig
) -> tuple[ClassificationObjective, int]:
    """The task of naming the classes of a split, and how many of its texts were cut to what fits."""
    sequences, n_cut = classifier_inputs(tokenizer, split.texts, config.max_len, causal=config.causal)
    return ClassificationObjective(sequences, split.labels or (), pad_id=tokenizer.pad_id), n_cut


def epoch_ends(learning: ClassificationObjective, settings: TrainingSettings, n_epochs: int) -> list[int]:
    """The step that ends each epoch."""
    sizes = [
        len(
            learning.epoch_batches(
                seed=settings.seed, epoch=epoch, tokens_per_batch=settings.tokens_per_batch
            )
        )
        for epoch in range(n_epochs)
    ]
    return list(itertools.accumulate(sizes))


def n_steps_of(learning: ClassificationObjective, settings: TrainingSettings, n_epochs: int) -> int:
    """The steps of all epochs together."""
    return epoch_ends(learning, settings, n_epochs)[-1]


class EpochScoring:
    """Scores on one split: after each epoch of some texts, of every class alike; at the end of all of them.

    Parameters
    ----------
    tokenizer : Tokenizer
    split : Split
    config : TransformerConfig
    n_scored : int, optional
        How many are scored after an epoch; by default all.
    """

    def __init__(
        self, tokenizer: Tokenizer, split: Split, config: TransformerConfig, n_scored: int | None
    ) -> None:
        self._whole, self._n_cut = objective_of(tokenizer, split, config)
        self._n = len(split)
        all_of_them = n_scored is None or n_scored >= len(split)
        # Corpora are often sorted by class: the first texts would be of one.
        some = split if all_of_them else label_subset(split, n_scored or 0, seed=0)
        self._n_some = len(some)
        self._some = self._whole if all_of_them else objective_of(tokenizer, some, config)[0]

    def after(self, epoch_ends: list[int]) -> OnStep:
        """A callback that scores the model at the end of each epoch."""

        def on_step(step: int, model: nn.Module) -> dict[str, Any] | None:
            if step not in epoch_ends or not isinstance(model, Classifier):
                return None
            correct = count_correct(model, self._some)
            return {
                "epoch": 1 + epoch_ends.index(step),
                "accuracy": correct / self._n_some,
                "n": self._n_some,
            }

        return on_step

    def score(self, model: Classifier) -> ClassifierScore:
        """The score on the whole split."""
        return ClassifierScore(count_correct(model, self._whole), self._n, self._n_cut)


BUDGETS = ("smoke", "laptop", "study", "gpu")
KINDS = ("world", "reviews", "text")
OBJECTIVES = ("causal", "masked", "masked+nsp")


@dataclass(frozen=True)
class _Pretraining:
    """One row of the table: the model, its vocabulary, and how it is trained."""

    vocab_size: int
    d_model: int
    n_layers: int
    n_heads: int
    max_len: int
    n_steps: int
    tokens_per_batch: int
    lr: float
    dropout: float = 0.0


@dataclass(frozen=True)
class _Finetuning:
    """One row of the table: passes over the labelled texts, and how they are made."""

    n_epochs: int
    tokens_per_batch: int
    lr: float
    dropout: float


# fmt: off
_PRETRAINING = {
    #                             pieces  width layers heads length  steps  tokens    rate  dropout
    ("world", "smoke"):   _Pretraining(600,  32,  1,  2, 128,     30,  1024, 3e-3),
    ("world", "laptop"):  _Pretraining(1000, 128, 2, 4, 128,    1500,  2048, 8e-3),
    ("world", "study"):   _Pretraining(1000, 192, 3, 6, 128,   5000,  4096, 4e-3),
    ("world", "gpu"):     _Pretraining(1000, 256, 4, 8, 128,   8000, 16384, 2e-3, 0.1),
    ("reviews", "smoke"):  _Pretraining(600,  32, 1,  2, 128,     20,  1024, 3e-3),
    ("reviews", "laptop"): _Pretraining(4000, 128, 2, 4, 256,    300,  4096, 2e-3, 0.1),
    ("reviews", "study"):  _Pretraining(4000, 192, 3, 6, 256,   1200,  4096, 1.5e-3, 0.1),
    ("reviews", "gpu"):    _Pretraining(8000, 384, 6, 6, 512,   4000, 16384, 6e-4, 0.2),
    ("text", "smoke"):    _Pretraining(600,  32,  1,  2, 128,     20,  1024, 3e-3),
    ("text", "laptop"):   _Pretraining(4000, 128, 2,  4, 256,    500,  4096, 2e-3),
    ("text", "study"):    _Pretraining(8000, 256, 4,  8, 256,   3000,  4096, 1e-3),
    ("text", "gpu"):      _Pretraining(8000, 512, 8,  8, 512,  20000, 32768, 5e-4, 0.1),
}
_FINETUNING = {
    #                             epochs  tokens  rate  dropout
    ("world", "smoke"):    _Finetuning(2,  1024, 1e-3, 0.1),
    ("world", "laptop"):   _Finetuning(15, 512, 1e-3, 0.1),
    ("world", "study"):    _Finetuning(15, 512, 1e-3, 0.1),
    ("world", "gpu"):      _Finetuning(15, 512, 1e-3, 0.1),
    ("reviews", "smoke"):  _Finetuning(1,  8192, 1e-3, 0.1),
    ("reviews", "laptop"): _Finetuning(6,  4096, 5e-4, 0.2),
    ("reviews", "study"):  _Finetuning(15, 4096, 5e-4, 0.2),
    ("reviews", "gpu"):    _Finetuning(15, 8192, 3e-4, 0.2),
}
# A masked model is trained with Muon, at these rates: with AdamW it stays long where it only counts words.
_MASKED_LR = {"smoke": 1e-2, "laptop": 5e-3, "study": 4e-3, "gpu": 2e-3}
# fmt: on
FF_FACTOR = 4
WARMUP_SHARE = 0.1
# How Muon is used: its rate falls to nothing.
MUON: Mapping[str, Any] = {"optimizer": "muon", "decay": "linear", "final_lr_fraction": 0.0}


@dataclass(frozen=True)
class Recipe:
    """All numbers of a pretraining run: model, size of the vocabulary, training settings.

    Attributes
    ----------
    budget : str
    vocab_size : int
    config : TransformerConfig
    settings : TrainingSettings
    masking : Masking or None
        None for a model that does not fill blanks.
    """

    budget: str
    vocab_size: int
    config: TransformerConfig
    settings: TrainingSettings
    masking: Masking | None = field(default=None, kw_only=True)

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON can hold them."""
        return {
            "budget": self.budget,
            "vocab_size": self.vocab_size,
            "config": self.config.to_dict(),
            "settings": self.settings.to_dict(),
            **({} if self.masking is None else {"masking": self.masking.to_dict()}),
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Recipe:
        """The recipe that `to_dict` wrote."""
        return cls(
            fields["budget"],
            fields["vocab_size"],
            TransformerConfig.from_dict(fields["config"]),
            TrainingSettings.from_dict(fields["settings"]),
            masking=Masking(**fields["masking"]) if "masking" in fields else None,
        )


@dataclass(frozen=True)
class FinetuneRecipe:
    """All numbers of a fine-tuning run but the number of steps, which follows from the data."""

    budget: str
    n_epochs: int
    tokens_per_batch: int
    lr: float
    dropout: float


def default_budget() -> str:
    """The budget of the environment variable ``TINYTX_BUDGET``, "laptop" where it is not set."""
    return os.environ.get("TINYTX_BUDGET") or "laptop"


def corpus_kind(corpus: Corpus) -> str:
    """What decides the numbers of a run: "world", "reviews" (any labelled texts) or "text"."""
    if corpus.name == "world":
        return "world"
    return "reviews" if corpus.train.labels is not None else "text"


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
    try:
        seconds = float(budget)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < float("inf"):
        raise ValueError(
            f"budget must be one of {', '.join(BUDGETS)}, or a positive number of seconds, got {budget!r}"
        )
    return seconds


def named_budget(budget: str | float) -> str:
    """The budget whose model suits a number of seconds; a name stays as it is."""
    if isinstance(budget, str):
        return budget
    if budget < 10:
        return "smoke"
    return "laptop" if budget < 300 else "study"


def plan(kind: str, objective: str = "causal", budget: str | float | None = None, *, seed: int = 0) -> Recipe:
    """The recipe for pretraining on a kind of corpus with a budget.

    Parameters
    ----------
    kind : {"world", "reviews", "text"}
        See `corpus_kind`.
    objective : {"causal", "masked", "masked+nsp"}
        The last with the prediction of next sentences. Both have a head that is tied to the embeddings.
    budget : str or float, optional
        For a number of seconds the number of steps is a placeholder, until `steps_within` has measured.
    seed : int

    Returns
    -------
    Recipe

    Examples
    --------
    >>> recipe = plan("world", "causal", "smoke")
    >>> recipe.settings.n_steps == plan("world", "causal", "smoke", seed=3).settings.n_steps
    True
    """
    if kind not in KINDS:
        raise ValueError(f"kind of corpus must be one of {', '.join(KINDS)}, got {kind!r}")
    if objective not in OBJECTIVES:
        raise ValueError(f"objective must be one of {', '.join(OBJECTIVES)}, got {objective!r}")
    name = named_budget(parse_budget(budget))
    row = _PRETRAINING[kind, name]
    config = TransformerConfig(
        vocab_size=row.vocab_size,
        d_model=row.d_model,
        n_heads=row.n_heads,
        n_layers=row.n_layers,
        d_ff=FF_FACTOR * row.d_model,
        max_len=row.max_len,
        dropout=row.dropout,
    )
    settings = TrainingSettings(n_steps=1, lr=row.lr, tokens_per_batch=row.tokens_per_batch, seed=seed)
    if objective == "causal":
        return Recipe(name, row.vocab_size, config, resize(settings, row.n_steps))
    masking = Masking(next_sentence=objective == "masked+nsp")
    config = config.replace(causal=False, tie_embeddings=True, n_segments=2 if masking.next_sentence else 0)
    settings = settings.replace(lr=_MASKED_LR[name], **MUON)
    return Recipe(name, row.vocab_size, config, resize(settings, row.n_steps), masking=masking)


def plan_finetuning(kind: str, budget: str | float | None = None) -> FinetuneRecipe:
    """The recipe for fine-tuning on a kind of labelled corpus with a budget."""
    name = named_budget(parse_budget(budget))
    if (kind, name) not in _FINETUNING:
        raise ValueError(f"fine-tuning needs a corpus with labels, got one of kind {kind!r}")
    row = _FINETUNING[kind, name]
    return FinetuneRecipe(name, row.n_epochs, row.tokens_per_batch, row.lr, row.dropout)


def steps_within(
    seconds: float,
    make_model: Callable[[], nn.Module],
    objective: Objective,
    settings: TrainingSettings,
    n_timed: int = 8,
    layout: Layout | None = None,
) -> tuple[TrainingSettings, float]:
    """Settings whose steps take about so many seconds, found by timing the first steps of a spare model.

    Parameters
    ----------
    seconds : float
        For all steps together, the timed ones included.
    make_model : callable
        Gives a model that may be trained and thrown away.
    objective : Objective
    settings : TrainingSettings
        All but the number of steps is kept.
    n_timed : int
        Steps that are timed, after two that are not.
    layout : Layout, optional
        See `train`.

    Returns
    -------
    settings : TrainingSettings
        With steps, warm-up and intervals that suit the time.
    seconds : float
        How long these steps should take.
    """
    if layout is not None and layout.shard:
        raise ValueError(f"a sharded model needs a budget by name, got {seconds:g} seconds")
    begin = time.perf_counter()
    ends: list[float] = []

    def mark(step: int, model: nn.Module) -> None:
        wait_for(next(model.parameters()).device)
        ends.append(time.perf_counter())

    timed = settings.replace(n_steps=n_timed + 2, warmup_steps=0, lr=settings.lr / 10)
    train(make_model(), objective, timed, layout=layout, on_step=mark, progress=False)

    def steps_left() -> tuple[int, float]:
        per_step = statistics.fmean(b - a for a, b in zip(ends[1:], ends[2:], strict=False))
        left = seconds - (time.perf_counter() - begin)
        n_steps = max(1, int(left / per_step))
        return n_steps, n_steps * per_step

    n_steps, expected = Processes.current().agree(steps_left)
    return resize(settings, n_steps), expected


def resize(settings: TrainingSettings, n_steps: int) -> TrainingSettings:
    """The same settings for another number of steps: warm-up and intervals keep their share."""
    return settings.replace(
        n_steps=n_steps,
        warmup_steps=int(WARMUP_SHARE * n_steps),
        checkpoint_every=max(10, n_steps // 10),
        log_every=max(1, min(50, n_steps // 50)),
    )


PAIR_KINDS = ("world", "tatoeba", "multi30k", "pairs")


@dataclass(frozen=True)
class TranslationRecipe(Recipe):
    """All numbers of the training of a translator.

    Attributes
    ----------
    label_smoothing : float
        Share of probability that the targets spread over the whole vocabulary.
    """

    label_smoothing: float = 0.1

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON can hold them."""
        return {**super().to_dict(), "label_smoothing": self.label_smoothing}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> TranslationRecipe:
        """The recipe that `to_dict` wrote."""
        plain = Recipe.from_dict(fields)
        return cls(plain.budget, plain.vocab_size, plain.config, plain.settings, fields["label_smoothing"])


@dataclass(frozen=True)
class _Row:
    """One row of the table: vocabulary, model (as many layers in either half), training."""

    vocab_size: int
    d_model: int
    n_layers: int
    n_heads: int
    max_len: int
    n_steps: int
    tokens_per_batch: int  # both sides together
    lr: float
    dropout: float
    label_smoothing: float = 0.1


# fmt: off
_TABLE = {
    #                         pieces width layers heads length steps tokens    rate dropout
    ("world", "smoke"):     _Row(800,   32, 1, 2,  64,    30,  1024, 1e-2, 0.0),
    ("world", "laptop"):    _Row(1500, 128, 2, 4,  64,   400,  2000, 5e-3, 0.0),
    ("world", "study"):     _Row(1500, 192, 3, 4,  64,  1500,  3000, 4e-3, 0.1),
    ("world", "gpu"):       _Row(1500, 256, 3, 4,  64,  3000, 16000, 3e-3, 0.1),
    ("tatoeba", "smoke"):   _Row(800,   32, 1, 2,  64,    20,  2000, 1e-2, 0.0),
    ("tatoeba", "laptop"):  _Row(4000, 128, 2, 4,  80,   400,  3000, 6e-3, 0.0),
    ("tatoeba", "study"):   _Row(4000, 256, 3, 4,  80,  1800,  4000, 5e-3, 0.1),
    ("tatoeba", "gpu"):     _Row(8000, 512, 6, 8, 128, 15000, 24000, 2e-3, 0.2),
    ("multi30k", "smoke"):  _Row(800,   32, 1, 2,  64,    20,  2000, 1e-2, 0.0),
    ("multi30k", "laptop"): _Row(4000, 128, 2, 4,  80,   400,  3000, 6e-3, 0.1),
    ("multi30k", "study"):  _Row(4000, 256, 3, 4,  80,  1800,  4000, 5e-3, 0.25),
    ("multi30k", "gpu"):    _Row(6000, 256, 4, 4, 128,  6000, 16000, 3e-3, 0.35),
    ("pairs", "smoke"):     _Row(800,   32, 1, 2,  64,    20,  2000, 1e-2, 0.0),
    ("pairs", "laptop"):    _Row(4000, 128, 2, 4,  80,   400,  3000, 6e-3, 0.1),
    ("pairs", "study"):     _Row(4000, 256, 3, 4,  80,  1800,  4000, 5e-3, 0.15),
    ("pairs", "gpu"):       _Row(8000, 512, 6, 8, 128, 15000, 24000, 2e-3, 0.2),
}
# fmt: on


def pair_kind(corpus_name: str) -> str:
    """What decides the numbers of a translator's training: one of `PAIR_KINDS`.

    Examples
    --------
    >>> pair_kind("tatoeba-en-fr"), pair_kind("mine.tsv")
    ('tatoeba', 'pairs')
    """
    names = {"world": "world", "tatoeba-en-fr": "tatoeba", "multi30k-en-fr": "multi30k"}
    return names.get(corpus_name, "pairs")


def plan_translation(kind: str, budget: str | float | None = None, *, seed: int = 0) -> TranslationRecipe:
    """The recipe for training a translator on a kind of parallel corpus with a budget.

    Parameters
    ----------
    kind : {"world", "tatoeba", "multi30k", "pairs"}
        See `pair_kind`.
    budget : str or float, optional
        For a number of seconds the number of steps is a placeholder, until it has been timed.
    seed : int
    """
    if kind not in PAIR_KINDS:
        raise ValueError(f"kind of pairs must be one of {', '.join(PAIR_KINDS)}, got {kind!r}")
    name = named_budget(parse_budget(budget))
    row = _TABLE[kind, name]
    config = TransformerConfig(
        vocab_size=row.vocab_size,
        d_model=row.d_model,
        n_heads=row.n_heads,
        n_layers=row.n_layers,
        d_ff=FF_FACTOR * row.d_model,
        max_len=row.max_len,
        dropout=row.dropout,
        tie_embeddings=True,
    )
    settings = TrainingSettings(
        n_steps=1,
        lr=row.lr,
        tokens_per_batch=row.tokens_per_batch,
        decay="linear",
        optimizer="muon",
        final_lr_fraction=0.0,
        seed=seed,
    )
    return TranslationRecipe(name, row.vocab_size, config, resize(settings, row.n_steps), row.label_smoothing)
