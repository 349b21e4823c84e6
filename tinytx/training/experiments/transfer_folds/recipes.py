"""How much the experiment spends: what a row of the tables of recipes says."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tinytx.model import TransformerConfig
from tinytx.model.transformer import Pooling
from tinytx.training.budgets import FF_FACTOR, resize
from tinytx.training.pretraining import Report
from tinytx.training.settings import TrainingSettings

LAPTOP_IS = "study"


@dataclass(frozen=True)
class Stage:
    """One stage of pretraining: steps, tokens a step, and the rate."""

    n_steps: int
    tokens_per_batch: int
    lr: float

    def settings(self, seed: int, precision: str, optimizer: str = "muon") -> TrainingSettings:
        """Settings of a run: warm-up, then linear decay to nothing."""
        base = TrainingSettings(
            n_steps=1,
            lr=self.lr,
            tokens_per_batch=self.tokens_per_batch,
            optimizer=optimizer,
            decay="linear",
            final_lr_fraction=0.0,
            precision=precision,
            seed=seed,
        )
        return resize(base, self.n_steps)


@dataclass(frozen=True)
class Tuning:
    """How a body and a new head learn from labels.

    Attributes
    ----------
    n_updates : int
        At least so many steps, however few labels there are.
    n_epochs : int
        At least so many passes, however many labels there are.
    texts_per_batch : int
        About so many.
    lr, dropout : float
    optimizer : str
    pooling : {"mean", "last", "first"}
    keep_embeddings : bool
        Whether embeddings stay as they came.
    n_curve : int
        The curve looks at so many moments at most, and at
    n_scored : int
        so many of the tested texts; the accuracy that is reported counts all of them, once, at the end.
    """

    n_updates: int
    n_epochs: int
    texts_per_batch: int
    lr: float
    dropout: float
    optimizer: str = "adamw"
    pooling: Pooling = "mean"
    keep_embeddings: bool = False
    n_curve: int = 10
    n_scored: int = 100

    def brief(self) -> Tuning:
        """Half the steps, at three tenths of the rate: too careful, as it turned out."""
        return dataclasses.replace(self, n_updates=self.n_updates // 2, lr=self.lr * 3 / 10)


@dataclass(frozen=True)
class TransferRecipe:
    """All numbers of the experiment for one budget.

    Attributes
    ----------
    budget : str
    vocab_size, d_model, n_layers, n_heads, max_len : int
        Of every body, pretrained or not.
    positions : str
    words : dict
        Of each text elsewhere, how many words are read at most.
    pretraining : Stage
        On text elsewhere.
    mask : float
        Share of tokens that are hidden from a masked model.
    from_counts : bool
        Whether language models start with, and keep, embeddings that come from counts of their first text.
    tuning, fresh_tuning : Tuning
        From a pretrained body; from new weights.
    adapting, rating : Stage or None
        On unlabelled texts of the fold; on star ratings. None where the task has no such texts.
    """

    budget: str
    vocab_size: int
    d_model: int
    n_layers: int
    n_heads: int
    max_len: int
    positions: Literal["sinusoidal", "learned", "rotary", "alibi", "none"]
    words: dict[str, int]
    pretraining: Stage
    mask: float
    from_counts: bool
    tuning: Tuning
    fresh_tuning: Tuning
    adapting: Stage | None = None
    rating: Stage | None = None

    def config(self, *, causal: bool) -> TransformerConfig:
        """The body's configuration."""
        return TransformerConfig(
            vocab_size=self.vocab_size,
            d_model=self.d_model,
            n_heads=self.n_heads,
            n_layers=self.n_layers,
            d_ff=FF_FACTOR * self.d_model,
            max_len=self.max_len,
            causal=causal,
            positions=self.positions,
            tie_embeddings=True,
        )

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON can hold them."""
        return dataclasses.asdict(self)


def transfer_recipe(
    budget: str | float, recipes: Mapping[str, TransferRecipe], report: Report = print
) -> TransferRecipe:
    """The recipe of a budget; seconds are refused, as equal steps are compared.

    There is no row for ``laptop``: what a minute can measure here is smaller than the spread over folds. It
    is taken as `LAPTOP_IS`, and said so.
    """
    if budget == "laptop" and budget not in recipes:
        report(f"the transfer experiment has no row for the budget laptop: taken as {LAPTOP_IS}")
        budget = LAPTOP_IS
    if not isinstance(budget, str) or budget not in recipes:
        known = ", ".join(recipes)
        raise ValueError(f"the transfer experiment needs a budget by name, one of {known}, got {budget!r}")
    return recipes[budget]
