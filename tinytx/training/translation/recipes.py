"""How much is spent on a translator: the recipe of each budget, by kind of corpus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tinytx.model import TransformerConfig
from tinytx.training.budgets import FF_FACTOR, Recipe, named_budget, parse_budget, resize
from tinytx.training.settings import TrainingSettings

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
    return TranslationRecipe(
        name, row.vocab_size, config, resize(settings, row.n_steps), row.label_smoothing
    )
