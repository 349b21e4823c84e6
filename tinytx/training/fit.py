"""One training run from start to end: prepare, batches, loop, evaluation, checkpoint.

Pretraining, fine-tuning and translation are three recipes of one function, `fit`. What differs between them
is a task, see `tinytx.training.tasks`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tinytx.model.counting import count_parameters
from tinytx.model.transformer import Pooling
from tinytx.text.corpora import Corpus
from tinytx.text.pairs import PairCorpus
from tinytx.text.tokenizer import Tokenizer
from tinytx.training.beam import Search
from tinytx.training.checkpoint import load_tokenizer
from tinytx.training.distributed import Processes
from tinytx.training.loop import History, OnStep, train
from tinytx.training.recipes import FF_FACTOR, Recipe, parse_budget, resize
from tinytx.training.runs import check_request, find_run, open_run, read_training
from tinytx.training.settings import Layout, TrainingSettings, choose_device, choose_precision
from tinytx.training.tasks import Classification, Pretraining, Translation, fingerprint
from tinytx.training.translate import GREEDY

Report = Callable[[str], None]


@dataclass(frozen=True, eq=False, repr=False)
class FitResult:
    """A trained model and how it came about.

    Attributes
    ----------
    model : LanguageModel, MaskedLanguageModel, Classifier or Translator
        In evaluation mode, as it was after the last step: nothing was selected.
    tokenizer : Tokenizer
    history : History
        Of a classifier, ``history.evaluations`` has the accuracy after each epoch.
    recipe : Recipe
        Every number that was used.
    evaluation : Evaluation, TranslationEvaluation or None
        On the valid split; of a classifier on the test split where there is one. None where a translator was
        not to be evaluated.
    data : dict
        Numbers of the training data: of a classifier ``fresh``, ``n_labels`` and ``n_cut_in_training``
        (texts longer than the model can read), of a translator ``n_left_out`` (pairs that were too long).
    path : Path or None
        The run folder.
    """

    model: Any
    tokenizer: Tokenizer
    history: History
    recipe: Recipe
    evaluation: Any
    data: dict[str, Any]
    path: Path | None

    @property
    def accuracy_by_epoch(self) -> list[float]:
        """Accuracy of a classifier after each epoch on the reported split: to look at, not to choose by."""
        return [row["accuracy"] for row in self.history.evaluations if "accuracy" in row]

    def to_dict(self) -> dict[str, Any]:
        """Figures as JSON can hold them."""
        epochs = {"n_epochs": self.recipe.n_epochs, "accuracy_by_epoch": self.accuracy_by_epoch}
        return {
            **({} if self.evaluation is None else self.evaluation.to_dict()),
            "n_params": count_parameters(self.model),
            "vocab_size": self.recipe.vocab_size,
            "n_steps": self.recipe.settings.n_steps,
            "precision": self.recipe.settings.precision,
            "first_loss": self.history.loss[0],
            "last_loss": self.history.loss[-1],
            **({} if self.recipe.n_epochs is None else epochs),
            **self.data,
            "path": None if self.path is None else str(self.path),
        }

    def __repr__(self) -> str:
        lines = [] if self.evaluation is None else [str(self.evaluation)]
        if "n_labels" in self.data:
            start = "from scratch" if self.data["fresh"] else "pretrained"
            lines[0] = f"{start}, {self.data['n_labels']:,} labelled texts; {lines[0]}"
        if self.data.get("n_left_out"):
            lines.append(f"{self.data['n_left_out']:,} training pairs were too long and left out")
        return "\n".join(lines if self.path is None else [*lines, f"saved in {self.path}"])


def fit(
    corpus: str | os.PathLike[str] | Corpus | PairCorpus,
    *,
    objective: str = "causal",
    start: str | os.PathLike[str] | FitResult | None = None,
    fresh: bool = False,
    frozen: bool = False,
    n_labels: int | None = None,
    n_epochs: int | None = None,
    pooling: Pooling = "mean",
    n_scored: int | None = None,
    search: Search | None = GREEDY,
    budget: str | float | None = None,
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    data_dir: str | os.PathLike[str] | None = None,
    device: str = "auto",
    vocab_size: int | None = None,
    model_changes: Mapping[str, Any] | None = None,
    training_changes: Mapping[str, Any] | None = None,
    masking_changes: Mapping[str, Any] | None = None,
    layout: Layout | None = None,
    on_step: OnStep | None = None,
    progress: bool | None = None,
    report: Report = print,
) -> FitResult:
    """Train a model on the training split of a corpus and evaluate it on a held-out one.

    Parameters
    ----------
    corpus : str, path, Corpus or PairCorpus
        A name, a file, or a corpus at hand; pairs for translation, labelled texts for classification.
    objective : {"causal", "masked", "masked+nsp", "translation", "classification"}
        Predict the next token; predict hidden tokens, as BERT; that, and whether one sentence follows
        another; translate; name the class of a text (fine-tuning).
    start : path, str or FitResult
        For classification only, and needed there: the checkpoint that gives tokenizer, configuration and
        body, or a published model by its name or folder, which then learns at ``PUBLISHED_RATE`` for at most
        ``PUBLISHED_EPOCHS`` epochs. The body is copied: what is passed in stays as it is.
    fresh : bool
        Classification: tokenizer and configuration of ``start``, but new weights (the baseline without
        pretraining).
    frozen : bool
        Classification: train the head alone (a linear probe), at `PROBE_RATE` times the learning rate.
    n_labels : int, optional
        Classification: learn from so many texts only, equally many of each class, drawn by ``seed``.
    n_epochs : int, optional
        Classification: passes over the texts; by default the budget's.
    pooling : {"mean", "last", "first"}
        Classification: see `Classifier`.
    n_scored : int, optional
        Classification: texts that the accuracy after each epoch is measured on; by default all. The final
        evaluation counts them all.
    search : Search, optional
        Translation: how the valid split is translated; None leaves that out.
    budget : str or float, optional
        Name or seconds; by default that of the environment, see `default_budget`.
    seed : int
        Of first weights, data order, dropout, and the subset of labels.
    out : path, optional
        Run folder for checkpoints; None writes nothing.
    resume : bool
        Resume the run in ``out``; a missing or empty folder starts afresh, a finished run is only read.
    data_dir : path, optional
        Folder that holds one folder a corpus.
    device : {"auto", "cpu", "cuda"}
    vocab_size : int, optional
        Exactly so many tokens; by default the budget's, or fewer where the text cannot fill them.
    model_changes, training_changes, masking_changes : mapping, optional
        Fields of `TransformerConfig`, `TrainingSettings` and `Masking` that replace those of the recipe.
    layout, progress
        See `train`.
    on_step : callable, optional
        See `train`. For classification it replaces the accuracy after each epoch.
    report : callable
        Gets the plan, and what should be known about the data, a line each.

    Returns
    -------
    FitResult

    Raises
    ------
    ValueError
        For a request that makes no sense, or differs from the one stored with the checkpoint.
    """
    processes = Processes.current()
    report = report if processes.first else lambda line: None
    where, asked = choose_device(device), parse_budget(budget)
    stored = processes.agree(lambda: _stored(out, resume, report))
    task: Pretraining
    if objective == "classification":
        task = Classification(corpus, data_dir, start, fresh, frozen, n_labels, n_epochs, pooling, n_scored)
    elif start is not None:
        raise ValueError(f"start goes with the objective classification, got {objective!r}")
    elif objective == "translation":
        task = Translation(corpus, data_dir, search)
    else:
        task = Pretraining(corpus, data_dir, objective)
    changes = {"model": model_changes, "training": training_changes, "masking": masking_changes}
    request = {
        "objective": objective,
        "corpus": task.corpus.name,
        "training texts": fingerprint(task.corpus),
        "budget": asked,
        "seed": seed,
        "vocab_size": vocab_size,
        **{name: dict(fields or {}) for name, fields in changes.items()},
        **task.request(),
    }
    task.check_changes(request["model"], request["training"])
    if stored is None:
        recipe = _changed(task.recipe(asked, seed), request, where)
        tokenizer = processes.agree(lambda: task.tokenizer(recipe.vocab_size, exact=vocab_size is not None))
        recipe = task.with_tokenizer(recipe, tokenizer)
    else:
        check_request(stored["request"], request)
        recipe, tokenizer = Recipe.from_dict(stored["recipe"]), stored["tokenizer"]
    learning = task.objective(tokenizer, recipe)
    model = task.model(recipe, seed).to(where)
    expected = ""
    if stored is None:
        recipe, expected = task.schedule(recipe, asked, learning, model, layout)
    report(describe(model, recipe.settings) + expected)
    for line in task.remarks(recipe):
        report(line)
    with contextlib.ExitStack() as stack:
        checkpoints = None
        if out is not None and processes.first:
            made = {"request": request, "recipe": recipe.to_dict()}
            checkpoints = stack.enter_context(open_run(out, made, tokenizer, report))
        history = train(
            model,
            learning,
            recipe.settings,
            checkpoints=checkpoints,
            layout=layout,
            on_step=on_step or task.on_step(tokenizer, recipe, learning),
            progress=progress,
            label=task.label,
        )
    model.requires_grad_(True)  # a frozen body may be trained later
    evaluation = processes.agree(lambda: task.evaluate(model, tokenizer))
    path = None if out is None else Path(out)
    return FitResult(model, tokenizer, history, recipe, evaluation, task.data, path)


def _stored(out: str | os.PathLike[str] | None, resume: bool, report: Report) -> dict[str, Any] | None:
    """Request, recipe and tokenizer of the run in a folder; None where a run may begin afresh."""
    checkpoint = find_run(out, resume, report)
    if checkpoint is None:
        return None
    return {**read_training(checkpoint)["plan"], "tokenizer": load_tokenizer(checkpoint)}


def _changed(recipe: Recipe, request: Mapping[str, Any], where: torch.device) -> Recipe:
    """The budget's recipe with what was asked for in its place."""
    training, model, masking = (dict(request[name]) for name in ("training", "model", "masking"))
    settings = recipe.settings
    if "n_steps" in training:
        settings = resize(settings, training["n_steps"])
    settings = settings.replace(**training)
    settings = settings.replace(precision=choose_precision(settings.precision, where))
    if "d_model" in model:
        model.setdefault("d_ff", FF_FACTOR * model["d_model"])
    if masking:
        if recipe.masking is None:
            raise ValueError(f"only a masked model has masking, got {', '.join(masking)} for another one")
        recipe = recipe.replace(masking=recipe.masking.replace(**masking))
    vocab_size = recipe.vocab_size if request["vocab_size"] is None else request["vocab_size"]
    return recipe.replace(vocab_size=vocab_size, config=recipe.config.replace(**model), settings=settings)


def describe(model: Any, settings: TrainingSettings) -> str:
    """Summarise model size and training length in one line."""
    config = model.config
    return (
        f"{config.n_layers} layers of width {config.d_model}, a vocabulary of {config.vocab_size:,}, "
        f"{count_parameters(model):,} parameters; {settings.n_steps:,} steps of up to "
        f"{settings.tokens_per_batch:,} tokens, {settings.precision}"
    )
