"""Fine-tuning from start to end: a pretrained body, or a fresh one, learns to name the class of a text."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tinytx.model import Classifier, TransformerBody, Translator
from tinytx.model.interop import is_published
from tinytx.model.transformer import Pooling
from tinytx.text import Tokenizer
from tinytx.text.corpora import Corpus, load_corpus
from tinytx.training.budgets import (
    FinetuneRecipe,
    corpus_kind,
    parse_budget,
    plan_finetuning,
    resize,
    steps_within,
)
from tinytx.training.engine.loop import History, train
from tinytx.training.epochs import EpochScoring, epoch_ends, n_steps_of, objective_of
from tinytx.training.evaluation import ClassifierScore, check_vocabulary
from tinytx.training.objectives import ClassificationObjective
from tinytx.training.parallel.distributed import Processes
from tinytx.training.plans import check_request, describe, fingerprint, stored_plan
from tinytx.training.pretraining import PretrainResult, Report
from tinytx.training.runs.checkpoints import load, load_tokenizer
from tinytx.training.runs.runfolder import RunFolder
from tinytx.training.scoring import reported_split
from tinytx.training.settings import Layout, TrainingSettings, choose_device, choose_precision
from tinytx.training.subsets import label_subset

PROBE_RATE = 10.0
# For models that others pretrained at length: Devlin et al., arXiv 1810.04805, appendix A.3.
PUBLISHED_RATE, PUBLISHED_EPOCHS = 3e-5, 4


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
    accumulate: int = 1,
    progress: bool | None = None,
    report: Report = print,
) -> FinetuneResult:
    """Train a classifier on labelled texts for a fixed number of epochs and report the last one.

    Parameters
    ----------
    checkpoint : path, str or PretrainResult
        Gives tokenizer, configuration and body; also a folder of the package `transformers`, or the name of a
        published model, such as "camembert-base", which then learns at ``PUBLISHED_RATE`` for at most
        ``PUBLISHED_EPOCHS`` epochs. The body keeps the attention it was pretrained with, and is
        copied: what is passed in stays as it is. One that looks both ways reads texts between ``cls`` and
        ``sep``.
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
    accumulate : int
        See `Layout`.
    progress : bool, optional
        Show a bar; by default when a person watches.
    report : callable
        Told the plan, and how many texts were cut, a line each.

    Returns
    -------
    FinetuneResult
    """
    processes = Processes.current()
    report = report if processes.first else lambda line: None
    layout = Layout(accumulate=accumulate)
    where = choose_device(device)
    stored = processes.agree(lambda: stored_plan(out, resume))
    asked = parse_budget(budget)
    data = corpus if isinstance(corpus, Corpus) else load_corpus(corpus, data_dir)
    recipe = plan_finetuning(corpus_kind(data), asked)
    if frozen:
        recipe = dataclasses.replace(recipe, lr=PROBE_RATE * recipe.lr)
    elif not fresh and not isinstance(checkpoint, PretrainResult) and is_published(checkpoint):
        n_epochs = min(recipe.n_epochs, PUBLISHED_EPOCHS)
        recipe = dataclasses.replace(recipe, lr=PUBLISHED_RATE, n_epochs=n_epochs)
    recipe = dataclasses.replace(recipe, **dict(recipe_changes or {}))
    given, tokenizer = body_and_tokenizer(checkpoint)
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
    learning, n_cut = objective_of(tokenizer, learned, given.config)
    model = _new_classifier(given, recipe.dropout, _n_classes(data), pooling, fresh, seed)
    model.to(where)
    model.body.requires_grad_(not frozen)
    expected = ""
    if stored is None:
        recipe, settings, expected = _fixed_plan(recipe, asked, learning, model, seed, layout)
    else:
        check_request(stored, request)
        recipe = FinetuneRecipe(**stored["recipe"])
        settings = TrainingSettings.from_dict(stored["settings"])
    report(
        f"{describe(model, settings)}; {len(learned):,} labelled texts, {recipe.n_epochs} epochs{expected}"
    )
    if n_cut:
        report(f"{n_cut:,} of {len(learned):,} texts exceed {model.config.max_len} ids and lose their end")
    scoring = EpochScoring(tokenizer, data.splits[reported_split(data)], model.config, n_scored)
    plan = {"request": request, "recipe": dataclasses.asdict(recipe), "settings": settings.to_dict()}
    with RunFolder.opened(out if processes.first else None, plan, tokenizer, report) as run:
        ends = epoch_ends(learning, settings, recipe.n_epochs)
        label = "from scratch" if fresh else "probing" if frozen else "fine-tuning"
        history = train(
            model,
            learning,
            settings,
            run=run,
            layout=layout,
            on_step=scoring.after(ends),
            progress=progress,
            label=label,
        )
    model.body.requires_grad_(True)
    score = processes.agree(lambda: scoring.score(model))
    split, path = reported_split(data), None if out is None else Path(out)
    return FinetuneResult(model, tokenizer, history, recipe, fresh, split, score, len(learned), n_cut, path)


def weights_fingerprint(body: TransformerBody) -> str:
    """A short name for the weights of a body, which changes whenever any of them does."""
    digest = hashlib.sha256()
    for name, tensor in body.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def body_and_tokenizer(
    checkpoint: str | os.PathLike[str] | PretrainResult,
) -> tuple[TransformerBody, Tokenizer]:
    """The body to be fine-tuned and its tokenizer; a checkpoint that has none is refused."""
    if isinstance(checkpoint, PretrainResult):
        return checkpoint.model.body, checkpoint.tokenizer
    model, tokenizer = load(checkpoint), load_tokenizer(checkpoint)
    if isinstance(model, Translator):
        raise ValueError("fine-tuning needs a model with one body, got a translator")
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
    layout: Layout,
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
        timed, seconds = steps_within(asked, lambda: copy.deepcopy(model), learning, settings, layout=layout)
        n_epochs = 1
        while n_steps_of(learning, settings, n_epochs + 1) <= timed.n_steps:
            n_epochs += 1
        recipe = dataclasses.replace(recipe, n_epochs=n_epochs)
        expected = f", about {seconds * n_steps_of(learning, settings, n_epochs) / timed.n_steps:.0f} s"
    return recipe, resize(settings, n_steps_of(learning, settings, recipe.n_epochs)), expected
