"""A model against a corpus: the right measure for its kind, on a named split; the floor if known."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinytx.model import Classifier, LanguageModel, MaskedLanguageModel, Translator
from tinytx.text import Tokenizer
from tinytx.text.corpora import Corpus, load_corpus
from tinytx.text.pairs import PairCorpus
from tinytx.training.evaluation import (
    ClassifierScore,
    LanguageModelScore,
    evaluate_classifier,
    evaluate_language_model,
)
from tinytx.training.generation.beamsearch import Search
from tinytx.training.masked.blanks import BlankScore, blank_texts, evaluate_blanks
from tinytx.training.runs.checkpoints import load, load_tokenizer
from tinytx.training.settings import choose_device
from tinytx.training.translation.scoring import TranslationEvaluation, evaluate_translator
from tinytx.training.translation.translating import GREEDY


def exact_nats(corpus: Corpus, texts: Sequence[str]) -> np.ndarray | None:
    """``-log P`` of each text under the language it was drawn from, None where that is not known.

    No model can expect to do better than this on the same texts: it is the floor under a loss curve.
    """
    if corpus.name != "world":
        return None
    from tinytx.text.world import World

    return -np.asarray(World().batch_log_prob([tuple(text.split(" ")) for text in texts]))


def exact_blank_nats(corpus: Corpus, tokenizer: Tokenizer, texts: Sequence[str]) -> np.ndarray | None:
    """``-log P(piece | all others)`` of each piece of some texts, None where the language is not known."""
    if corpus.name != "world":
        return None
    from tinytx.text.world import World

    world = World().through(tokenizer)
    nats = []
    for ids in tokenizer.encode_batch(texts):
        nats.append(-np.log(world.fill_tokens(ids)[np.arange(len(ids)), ids]))
    return np.concatenate(nats)


def reported_split(corpus: Corpus) -> str:
    """The split that figures are reported on: test where there is one, else valid."""
    return "valid" if corpus.test is None else "test"


@dataclass(frozen=True)
class Evaluation:
    """What `evaluate_checkpoint` found.

    Attributes
    ----------
    corpus, split : str
    score : LanguageModelScore, BlankScore or ClassifierScore
    floor : float or None
        Exact nats per token, or per blank, of the same texts, where the language is known; None for a
        classifier.
    """

    corpus: str
    split: str
    score: LanguageModelScore | BlankScore | ClassifierScore
    floor: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """All figures as JSON can hold them."""
        kinds = {LanguageModelScore: "language_model", BlankScore: "masked_language_model"}
        kind = kinds.get(type(self.score), "classifier")
        figures = {"kind": kind, "corpus": self.corpus, "split": self.split, **self.score.to_dict()}
        if isinstance(self.score, LanguageModelScore) and self.floor is not None:
            gap = self.score.nats_per_token - self.floor
            figures |= {"floor_nats_per_token": self.floor, "gap_nats_per_token": gap}
        if isinstance(self.score, BlankScore) and self.floor is not None:
            gap = self.score.nats_per_blank - self.floor
            figures |= {"floor_nats_per_blank": self.floor, "gap_nats_per_blank": gap}
        return figures

    def __str__(self) -> str:
        line = f"{self.corpus}, {self.split} split: {self.score}"
        if isinstance(self.score, LanguageModelScore) and self.floor is not None:
            gap = self.score.nats_per_token - self.floor
            line += f"; exact floor {self.floor:.4f}, gap {gap:.4f}"
        if isinstance(self.score, BlankScore) and self.floor is not None:
            gap = self.score.nats_per_blank - self.floor
            line += f"; exact floor {self.floor:.4f}, gap {gap:.4f}"
        if isinstance(self.score, ClassifierScore) and self.score.n_cut:
            line += f"; {self.score.n_cut:,} texts were too long and lost their end"
        return line


def evaluate_checkpoint(
    checkpoint: str | os.PathLike[str],
    corpus: str | os.PathLike[str] | Corpus | PairCorpus,
    *,
    split: str | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    device: str = "auto",
    search: Search = GREEDY,
) -> Evaluation | TranslationEvaluation:
    """Evaluate what a checkpoint holds: a language model by its loss, a classifier by its accuracy.

    A translator is evaluated by its translations of a parallel corpus, see `evaluate_translator`.

    Parameters
    ----------
    checkpoint : path
        A checkpoint or run folder.
    corpus : str, path, Corpus or PairCorpus
    split : {"train", "valid", "test", "all"}, optional
        By default the test split, or valid where there is none.
    data_dir : path, optional
        Folder that holds one folder a corpus.
    device : {"auto", "cpu", "cuda"}
    search : Search
        How a translator searches.
    """
    model, tokenizer = load(checkpoint, choose_device(device)), load_tokenizer(checkpoint)
    if isinstance(model, Translator):
        if isinstance(corpus, Corpus):
            raise ValueError(f"a translator is evaluated on pairs, got the texts of {corpus.name}")
        return evaluate_translator(model, tokenizer, corpus, split=split, search=search, data_dir=data_dir)
    if isinstance(corpus, PairCorpus):
        raise ValueError(f"a {type(model).__name__} is evaluated on texts, got the pairs of {corpus.name}")
    data = corpus if isinstance(corpus, Corpus) else load_corpus(corpus, data_dir)
    chosen = reported_split(data) if split is None else split
    if chosen != "all" and chosen not in data.splits:
        raise ValueError(f"split must be all or one of {', '.join(data.splits)}, got {chosen!r}")
    return evaluate_split(model, tokenizer, data, chosen)


def evaluate_split(
    model: LanguageModel | MaskedLanguageModel | Classifier, tokenizer: Tokenizer, corpus: Corpus, split: str
) -> Evaluation:
    """Evaluate a model on one split of a corpus, or on "all"."""
    parts = list(corpus.splits.values()) if split == "all" else [corpus.splits[split]]
    texts = [text for part in parts for text in part.texts]
    if isinstance(model, LanguageModel):
        score = evaluate_language_model(model, tokenizer, texts)
        exact = exact_nats(corpus, texts)
        floor = None if exact is None else float(exact.sum()) / score.n_tokens
        return Evaluation(corpus.name, split, score, floor)
    if isinstance(model, MaskedLanguageModel):
        exact = exact_blank_nats(corpus, tokenizer, blank_texts(tokenizer, texts))
        floor = None if exact is None else float(exact.mean())
        return Evaluation(corpus.name, split, evaluate_blanks(model, tokenizer, texts), floor)
    labels = [label for part in parts for label in part.labels or ()]
    if len(labels) != len(texts):
        raise ValueError(f"a classifier is evaluated on texts with labels, got {corpus.name}, which has none")
    _check_classes(corpus, labels, model.head.out_features)
    return Evaluation(corpus.name, split, evaluate_classifier(model, tokenizer, texts, labels))


def _check_classes(corpus: Corpus, labels: Sequence[int], n_classes: int) -> None:
    names = corpus.label_names
    if names and len(names) != n_classes:
        # Another file may hold fewer of the words, which would then be numbered otherwise.
        raise ValueError(
            f"{corpus.name} must have the {n_classes} classes of the classifier, got {', '.join(names[:8])}: "
            "name all of them in their order (label_names, --label-names)"
        )
    if max(labels) >= n_classes:
        raise ValueError(
            f"labels must be from 0 to {n_classes - 1}, as the classifier knows them, got {max(labels)} "
            f"{labels.count(max(labels)):,} times in {corpus.name}"
        )
