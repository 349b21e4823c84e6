"""Fine-tuning from start to end: a pretrained body, or a fresh one, learns to name the class of a text."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import itertools
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from tinytx.model import Classifier, TransformerBody
from tinytx.model.transformer import Pooling
from tinytx.text import Tokenizer
from tinytx.text.corpora import Corpus, Split, load_corpus
from tinytx.training.budgets import (
    FinetuneRecipe,
    corpus_kind,
    parse_budget,
    plan_finetuning,
    resize,
    steps_within,
)
from tinytx.training.checkpoints import load, load_tokenizer
from tinytx.training.evaluation import (
    ClassifierScore,
    check_vocabulary,
    classifier_inputs,
    count_correct,
)
from tinytx.training.loop import History, OnStep, train
from tinytx.training.objectives import ClassificationObjective
from tinytx.training.plans import check_request, describe, fingerprint, stored_plan
from tinytx.training.pretraining import PretrainResult, Report
from tinytx.training.runfolder import RunFolder
from tinytx.training.scoring import reported_split
from tinytx.training.settings import TrainingSettings, choose_device, choose_precision

PROBE_RATE = 10.0


@dataclass(frozen=True, eq=False, repr=False)
class FinetuneResult:
    """A fine-tuned classifier and how it came about.

    Attributes
    ----------
    model : Classifier
        In evaluation mode, as it was after the last epoch: nothing was selected.
    tokenizer : Tokenizer
    history : History
        ``history.evaluations`` holds the accuracy after each epoch.
    recipe : FinetuneRecipe
    fresh : bool
        Whether the body began with new weights.
    split : str
        The split that ``score`` was measured on.
    score : ClassifierScore
    n_labels : int
        Labelled texts that were learned from.
    n_cut : int
        Of these, how many were longer than the model can read and lost their end.
    path : Path or None
        The run folder.
    """

    model: Classifier
    tokenizer: Tokenizer
    history: History
    recipe: FinetuneRecipe
    fresh: bool
    split: str
    score: ClassifierScore
    n_labels: int
    n_cut: int
    path: Path | None

    def to_dict(self) -> dict[str, Any]:
        """Figures as JSON can hold them."""
        return {
            "kind": "classifier",
            "fresh": self.fresh,
            "split": self.split,
            **self.score.to_dict(),
            "n_labels": self.n_labels,
            "n_cut_in_training": self.n_cut,
            "n_epochs": self.recipe.n_epochs,
            "accuracy_by_epoch": self.accuracy_by_epoch,
            "path": None if self.path is None else str(self.path),
        }

    def __repr__(self) -> str:
        start = "from scratch" if self.fresh else "pretrained"
        cut = f"; {self.score.n_cut:,} texts were too long and lost their end" if self.score.n_cut else ""
        kept = "" if self.path is None else f"\nkept in {self.path}"
        return f"{start}, {self.n_labels:,} labelled texts, {self.split} split: {self.score}{cut}{kept}"

    @property
    def accuracy_by_epoch(self) -> list[float]:
        """Accuracy after each epoch on the reported split: to look at, not to choose by."""
        return [evaluation["accuracy"] for evaluation in self.history.evaluations]


def finetune(
    checkpoint: str | os.PathLike[str] | PretrainResult,
    corpus: str | os.PathLike[str] | Corpus,
    *,
    fresh: bool = False,
    frozen: bool = False,
    budget: str | float | None = None,
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    data_dir: str | os.PathLike[str] | None = None,
    device: str = "auto",
    n_labels: int | None = None,
    pooling: Pooling = "mean",
    recipe_changes: Mapping[str, Any] | None = None,
    n_scored: int | None = None,
    progress: bool | None = None,
    report: Report = print,
) -> FinetuneResult:
    """Train a classifier on labelled texts for a fixed number of epochs and report the last one.

    Parameters
    ----------
    checkpoint : path or PretrainResult
        Gives tokenizer, configuration and body. The body keeps the attention it was pretrained with, and is
        copied: what is passed in stays as it is.
    corpus : str, path or Corpus
        With labels.
    fresh : bool
        Same tokenizer and configuration, but new weights: training from scratch.
    frozen : bool
        Train the head alone and leave the body as it is, a *probe* of what its vectors already tell. The
        learning rate is then `PROBE_RATE` times that of the recipe: the head is all there is to move.
    budget : str or float, optional
        Name or seconds; by default that of the environment, see `default_budget`.
    seed : int
        Of the subset of labels, the new weights, data order and dropout.
    out, resume, data_dir, device : see `pretrain`
    n_labels : int, optional
        Learn from so many texts only, equally many of each class, drawn by ``seed``.
    pooling : {"mean", "last", "first"}
    recipe_changes : mapping, optional
        Fields of `FinetuneRecipe` to be used in place of the budget's.
    n_scored : int, optional
        Texts of the reported split that the curve looks at after each epoch; the final score counts them all.
    progress : bool, optional
        Show a bar; by default when a person watches.
    report : callable
        Told the plan, and how many texts were cut, a line each.

    Returns
    -------
    FinetuneResult
    """
    where = choose_device(device)
    stored = stored_plan(out, resume)
    asked = parse_budget(budget)
    data = corpus if isinstance(corpus, Corpus) else load_corpus(corpus, data_dir)
    recipe = plan_finetuning(corpus_kind(data), asked)
    if frozen:
        recipe = dataclasses.replace(recipe, lr=PROBE_RATE * recipe.lr)
    recipe = dataclasses.replace(recipe, **dict(recipe_changes or {}))
    given, tokenizer = _body_and_tokenizer(checkpoint)
    request = {
        "command": "finetune",
        "checkpoint": weights_fingerprint(given),
        "corpus": data.name,
        "texts": fingerprint(data),
        "fresh": fresh,
        "frozen": frozen,
        "budget": asked,
        "seed": seed,
        "n_labels": n_labels,
        "pooling": pooling,
        "changes": dict(recipe_changes or {}),
    }
    learned = data.train if n_labels is None else label_subset(data.train, n_labels, seed)
    learning, n_cut = _objective(tokenizer, learned, given.config.max_len)
    model = _new_classifier(given, recipe.dropout, _n_classes(data), pooling, fresh, seed)
    model.to(where)
    model.body.requires_grad_(not frozen)
    expected = ""
    if stored is None:
        recipe, settings, expected = _fixed_plan(recipe, asked, learning, model, seed)
    else:
        check_request(stored, request)
        recipe = FinetuneRecipe(**stored["recipe"])
        settings = TrainingSettings.from_dict(stored["settings"])
    report(
        f"{describe(model, settings)}; {len(learned):,} labelled texts, {recipe.n_epochs} epochs{expected}"
    )
    if n_cut:
        report(f"{n_cut:,} of {len(learned):,} texts exceed {model.config.max_len} ids and lose their end")
    scoring = _Scoring(tokenizer, data.splits[reported_split(data)], model.config.max_len, n_scored)
    plan = {"request": request, "recipe": dataclasses.asdict(recipe), "settings": settings.to_dict()}
    with RunFolder.opened(out, plan, tokenizer, report) as run:
        ends = _epoch_ends(learning, settings, recipe.n_epochs)
        label = "from scratch" if fresh else "probing" if frozen else "fine-tuning"
        history = train(
            model, learning, settings, run=run, on_step=scoring.after(ends), progress=progress, label=label
        )
    model.body.requires_grad_(True)
    score = scoring.score(model)
    split, path = reported_split(data), None if out is None else Path(out)
    return FinetuneResult(model, tokenizer, history, recipe, fresh, split, score, len(learned), n_cut, path)


def label_subset(split: Split, n_labels: int, seed: int) -> Split:
    """Some texts of a split, drawn by ``seed``, with as many of each class as can be.

    Examples
    --------
    >>> subset = label_subset(Split(tuple("abcdefgh"), (0, 1) * 4), 4, seed=0)
    >>> sorted(subset.labels)
    [0, 0, 1, 1]
    """
    labels = split.labels or ()
    if not 1 <= n_labels <= len(labels):
        raise ValueError(f"n_labels must be from 1 to {len(labels)}, the labels there are, got {n_labels}")
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(len(labels)).tolist()
    # The first text of each class, then the second of each, and so on.
    seen: dict[int, int] = {}
    rank = {}
    for index in shuffled:
        rank[index] = seen.get(labels[index], 0)
        seen[labels[index]] = rank[index] + 1
    chosen = sorted(sorted(shuffled, key=rank.__getitem__)[:n_labels])
    return Split(tuple(split.texts[i] for i in chosen), tuple(labels[i] for i in chosen))


def weights_fingerprint(body: TransformerBody) -> str:
    """A short name for the weights of a body, which changes whenever any of them does."""
    digest = hashlib.sha256()
    for name, tensor in body.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def _body_and_tokenizer(
    checkpoint: str | os.PathLike[str] | PretrainResult,
) -> tuple[TransformerBody, Tokenizer]:
    if isinstance(checkpoint, PretrainResult):
        return checkpoint.model.body, checkpoint.tokenizer
    model, tokenizer = load(checkpoint), load_tokenizer(checkpoint)
    check_vocabulary(model, tokenizer)
    return model.body, tokenizer


def _n_classes(corpus: Corpus) -> int:
    n_classes = corpus.n_classes
    if n_classes is None:
        raise ValueError(f"fine-tuning needs a corpus with labels, got {corpus.name}, which has none")
    if n_classes > len(corpus.train):
        raise ValueError(
            f"labels must count up from 0, got the label {n_classes - 1} among {len(corpus.train)} texts"
        )
    return n_classes


def _objective(tokenizer: Tokenizer, split: Split, max_len: int) -> tuple[ClassificationObjective, int]:
    sequences, n_cut = classifier_inputs(tokenizer, split.texts, max_len)
    return ClassificationObjective(sequences, split.labels or (), pad_id=tokenizer.pad_id), n_cut


def _new_classifier(
    given: TransformerBody, dropout: float, n_classes: int, pooling: Pooling, fresh: bool, seed: int
) -> Classifier:
    """A classifier with a new head on a copy of the body, or all new."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Classifier(given.config.replace(dropout=dropout), n_classes, pooling)
    if not fresh:
        model.body.load_state_dict(given.state_dict())
    return model


def _fixed_plan(
    recipe: FinetuneRecipe,
    asked: str | float,
    learning: ClassificationObjective,
    model: Classifier,
    seed: int,
) -> tuple[FinetuneRecipe, TrainingSettings, str]:
    """Turn epochs, or seconds, into a number of steps."""
    settings = TrainingSettings(
        n_steps=1,
        lr=recipe.lr,
        tokens_per_batch=recipe.tokens_per_batch,
        seed=seed,
        precision=choose_precision("auto", next(model.parameters()).device),
    )
    expected = ""
    if isinstance(asked, float):
        timed, seconds = steps_within(asked, lambda: copy.deepcopy(model), learning, settings)
        n_epochs = 1
        while _n_steps(learning, settings, n_epochs + 1) <= timed.n_steps:
            n_epochs += 1
        recipe = dataclasses.replace(recipe, n_epochs=n_epochs)
        expected = f", about {seconds * _n_steps(learning, settings, n_epochs) / timed.n_steps:.0f} s"
    return recipe, resize(settings, _n_steps(learning, settings, recipe.n_epochs)), expected


def _epoch_ends(learning: ClassificationObjective, settings: TrainingSettings, n_epochs: int) -> list[int]:
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


def _n_steps(learning: ClassificationObjective, settings: TrainingSettings, n_epochs: int) -> int:
    return _epoch_ends(learning, settings, n_epochs)[-1]


class _Scoring:
    """Scores on one split: of its first texts after each epoch, of all at the end."""

    def __init__(self, tokenizer: Tokenizer, split: Split, max_len: int, n_scored: int | None) -> None:
        self._whole, self._n_cut = _objective(tokenizer, split, max_len)
        self._n = len(split)
        first = split if n_scored is None else Split(split.texts[:n_scored], (split.labels or ())[:n_scored])
        self._n_first = len(first)
        self._first = self._whole if first is split else _objective(tokenizer, first, max_len)[0]

    def after(self, epoch_ends: list[int]) -> OnStep:
        """A callback that scores the model at the end of each epoch."""

        def on_step(step: int, model: nn.Module) -> dict[str, Any] | None:
            if step not in epoch_ends or not isinstance(model, Classifier):
                return None
            correct = count_correct(model, self._first)
            return {
                "epoch": 1 + epoch_ends.index(step),
                "accuracy": correct / self._n_first,
                "n": self._n_first,
            }

        return on_step

    def score(self, model: Classifier) -> ClassifierScore:
        """The score on the whole split."""
        return ClassifierScore(count_correct(model, self._whole), self._n, self._n_cut)
