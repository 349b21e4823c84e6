"""The tasks: real reviews in French, and docstrings by package."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tinytx.model.config import TransformerConfig
from tinytx.model.transformer import Pooling
from tinytx.text.corpora import Corpus, Split, read_lines
from tinytx.text.tokenizer import plain
from tinytx.training.checkpoint import json_bytes
from tinytx.training.fit import Report
from tinytx.training.recipes import FF_FACTOR, resize
from tinytx.training.settings import TrainingSettings
from tinytx_course.labs.docstrings import docstrings_corpus, without_giveaways

_LOST_APOSTROPHE = re.compile(r"(?<=\w)\?(?=\w)")


@dataclass(frozen=True)
class Fold:
    """One part of the texts is tested, all others may be learned from.

    Attributes
    ----------
    repeat, number : int
        Which drawing of folds, and which fold of it, from 0 up.
    seed : int
        Its own: of the subset of labels, of new weights and of the order of learning.
    train, tested : Split
        No text stands in both.
    """

    repeat: int
    number: int
    seed: int
    train: Split
    tested: Split


def readable(text: str) -> str:
    """A text in plain typography; a "?" between letters, which stands for a lost apostrophe, is mended.

    Examples
    --------
    >>> readable("l?amour  d\u2019une vie. Vraiment ?")
    "l'amour d'une vie. Vraiment ?"
    """
    return " ".join(_LOST_APOSTROPHE.sub("'", plain(text)).split())


def same_text(text: str) -> str:
    """What is left of a text when case, spaces and punctuation do not count: equal for repeated texts."""
    return " ".join(re.findall(r"\w+", readable(text).lower()))


def distinct_texts(corpus: Corpus) -> tuple[Split, int]:
    """The labelled texts of train and valid, each once; and how many repetitions were left out.

    A text that stands there with two different labels is left out altogether. The test split is not touched.
    """
    pairs: list[tuple[str, int]] = []
    for split in (corpus.train, corpus.valid):
        if split.labels is None:
            raise ValueError(f"folds need a corpus with labels, got {corpus.name}, which has none")
        pairs += zip(split.texts, split.labels, strict=True)
    labels: dict[str, set[int]] = {}
    for text, label in pairs:
        labels.setdefault(same_text(text), set()).add(label)
    kept: dict[str, tuple[str, int]] = {}
    for text, label in pairs:
        key = same_text(text)
        if key and len(labels[key]) == 1:
            kept.setdefault(key, (readable(text), label))
    texts, classes = zip(*kept.values(), strict=True)
    return Split(texts, classes), len(pairs) - len(kept)


def stratified_folds(split: Split, n_folds: int, repeat: int = 0) -> list[Fold]:
    """Folds of nearly equal size, with as many of each class in each as can be.

    Parameters
    ----------
    split : Split
        Labelled texts, each once.
    n_folds : int
        At least 2; at most the size of the smallest class.
    repeat : int
        Draws other folds. Fold ``k`` of repetition ``r`` has the seed ``r * n_folds + k``.

    Examples
    --------
    >>> one, two = stratified_folds(Split(tuple("abcd"), (0, 1, 0, 1)), 2)
    >>> sorted(one.tested.texts + two.tested.texts), set(one.tested.texts) & set(one.train.texts)
    (['a', 'b', 'c', 'd'], set())
    """
    labels = np.asarray(split.labels)
    smallest = int(np.unique(labels, return_counts=True)[1].min())
    if not 2 <= n_folds <= smallest:
        raise ValueError(f"n_folds must be from 2 to {smallest}, the smallest class, got {n_folds}")
    rng = np.random.default_rng([repeat, n_folds])
    fold_of = np.zeros(len(labels), dtype=int)
    dealt = 0
    for label in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == label))
        fold_of[members] = (dealt + np.arange(len(members))) % n_folds
        dealt += len(members)
    return [
        Fold(
            repeat,
            number,
            repeat * n_folds + number,
            _part(split, np.flatnonzero(fold_of != number)),
            _part(split, np.flatnonzero(fold_of == number)),
        )
        for number in range(n_folds)
    ]


def _part(split: Split, rows: Iterable[int]) -> Split:
    labels = split.labels or ()
    chosen = [int(i) for i in rows]
    return Split(tuple(split.texts[i] for i in chosen), tuple(labels[i] for i in chosen))


@dataclass(frozen=True)
class Rated:
    """A reader's review of a book, with the stars that the reader gave it."""

    text: str
    stars: float


class Sources(ABC):
    """Unlabelled texts of one task, by name."""

    names: tuple[str, ...] = ()
    together: Mapping[str, tuple[str, ...]] = {}  # other names, for several at once

    def elsewhere(self, name: str, words: Mapping[str, int]) -> list[str]:
        """Texts of one source, or of several, each thinned to so many words (drawn with seed 0)."""
        if name in self.together:
            return [text for one in self.together[name] for text in self.elsewhere(one, words)]
        if name not in self.names:
            known = " or ".join([", ".join(self.names), *self.together])
            raise ValueError(f"text must be one of {known}, got {name!r}")
        return _thinned(self._kept(name), words[name])

    def identity(self, name: str) -> dict[str, Any]:
        """What tells the texts of a name from other texts of that name; nothing where all have the same."""
        return {}

    @property
    def rated(self) -> list[Rated]:
        """Texts with stars, where the task has such a neighbour."""
        raise ValueError("stars need a task with star ratings beside it, got one without")

    @functools.cache  # noqa: B019  (one instance a run)
    def _kept(self, name: str) -> list[str]:
        return self._whole(name)

    @abstractmethod
    def _whole(self, name: str) -> list[str]:
        """All texts of one name, in plain typography, without those that are tested."""


def _thinned(texts: list[str], n_words: int) -> list[str]:
    order = np.random.default_rng(0).permutation(len(texts))
    kept, total = [], 0
    for index in order.tolist():
        if total >= n_words:
            break
        kept.append(texts[index])
        total += texts[index].count(" ") + 1
    return kept


def digest_of(content: dict[str, Any]) -> str:
    """A short name for some settings or texts, which changes whenever any of them does."""
    return hashlib.sha256(json_bytes(content)).hexdigest()[:12]


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


@dataclass(frozen=True)
class Text:
    """What a body is pretrained on.

    Attributes
    ----------
    elsewhere : str or None
        A name of the task's sources, read first; None for nothing from elsewhere.
    own : bool
        Whether the body then reads the texts of the fold that are not tested, without their labels.
    """

    elsewhere: str | None
    own: bool = False


@dataclass(frozen=True)
class Task:
    """One corpus of labelled texts, and all that the harness does not know of it.

    Attributes
    ----------
    corpus : str
        Its train and valid splits are folded; its test split is not touched.
    sources : callable
        Gives the unlabelled texts from a data folder, or None, and the texts that are to be left out.
    texts : dict
        What bodies are pretrained on, by the name that conditions use; one of only own texts at most.
    pieces_from, pieces_words : str, dict
        The name in the sources of the text that the tokenizer learns from, and how many words of each part.
        No text of the task is read for it.
    recipes : dict
        By budget.
    conditions : tuple of str
        Compared unless others are asked for.
    neighbour : str or None
        The source whose texts have stars; None where there is no such task beside this one.
    n_folds : int
    n_texts : int or None
        So many of the texts are drawn (with seed 0, of each class equally many) and folded; None for all.
    """

    corpus: str
    sources: Callable[[str | Path | None, Iterable[str]], Sources]
    texts: Mapping[str, Text]
    pieces_from: str
    pieces_words: Mapping[str, int]
    recipes: Mapping[str, TransferRecipe]
    conditions: tuple[str, ...]
    neighbour: str | None = None
    n_folds: int = 6
    n_texts: int | None = None

    @property
    def own(self) -> str | None:
        """The name of the text that is nothing but the fold's own."""
        return next((name for name, text in self.texts.items() if text.elsewhere is None), None)


ELSEWHERE = ("novels", "tatoeba", "readers")
SHORTEST_WORDS = 3
HIGHEST_STARS = 5.0


class ReviewSources(Sources):
    """Texts by name, in plain typography, without any text that is tested.

    Parameters
    ----------
    data_dir : path
        Holds ``eltec-fra/``, ``tatoeba-en-fr/`` and ``reader-reviews-fr/``, of which only what is asked for
        is read.
    left_out : iterable of str
        Texts that are never given, whatever their case and punctuation: those that will be tested.
    """

    names = ELSEWHERE
    together = {"around": ELSEWHERE}

    def __init__(self, data_dir: str | Path | None, left_out: Iterable[str] = ()) -> None:
        if data_dir is None:
            raise ValueError("data_dir must be the folder that holds the texts, got None")
        self._folder = Path(data_dir)
        self._left_out = {same_text(text) for text in left_out}

    @functools.cached_property
    def rated(self) -> list[Rated]:
        """Reader reviews with stars from 0.5 to 5, each text once."""
        found: dict[str, Rated] = {}
        for path in sorted(self._require("reader-reviews-fr").glob("*.jsonl")):
            for number, line in read_lines(path):
                try:
                    row = json.loads(line)
                    rated = Rated(readable(row["reader_review"]), float(row["rating"]))
                except (ValueError, KeyError, TypeError) as error:
                    raise ValueError(
                        f"{path}, line {number}: must be JSON with reader_review and rating, got {error!r}"
                    ) from error
                if rated.stars <= HIGHEST_STARS and self._is_wanted(rated.text):
                    found.setdefault(same_text(rated.text), rated)
        return list(found.values())

    def _whole(self, name: str) -> list[str]:
        if name == "readers":
            return [rated.text for rated in self.rated]
        if name == "novels":
            lines = (line for _, line in read_lines(self._require("eltec-fra") / "corpus.train.txt"))
        else:
            pairs = read_lines(self._require("tatoeba-en-fr") / "pairs.train.tsv")
            lines = (line.partition("\t")[2] for _, line in pairs)
        return [text for text in map(readable, lines) if self._is_wanted(text)]

    def _is_wanted(self, text: str) -> bool:
        return text.count(" ") + 1 >= SHORTEST_WORDS and same_text(text) not in self._left_out

    def _require(self, name: str) -> Path:
        folder = self._folder / name
        if not folder.is_dir():
            raise ValueError(f"data_dir must hold the folder {name} for this condition, looked for {folder}")
        return folder


DOCSTRINGS = "docstrings"


class PackageSources(Sources):
    """The docstrings of this machine, but for those of the test splits and those that are tested.

    Parameters
    ----------
    data_dir : path or None
        Not looked into: this text lies on every machine.
    left_out : iterable of str
        Texts of the task. A document is never given if it holds one of them, as it stands or without the
        sentences that name packages, whatever case and punctuation.
    documents : sequence of str, optional
        By default the train and valid splits of `docstrings_corpus`.
    """

    names = (DOCSTRINGS,)

    def __init__(
        self,
        data_dir: str | Path | None = None,
        left_out: Iterable[str] = (),
        documents: Sequence[str] | None = None,
    ) -> None:
        self._holds_tested = Holds(left_out)
        self._documents = documents

    def identity(self, name: str) -> dict[str, Any]:
        """A digest of the texts: each machine has its own packages."""
        return {"documents": self._digest} if name in self.names else {}

    @functools.cached_property
    def _digest(self) -> str:
        return digest_of({"documents": self._kept(DOCSTRINGS)})

    def _whole(self, name: str) -> list[str]:
        documents = self._documents
        if documents is None:
            corpus = docstrings_corpus()
            documents = corpus.train.texts + corpus.valid.texts
        return [readable(one) for one in documents if not self._is_tested(one)]

    def _is_tested(self, document: str) -> bool:
        return self._holds_tested(document) or self._holds_tested(without_giveaways(document))


class Holds:
    """Says whether a text holds one of some texts as a whole; case, spaces and punctuation do not count.

    Parameters
    ----------
    wanted : iterable of str

    Examples
    --------
    >>> holds = Holds(["the mean of an array"])
    >>> holds("Return *the mean* of an\\n array."), holds("The mean of an arrayed")
    (True, False)
    """

    def __init__(self, wanted: Iterable[str]) -> None:
        found = {tuple(same_text(text).split()) for text in wanted} - {()}
        self._n_first = min(map(len, found), default=0)
        self._by_first: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
        for words in found:
            self._by_first.setdefault(words[: self._n_first], []).append(words)

    def __call__(self, text: str) -> bool:
        words = tuple(same_text(text).split())
        return any(
            words[at : at + len(one)] == one
            for at in range(len(words) - self._n_first + 1)
            for one in self._by_first.get(words[at : at + self._n_first], ())
        )


_WORDS = {"novels": 1_000_000, "tatoeba": 400_000, "readers": 10_000_000}
REVIEW_RECIPES = {
    "smoke": TransferRecipe(
        "smoke",
        vocab_size=400,
        d_model=16,
        n_layers=1,
        n_heads=2,
        max_len=64,
        positions="rotary",
        words={"novels": 3_000, "tatoeba": 3_000, "readers": 3_000},
        pretraining=Stage(4, 512, 5e-3),
        adapting=Stage(2, 512, 3e-3),
        rating=Stage(3, 512, 5e-3),
        mask=0.2,
        from_counts=True,
        tuning=Tuning(4, 1, 8, 3e-4, 0.1, n_curve=2, n_scored=10, keep_embeddings=True),
        fresh_tuning=Tuning(4, 1, 8, 5e-4, 0.1, n_curve=2, n_scored=10),
    ),
    "study": TransferRecipe(
        "study",
        vocab_size=6_000,
        d_model=192,
        n_layers=2,
        n_heads=6,
        max_len=256,
        positions="rotary",
        words=_WORDS,
        pretraining=Stage(2_000, 4_096, 5e-3),
        adapting=Stage(200, 4_096, 3e-3),
        rating=Stage(600, 4_096, 3e-3),
        mask=0.25,
        from_counts=True,
        tuning=Tuning(100, 4, 16, 1e-3, 0.2, keep_embeddings=True),
        fresh_tuning=Tuning(100, 8, 16, 5e-4, 0.2),
    ),
    "gpu": TransferRecipe(
        "gpu",
        vocab_size=16_000,
        d_model=512,
        n_layers=8,
        n_heads=8,
        max_len=384,
        positions="rotary",
        words={"novels": 10_000_000, "tatoeba": 2_000_000, "readers": 10_000_000},
        pretraining=Stage(20_000, 32_768, 2e-3),
        adapting=Stage(1_000, 16_384, 1e-3),
        rating=Stage(1_000, 16_384, 1e-3),
        mask=0.3,
        from_counts=True,
        tuning=Tuning(100, 6, 16, 1e-4, 0.2, keep_embeddings=True),
        fresh_tuning=Tuning(200, 10, 16, 2e-4, 0.2),
    ),
}


ALL_WORDS = 10_000_000  # of a text of one or two million
PIECES_WORDS = {DOCSTRINGS: ALL_WORDS}
PACKAGE_RECIPES = {
    "smoke": TransferRecipe(
        "smoke",
        vocab_size=400,
        d_model=16,
        n_layers=1,
        n_heads=2,
        max_len=64,
        positions="rotary",
        words={DOCSTRINGS: 3_000},
        pretraining=Stage(4, 512, 5e-3),
        mask=0.2,
        from_counts=True,
        tuning=Tuning(4, 1, 8, 3e-4, 0.1, n_curve=2, n_scored=10, keep_embeddings=True),
        fresh_tuning=Tuning(4, 1, 8, 5e-4, 0.1, n_curve=2, n_scored=10),
    ),
    "study": TransferRecipe(
        "study",
        vocab_size=6_000,
        d_model=192,
        n_layers=2,
        n_heads=6,
        max_len=128,
        positions="rotary",
        words={DOCSTRINGS: ALL_WORDS},
        pretraining=Stage(800, 2_048, 5e-3),
        mask=0.25,
        from_counts=True,
        tuning=Tuning(150, 4, 16, 1e-3, 0.2, keep_embeddings=True),
        fresh_tuning=Tuning(200, 8, 16, 1e-3, 0.2),
    ),
    "gpu": TransferRecipe(
        "gpu",
        vocab_size=12_000,
        d_model=384,
        n_layers=6,
        n_heads=6,
        max_len=256,
        positions="rotary",
        words={DOCSTRINGS: ALL_WORDS},
        pretraining=Stage(4_000, 16_384, 2e-3),
        mask=0.3,
        from_counts=True,
        tuning=Tuning(100, 6, 16, 1e-4, 0.2, keep_embeddings=True),
        fresh_tuning=Tuning(200, 10, 16, 2e-4, 0.2),
    ),
}
