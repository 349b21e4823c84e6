"""Conditions of the experiment on pretraining, and all numbers of its recipes."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import Any

from tinytx.config import TransformerConfig
from tinytx.masking import Masking
from tinytx.settings import TrainingSettings
from tinytx_run.recipes import FF_FACTOR, HYBRID_CAUSAL_SHARE

OBJECTIVES = ("causal", "masked", "hybrid")
# New layers that read one way or both, the last with embeddings from counts.
NEW = ("scratch", "scratch-both", "counts-both")
WAYS = ("tuned", "longer", "probe")
TIMES_LONGER = 5  # as many updates of fine-tuning
LAST_BAG, LSA_BAG = "tfidf-letters-last", "tfidf-letters-lsa"
OWN_LSA_BAG = f"{LSA_BAG}-labelled"  # of the labelled texts alone
LAST_LSA_BAG = f"{LSA_BAG}-last"  # of the words that a transformer is given
BAGS = ("tfidf-words", "tfidf-letters", LAST_BAG, LSA_BAG, OWN_LSA_BAG, LAST_LSA_BAG)
_START = re.compile(r"(?P<objective>.*?)(?P<wide>-wide)?(-seed(?P<seed>[1-9]))?")
FINE_TUNING = ("n_updates", "texts_per_batch", "rates", "dropout")  # numbers of a recipe
WIDE = 2  # times the width and the heads of all others


@dataclass(frozen=True)
class Recipe:
    """All numbers of the experiment for one budget.

    Pretraining is by Muon: the rate is constant after the warm-up, and falls to zero over the last share of a
    dose. Of 5e-3 and 1e-2 the second had the lower loss on held-out unlabelled texts after 0.3 million tokens
    (5.44 against 5.52 nats). Where `n_words` are more than `max_len` tokens, in about one review of seven, a
    transformer reads their beginning; bags of words read reviews whole.
    """

    doses: tuple[int, ...]  # tokens read in pretraining; 0 is a model with new weights
    vocab_size: int
    token_texts: int  # unlabelled texts that the tokenizer learns from
    d_model: int
    n_layers: int
    n_heads: int
    max_len: int
    lr: float
    warmup_steps: int
    tokens_per_batch: int
    n_words: int  # last words of a review that a transformer is given
    n_updates: int  # of fine-tuning, at least
    texts_per_batch: int  # of fine-tuning, about
    n_folds: int
    n_test: int
    decay_share: float = 0.2
    held_out_share: float = 0.25  # of the labels, to choose a tuning by, which then learns from all
    mask: float = 0.25
    rates: tuple[float, ...] = (1e-3, 3e-4, 3e-3)  # of fine-tuning, tried in the labels; the first wins a tie
    dropout: float = 0.1  # of fine-tuning

    def config(self, *, causal: bool, times_width: int = 1) -> TransformerConfig:
        """The one architecture of all conditions but those of a wider model."""
        d_model = times_width * self.d_model
        return TransformerConfig(
            vocab_size=self.vocab_size,
            d_model=d_model,
            n_heads=times_width * self.n_heads,
            n_layers=self.n_layers,
            d_ff=FF_FACTOR * d_model,
            max_len=self.max_len,
            causal=causal,
            positions="rotary",
            tie_embeddings=True,
        )

    def settings(self, n_steps: int, decay_steps: int | None, precision: str) -> TrainingSettings:
        """Settings of the trunk, whose rate stays, or of a branch, whose rate falls over its last steps."""
        return TrainingSettings(
            n_steps=n_steps,
            lr=self.lr,
            warmup_steps=min(self.warmup_steps, n_steps - (decay_steps or 0)),
            decay="linear",
            decay_steps=decay_steps,
            final_lr_fraction=1.0 if decay_steps is None else 0.0,
            optimizer="muon",
            tokens_per_batch=self.tokens_per_batch,
            precision=precision,
        )

    def masking(self, objective: str) -> Masking | None:
        """What is masked; None for a causal model."""
        share = HYBRID_CAUSAL_SHARE if objective == "hybrid" else 0.0
        return None if objective == "causal" else Masking(p=self.mask, causal_share=share)

    def pretraining(self) -> dict[str, Any]:
        """The numbers that decide a pretrained body, apart from its dose; as JSON can hold them."""
        own = ("doses", "n_words", "n_folds", "n_test", "held_out_share", *FINE_TUNING)
        return {name: value for name, value in dataclasses.asdict(self).items() if name not in own}


RECIPES = {
    "smoke": Recipe(
        doses=(0, 2_000, 5_000),
        vocab_size=200,
        token_texts=200,
        d_model=16,
        n_layers=1,
        n_heads=2,
        max_len=64,
        lr=5e-3,
        warmup_steps=2,
        tokens_per_batch=512,
        n_words=10,
        n_updates=4,
        texts_per_batch=8,
        n_folds=2,
        n_test=20,
    ),
    "study": Recipe(
        doses=(0, 300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000, 60_000_000),
        vocab_size=4_000,
        token_texts=6_000,
        d_model=128,
        n_layers=4,
        n_heads=4,
        max_len=256,
        lr=1e-2,
        warmup_steps=20,
        tokens_per_batch=4_096,
        n_words=160,
        n_updates=100,
        texts_per_batch=16,
        n_folds=6,
        n_test=1_000,
    ),
}


@dataclass(frozen=True)
class Condition:
    """A way to classify a text: one of `BAGS`, or START/WAY, or START/WAY/DOSE with a dose in tokens.

    START is one of `OBJECTIVES` with a dose of pretraining ("causal-seed1": another seed of it,
    "causal-wide": `WIDE` times as wide), or one of `NEW`: new weights. WAY is

    - "tuned": fine-tuned on the last `Recipe.n_words` of each text, cut at their end where they are too long;
    - "longer": fine-tuned for `TIMES_LONGER` times the updates;
    - "probe": frozen, its states of the same words read by logistic regression.
    """

    name: str
    start: str
    way: str = "bag"
    dose: int = 0  # tokens read in pretraining

    @property
    def causal(self) -> bool:
        """Whether the transformer reads one way when it classifies; a hybrid one reads both ways."""
        return part_of(self.start, "objective") in ("scratch", "causal")


def part_of(start: str, what: str) -> str:
    """Its "objective"; its "seed" of pretraining, of weights and order; whether it is "wide"; or ""."""
    found = _START.fullmatch(start)
    return (found and found[what]) or ""


def times_width(start: str) -> int:
    """How many times as wide a model is as those of the plan."""
    return WIDE if part_of(start, "wide") else 1


def condition(name: str, recipe: Recipe) -> Condition:
    """The condition of a name; a ValueError says which there are."""
    start, *rest = name.split("/")
    if name in BAGS:
        return Condition(name, name)
    doses = [str(dose) for dose in recipe.doses if dose]
    if rest and rest[0] in WAYS:
        if start in NEW and len(rest) == 1:
            return Condition(name, start, rest[0])
        if part_of(start, "objective") in OBJECTIVES and len(rest) == 2 and rest[1] in doses:
            return Condition(name, start, rest[0], int(rest[1]))
    raise ValueError(
        f"condition must be {', '.join(BAGS)}, or START/WAY with WAY one of {', '.join(WAYS)} and START "
        f"one of {', '.join(NEW)}, or {', '.join(OBJECTIVES)} ({OBJECTIVES[0]}-seed1, -wide) "
        f"and /DOSE with a dose of {', '.join(doses)}; got {name!r}"
    )


def first_conditions(recipe: Recipe) -> tuple[str, ...]:
    """What is measured unless others are asked for, in this order: controls, then causal at each dose."""
    causal = [f"causal/{way}/{dose}" for dose in recipe.doses if dose for way in ("tuned", "probe")]
    return ("tfidf-words", "tfidf-letters", "scratch/tuned", "scratch/probe", *causal)
