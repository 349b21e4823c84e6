"""Variants of the transfer experiment on real text: tasks, recipes, and what the name of a variant says."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.harness import digest_of
from experiments.transfer_data import DocstringSources, ReviewSources
from tinytx.model.config import TransformerConfig
from tinytx.model.transformer import Pooling
from tinytx.training.recipes import FF_FACTOR, resize
from tinytx.training.settings import TrainingSettings

OBJECTIVES = ("counts", "causal", "masked")
WAYS = ("tuned", "brief", "probe", "tfidf", "letters")
BASELINES = ("majority", "tfidf-logistic", "tfidf-bayes", "tfidf-letters")
STAR_BASELINE, STAR_WAY = "tfidf+linear-stars", "tfidf+stars"
Sources = ReviewSources | DocstringSources


@dataclass(frozen=True)
class Stage:
    """One stage of pretraining: steps, tokens a batch, and the learning rate."""

    n_steps: int
    tokens_per_batch: int
    lr: float

    def settings(self, seed: int, precision: str) -> TrainingSettings:
        """Settings of a run: warm-up, then linear decay to zero."""
        base = TrainingSettings(
            n_steps=1,
            lr=self.lr,
            tokens_per_batch=self.tokens_per_batch,
            optimizer="muon",
            decay="linear",
            final_lr_fraction=0.0,
            precision=precision,
            seed=seed,
        )
        return resize(base, self.n_steps)


@dataclass(frozen=True)
class Tuning:
    """How an encoder and a new head are fine-tuned.

    Attributes
    ----------
    n_updates, n_epochs : int
        Steps and epochs at least.
    texts_per_batch : int
        About.
    keep_embeddings : bool
        Whether embeddings are frozen.
    n_curve, n_scored : int
        Points of the curve at most, and tested texts of each. The accuracy that is reported counts all texts,
        once, at the end.
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
        """Half the steps at three tenths of the rate: too careful, as it turned out."""
        return dataclasses.replace(self, n_updates=self.n_updates // 2, lr=self.lr * 3 / 10)


@dataclass(frozen=True)
class Recipe:
    """All numbers of the experiment for one budget.

    Attributes
    ----------
    words : dict
        Of each unlabelled text, how many words are read at most.
    pretraining, adapting, rating : Stage or None
        On unlabelled texts; on those of the fold; on star ratings. None where the task has no such texts.
    tuning, fresh_tuning : Tuning
        From a pretrained encoder; from new weights.
    mask : float
        Share of masked tokens.
    """

    max_len: int
    words: dict[str, int]
    pretraining: Stage
    tuning: Tuning
    fresh_tuning: Tuning
    adapting: Stage | None = None
    rating: Stage | None = None
    mask: float = 0.25
    vocab_size: int = 6_000
    d_model: int = 192
    n_layers: int = 2
    n_heads: int = 6

    def config(self, *, causal: bool) -> TransformerConfig:
        """The configuration of every encoder."""
        return TransformerConfig(
            vocab_size=self.vocab_size,
            d_model=self.d_model,
            n_heads=self.n_heads,
            n_layers=self.n_layers,
            d_ff=FF_FACTOR * self.d_model,
            max_len=self.max_len,
            causal=causal,
            positions="rotary",
            tie_embeddings=True,
        )


_SMOKE: dict[str, Any] = {
    "vocab_size": 400,
    "d_model": 16,
    "n_layers": 1,
    "n_heads": 2,
    "max_len": 64,
    "mask": 0.2,
    "pretraining": Stage(4, 512, 5e-3),
    "tuning": Tuning(4, 1, 8, 3e-4, 0.1, n_curve=2, n_scored=10, keep_embeddings=True),
    "fresh_tuning": Tuning(4, 1, 8, 5e-4, 0.1, n_curve=2, n_scored=10),
}


@dataclass(frozen=True)
class Text:
    """What an encoder reads: a source of the task, then, if `own`, the training texts of the fold."""

    source: str | None
    own: bool = False


@dataclass(frozen=True)
class Task:
    """One corpus of labelled texts, and what is compared on it.

    Attributes
    ----------
    corpus : str
        Its train and valid splits are folded; its test split is not touched.
    sources : callable
        Gives the unlabelled texts from a data folder, or None, and the texts that are left out.
    texts : dict
        What encoders are pretrained on, by the name that variants use.
    tokens_from, token_words : str, dict
        The source that the tokenizer learns from, and how many words of each of its parts. No text of the
        task is read for it.
    recipes : dict
        By budget.
    variants : tuple of str
        Compared unless others are asked for.
    rated_source : str or None
        The source whose texts have stars.
    n_folds, n_texts : int
        Folds, and texts that are drawn for them (with seed 0, of each class equally many); None for all.
    """

    corpus: str
    sources: Callable[[Path | None, Iterable[str]], Sources]
    texts: Mapping[str, Text]
    tokens_from: str
    token_words: Mapping[str, int]
    recipes: Mapping[str, Recipe]
    variants: tuple[str, ...]
    rated_source: str | None = None
    n_folds: int = 6
    n_texts: int | None = None

    @property
    def own_text(self) -> str | None:
        """The name of the text that is only the fold's own."""
        return next((name for name, text in self.texts.items() if text.source is None), None)

    def recipe(self, budget: str | float) -> tuple[str, Recipe]:
        """The recipe of a budget and its name; ``laptop`` is ``study``, as a minute shows nothing here.

        Raises
        ------
        ValueError
            For another budget: equal steps are compared.
        """
        name = "study" if budget == "laptop" else budget
        if not isinstance(name, str) or name not in self.recipes:
            raise ValueError(f"budget must be one of {', '.join(self.recipes)}, got {budget!r}")
        return name, self.recipes[name]


@dataclass(frozen=True)
class Variant:
    """A way to classify a text.

    Attributes
    ----------
    name : str
        One of `BASELINES`, or ENCODER, or ENCODER/WAY with a way of `WAYS`. ENCODER is "scratch",
        "scratch-causal" or OBJECTIVE:TEXT: pretrained with one of `OBJECTIVES` on a text of the task. A task
        with star ratings also knows `STAR_BASELINE`, ENCODER/tfidf+stars, and as ENCODER "stars" and
        OBJECTIVE:TEXT+stars: trained, last or only, on ratings of other readers.
    objective, text : str or None
        None for new weights.
    stars : bool
    causal : bool
    way : str
        "tuned": fine-tuned; "brief": the same, in few and small steps; "probe": a linear model reads its
        pooled hidden states; "tfidf": the same with TF-IDF of words; "letters": and of characters;
        "tfidf+stars": TF-IDF of words with the ratings that ridge regression predicts; "baseline": no
        encoder. An encoder trained on stars gives its logit to the last three, others their states.
    """

    name: str
    objective: str | None = None
    text: str | None = None
    stars: bool = False
    causal: bool = False
    way: str = "baseline"

    def tuning(self, recipe: Recipe) -> Tuning | None:
        """How the encoder is fine-tuned; None where it is frozen or absent."""
        if self.way not in ("tuned", "brief"):
            return None
        tuning = recipe.fresh_tuning if self.objective is None and not self.stars else recipe.tuning
        return tuning.brief() if self.way == "brief" else tuning

    def origin(self, recipe: Recipe) -> dict[str, Any]:
        """The part of a record's origin that follows from the recipe; empty for a baseline."""
        if self.way == "baseline":
            return {}
        tuning = self.tuning(recipe)
        return {
            "model": digest_of(recipe.config(causal=self.causal).to_dict()),
            "tuning": None if tuning is None else dataclasses.asdict(tuning),
        }


def variant(name: str, task: Task) -> Variant:
    """The variant of a name.

    Raises
    ------
    ValueError
        If the task does not have it.
    """
    rated = task.rated_source is not None
    baselines, ways = (*BASELINES, *[STAR_BASELINE] * rated), (*WAYS, *[STAR_WAY] * rated)
    if name in baselines:
        return Variant(name)
    encoder, slash, way = name.partition("/")
    way = way if slash else "tuned"
    if way not in ways:
        raise ValueError(f"an encoder must be read by one of {', '.join(ways)}, got {name!r}")
    if encoder in ("scratch", "scratch-causal"):
        return Variant(name, causal=encoder == "scratch-causal", way=way)
    if encoder == "stars" and rated:
        return Variant(name, stars=True, way=way)
    pretrained, plus, stars = encoder.partition("+")
    objective, _, text = pretrained.partition(":")
    if objective not in OBJECTIVES or (plus and not (rated and stars == "stars")):
        encoders = "stars or OBJECTIVE:TEXT[+stars]" if rated else "or OBJECTIVE:TEXT"
        known = f"{', '.join(baselines)}, scratch, scratch-causal, {encoders}"
        raise ValueError(f"variant must be {known}, objectives {', '.join(OBJECTIVES)}, got {name!r}")
    if text not in task.texts:
        raise ValueError(f"text must be one of {', '.join(task.texts)}, got {text!r} in {name!r}")
    return Variant(name, objective, text, bool(plus), objective == "causal", way)


_NAMES = ReviewSources.names
_REVIEW_TEXTS = {
    **{name: Text(name) for name in (*_NAMES, "around")},
    "reviews": Text(None, own=True),
    "near": Text("readers", own=True),
    "all": Text("around", own=True),
}
#: Praise or blame: few words tell, and unlabelled text does not mark them.
REVIEWS = Task(
    corpus="cls-books",
    sources=ReviewSources,
    texts=_REVIEW_TEXTS,
    tokens_from="around",
    token_words={"novels": 300_000, "tatoeba": 200_000, "readers": 10_000_000},
    recipes={
        "smoke": Recipe(
            **_SMOKE,
            words=dict.fromkeys(_NAMES, 3_000),
            adapting=Stage(2, 512, 3e-3),
            rating=Stage(3, 512, 5e-3),
        ),
        "study": Recipe(
            max_len=256,
            words={"novels": 1_000_000, "tatoeba": 400_000, "readers": 10_000_000},
            pretraining=Stage(2_000, 4_096, 5e-3),
            adapting=Stage(200, 4_096, 3e-3),
            rating=Stage(600, 4_096, 3e-3),
            tuning=Tuning(100, 4, 16, 1e-3, 0.2, keep_embeddings=True),
            fresh_tuning=Tuning(100, 8, 16, 5e-4, 0.2),
        ),
    },
    variants=(
        *BASELINES,
        STAR_BASELINE,
        "scratch",
        "scratch-causal",
        *(f"{objective}:{text}" for objective in ("causal", "masked") for text in _REVIEW_TEXTS),
        *(f"masked:near/{way}" for way in ("brief", "probe", "tfidf", "letters")),
        *(f"counts:near{way}" for way in ("", "/probe", "/tfidf")),
        "stars",
        "counts:readers+stars",
        "masked:readers+stars",
        "counts:readers+stars/tfidf",
        "counts:readers+stars/tfidf+stars",
    ),
    rated_source="readers",
)
_ALL_WORDS = {"docstrings": 10_000_000}  # more than there are
#: Which package a text comes from: its subject tells, and unlabelled text says what belongs together.
PACKAGES = Task(
    corpus="docstrings-packages",
    sources=DocstringSources,
    texts={"docstrings": Text("docstrings")},
    tokens_from="docstrings",
    token_words=_ALL_WORDS,
    recipes={
        "smoke": Recipe(**_SMOKE, words={"docstrings": 3_000}),
        "study": Recipe(
            max_len=128,
            words=_ALL_WORDS,
            pretraining=Stage(800, 2_048, 5e-3),
            tuning=Tuning(150, 4, 16, 1e-3, 0.2, keep_embeddings=True),
            fresh_tuning=Tuning(200, 8, 16, 1e-3, 0.2),
        ),
    },
    variants=(
        *BASELINES,
        "scratch",
        "scratch-causal",
        *(
            f"{objective}:docstrings{way}"
            for objective in ("counts", "masked", "causal")
            for way in ("", "/probe", "/tfidf", "/letters")
        ),
    ),
    n_texts=2_400,
)
TASKS = {task.corpus: task for task in (REVIEWS, PACKAGES)}
