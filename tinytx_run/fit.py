"""One training run from start to end: prepare, batches, loop, evaluation, checkpoint.

Pretraining, fine-tuning and translation are three recipes of one function, `fit`. What differs between them
is a task, see `tinytx_run.tasks`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tinytx.beam import Search
from tinytx.counting import count_parameters
from tinytx.loop import History, OnStep
from tinytx.settings import TrainingSettings, choose_device, choose_precision
from tinytx.tokenizer import Tokenizer
from tinytx.transformer import Pooling
from tinytx.translate import GREEDY
from tinytx_run.checkpoint import load_tokenizer
from tinytx_run.corpora import Corpus
from tinytx_run.distributed import Layout, Processes, require_processes, train
from tinytx_run.pairs import PairCorpus
from tinytx_run.recipes import FF_FACTOR, Recipe, parse_budget, resize
from tinytx_run.runs import check_request, find_run, open_run, read_training
from tinytx_run.tasks import Classification, Pretraining, Translation, fingerprint

Report = Callable[[str], None]
# Settings that `resize` chooses by the number of steps: what was asked for replaces them once that is known.
OF_LENGTH = ("warmup_steps", "decay_steps", "log_every", "checkpoint_every")


@dataclass(frozen=True, eq=False, repr=False)
class FitResult:
    """A trained model and how it came about.

    Attributes
    ----------
    model : LanguageModel, MaskedLanguageModel, Classifier or Translator
        In evaluation mode, as it was after the last step: nothing was selected.
    tokenizer : Tokenizer
    history : History
    recipe : Recipe
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
    objective : {"causal", "masked", "masked+nsp", "hybrid", "translation", "classification"}
        Predict the next token; predict masked tokens, as BERT; that, and whether one sentence follows
        another; the first two in turn, in one causal model; translate; name the class of a text
        (fine-tuning).
    start : path, str or FitResult
        Classification, needed there: the checkpoint that gives tokenizer, configuration and body, or a
        published model by its name or folder, which then learns at ``PUBLISHED_RATE`` for at most
        ``PUBLISHED_EPOCHS`` epochs. The body is copied.
    fresh : bool
        Classification: new weights in place of those of ``start`` (the baseline without pretraining).
    frozen : bool
        Classification: train the head alone (a linear probe), at `PROBE_RATE` times the learning rate.
    n_labels : int, optional
        Classification: learn from so many texts only, equally many of each class, drawn by ``seed``. By
        default all; at the budget "smoke" 1,000 at most.
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
    layout, on_step, progress
        See `train`. For classification ``on_step`` replaces the accuracy after each epoch.
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
    require_processes(layout)
    stored = processes.agree(lambda: _stored(out, resume, report))
    task: Pretraining
    if objective != "classification":
        given = {"start": start, "n_labels": n_labels, "n_epochs": n_epochs, "n_scored": n_scored}
        given |= {"fresh": fresh or None, "frozen": frozen or None}
        given |= {"pooling": None if pooling == "mean" else pooling}
        if wrong := ", ".join(name for name, value in given.items() if value is not None):
            raise ValueError(
                f"{wrong} must be left out unless the objective is classification, got {objective!r}"
            )
    if objective == "classification":
        if vocab_size is not None:
            raise ValueError(
                f"vocab_size must be left out, as the tokenizer is that of start, got {vocab_size}"
            )
        task = Classification(corpus, data_dir, start, fresh, frozen, n_labels, n_epochs, pooling, n_scored)
    elif objective == "translation":
        task = Translation(corpus, data_dir, search)
    else:
        task = Pretraining(corpus, data_dir, objective)
    request = {
        "objective": objective,
        "corpus": task.corpus.name,
        "training texts": fingerprint(task.corpus),
        "budget": asked,
        "seed": seed,
        "vocab_size": vocab_size,
        "model": dict(model_changes or {}),
        "training": dict(training_changes or {}),
        "masking": dict(masking_changes or {}),
        **task.request(),
    }
    recipe, tokenizer = _restored(stored, request) if stored else _planned(task, request, where)
    learning, model = task.objective(tokenizer, recipe), task.model(recipe, seed).to(where)
    expected = ""
    if not stored:
        recipe, expected = task.schedule(recipe, asked, learning, model, layout)
        of_length = {name: value for name, value in request["training"].items() if name in OF_LENGTH}
        recipe = recipe.replace(settings=recipe.settings.replace(**of_length))
    for line in (describe(model, recipe.settings) + expected, *task.remarks(recipe)):
        report(line)
    plan = {"request": request, "recipe": recipe.to_dict()}
    run: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
    if out is not None and processes.first:
        run = open_run(out, plan, tokenizer, report)
    with run as checkpoints:
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


def _restored(stored: Mapping[str, Any], request: Mapping[str, Any]) -> tuple[Recipe, Tokenizer]:
    """Recipe and tokenizer of a stored run, if the same was requested then."""
    check_request(stored["request"], request)
    return Recipe.from_dict(stored["recipe"]), stored["tokenizer"]


def _planned(task: Pretraining, request: Mapping[str, Any], where: torch.device) -> tuple[Recipe, Tokenizer]:
    """The recipe of a new run, with the changes that were requested, and its tokenizer."""
    model, training, masking = (dict(request[name]) for name in ("model", "training", "masking"))
    task.check_changes(model, training)
    if model.get("vocab_size", request["vocab_size"]) != request["vocab_size"]:
        raise ValueError(
            f"vocab_size must be given as such, not among model_changes alone, got {model['vocab_size']}"
        )
    recipe = task.recipe(request["budget"], request["seed"])
    given = {"n_steps": training.get("n_steps"), "n_epochs": request.get("n_epochs")}
    for name, value in given.items():
        if value is not None and isinstance(request["budget"], float):
            raise ValueError(
                f"{name} must be left out with a budget in seconds, got {value} and {request['budget']:g} s"
            )
    now = {name: value for name, value in training.items() if name not in OF_LENGTH}
    settings = resize(recipe.settings, training.get("n_steps", recipe.settings.n_steps)).replace(**now)
    settings = settings.replace(precision=choose_precision(settings.precision, where))
    if "d_model" in model:
        model.setdefault("d_ff", FF_FACTOR * model["d_model"])
    if masking:
        if recipe.masking is None:
            raise ValueError(f"only a masked model has masking, got {', '.join(masking)} for another one")
        changed = dataclasses.replace(recipe.masking, **masking)
        if (changed.causal_share > 0) != (request["objective"] == "hybrid"):
            raise ValueError(
                "causal_share must be above 0 for the objective hybrid, and 0 for others, "
                f"got {changed.causal_share} for {request['objective']}"
            )
        recipe = recipe.replace(masking=changed)
    recipe = recipe.replace(config=recipe.config.replace(**model), settings=settings)
    exact = request["vocab_size"] is not None
    vocab_size = request["vocab_size"] if exact else recipe.vocab_size
    tokenizer = Processes.current().agree(lambda: task.tokenizer(vocab_size, exact=exact))
    return task.with_tokenizer(recipe, tokenizer), tokenizer


def describe(model: Any, settings: TrainingSettings) -> str:
    """Summarise model size and training length in one line."""
    config = model.config
    return (
        f"{config.n_layers} layers of width {config.d_model}, a vocabulary of {config.vocab_size:,}, "
        f"{count_parameters(model):,} parameters; {settings.n_steps:,} steps of up to "
        f"{settings.tokens_per_batch:,} tokens, {settings.precision}"
    )
