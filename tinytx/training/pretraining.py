"""Pretraining from start to end: corpus, tokenizer, model, training, held-out loss."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from tinytx.model import LanguageModel, MaskedLanguageModel, count_parameters
from tinytx.text import SPECIAL_PIECES, Tokenizer
from tinytx.text.corpora import Corpus, load_corpus
from tinytx.training.budgets import FF_FACTOR, Recipe, corpus_kind, parse_budget, plan, resize, steps_within
from tinytx.training.engine.loop import History, OnStep, train
from tinytx.training.objectives import Objective
from tinytx.training.parallel.distributed import Processes
from tinytx.training.plans import check_request, describe, fingerprint, stored_plan, stored_tokenizer
from tinytx.training.runs.runfolder import RunFolder
from tinytx.training.scoring import Evaluation, evaluate_split
from tinytx.training.settings import Layout, choose_device, choose_precision
from tinytx.training.tasks import new_model, objective_for

Report = Callable[[str], None]
RecipeT = TypeVar("RecipeT", bound=Recipe)


@dataclass(frozen=True, eq=False, repr=False)
class PretrainResult:
    """A pretrained model and how it came about.

    Attributes
    ----------
    model : LanguageModel or MaskedLanguageModel
        In evaluation mode.
    tokenizer : Tokenizer
    history : History
    recipe : Recipe
        Every number that was used.
    evaluation : Evaluation
        Loss on the valid split, with the exact floor where the language is known; of a masked model the loss
        on blanks, see `evaluate_blanks`.
    path : Path or None
        The run folder.
    """

    model: LanguageModel | MaskedLanguageModel
    tokenizer: Tokenizer
    history: History
    recipe: Recipe
    evaluation: Evaluation
    path: Path | None

    def to_dict(self) -> dict[str, Any]:
        """Figures as JSON can hold them."""
        return {
            **self.evaluation.to_dict(),
            "n_params": count_parameters(self.model),
            "vocab_size": self.recipe.vocab_size,
            "n_steps": self.recipe.settings.n_steps,
            "precision": self.recipe.settings.precision,
            "first_loss": self.history.loss[0],
            "last_loss": self.history.loss[-1],
            "path": None if self.path is None else str(self.path),
        }

    def __repr__(self) -> str:
        kept = "" if self.path is None else f"\nkept in {self.path}"
        return f"{self.evaluation}{kept}"


def pretrain(
    corpus: str | os.PathLike[str] | Corpus,
    *,
    objective: str = "causal",
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
) -> PretrainResult:
    """Train a tokenizer and a language model on the training split, and measure the valid split.

    Parameters
    ----------
    corpus : str, path or Corpus
        A name, a file, or a corpus at hand; labels are not looked at.
    objective : {"causal", "masked", "masked+nsp"}
        Predict the next token; predict hidden ones, as BERT; that, and whether one sentence follows another.
    budget : str or float, optional
        Name or seconds; by default that of the environment, see `default_budget`.
    seed : int
        Of first weights, data order and dropout.
    out : path, optional
        Run folder for plan and checkpoints; None writes nothing.
    resume : bool
        Go on with the run in ``out``; a missing or empty folder starts afresh, a finished run is only read.
    data_dir : path, optional
        Folder that holds one folder a corpus.
    device : {"auto", "cpu", "cuda"}
    vocab_size : int, optional
        Pieces, exactly so many; by default the budget's, or fewer where the text cannot fill them.
    model_changes, training_changes, masking_changes : mapping, optional
        Fields of `TransformerConfig`, `TrainingSettings` and, for a masked model, `Masking`, to be used in
        place of the budget's.
    layout, on_step
        See `train`.
    progress : bool, optional
        Show a bar; by default when a person watches.
    report : callable
        Told the plan in one line.

    Returns
    -------
    PretrainResult
    """
    processes = Processes.current()
    report = report if processes.first else lambda line: None
    where = choose_device(device)
    stored = processes.agree(lambda: stored_plan(out, resume))
    asked = parse_budget(budget)
    data = corpus if isinstance(corpus, Corpus) else load_corpus(corpus, data_dir)
    request = {
        "command": "pretrain",
        "corpus": data.name,
        "texts": fingerprint(data),
        "objective": objective,
        "budget": asked,
        "seed": seed,
        "vocab_size": vocab_size,
        "model": dict(model_changes or {}),
        "training": dict(training_changes or {}),
        **({"masking": dict(masking_changes)} if masking_changes else {}),
    }
    if stored is None:
        recipe = changed_recipe(plan(corpus_kind(data), objective, asked, seed=seed), request, where)
        exact, kind = vocab_size is not None, corpus_kind(data)
        size = recipe.vocab_size
        tokenizer = processes.agree(lambda: train_tokenizer(data.train.texts, size, exact=exact, kind=kind))
        recipe = with_vocabulary(recipe, tokenizer.vocab_size)
    else:
        check_request(stored, request)
        recipe = Recipe.from_dict(stored["recipe"])
        size = recipe.vocab_size
        tokenizer = processes.agree(
            lambda: (
                stored_tokenizer(out or "", stored)
                or train_tokenizer(data.train.texts, size, kind=corpus_kind(data))
            )
        )
    learning = objective_for(recipe, tokenizer, data.train.texts)
    expected = ""
    if stored is None and isinstance(asked, float):
        recipe, expected = timed_recipe(
            recipe, asked, learning, lambda: new_model(recipe, 0).to(where), layout
        )
    model = new_model(recipe, seed).to(where)
    report(describe(model, recipe.settings) + expected)
    folder = out if processes.first else None
    with RunFolder.opened(folder, {"request": request, "recipe": recipe.to_dict()}, tokenizer, report) as run:
        history = train(
            model,
            learning,
            recipe.settings,
            run=run,
            layout=layout,
            on_step=on_step,
            progress=progress,
            label="pretraining",
        )
    evaluation = processes.agree(lambda: evaluate_split(model, tokenizer, data, "valid"))
    return PretrainResult(model, tokenizer, history, recipe, evaluation, None if out is None else Path(out))


TOKENIZERS: dict[str, dict[str, Any]] = {
    "world": {"model_type": "bpe", "split_by_script": False},
    "pairs": {"model_type": "bpe"},
}


def train_tokenizer(
    texts: Sequence[str], vocab_size: int, *, exact: bool = True, kind: str = "text"
) -> Tokenizer:
    """Learn pieces from texts; unless ``exact``, a size that does not suit them is brought into range.

    Parameters
    ----------
    texts : sequence of str
    vocab_size : int
    exact : bool
        False: a text with more characters than pieces asked for gets more, one too poor to fill them fewer.
    kind : str
        Of the corpus, see `corpus_kind`. The few words of the world are merged into pieces that are mostly
        whole words ("l'" among them), so that its texts are short. "pairs": both sides of pairs of sentences.
    """
    how: dict[str, Any] = TOKENIZERS.get(kind, {})
    if exact:
        return Tokenizer.train(texts, vocab_size=vocab_size, **how)
    n_characters = len(set().union(*texts) | {" "})
    smallest = len(SPECIAL_PIECES) + n_characters
    size = max(vocab_size, smallest + n_characters // 2)
    while size > smallest:
        try:
            return Tokenizer.train(texts, vocab_size=size, **how)
        except ValueError:
            size = smallest + (size - smallest) * 2 // 3
    return Tokenizer.train(texts, vocab_size=smallest, **how)


def changed_recipe(base: RecipeT, request: Mapping[str, Any], where: torch.device) -> RecipeT:
    """The budget's recipe with what was asked for put in its place."""
    training = dict(request["training"])
    settings = base.settings
    if "n_steps" in training:
        settings = resize(settings, training["n_steps"])
    settings = settings.replace(**training)
    settings = settings.replace(precision=choose_precision(settings.precision, where))
    model = dict(request["model"])
    if "d_model" in model:
        model.setdefault("d_ff", FF_FACTOR * model["d_model"])
    config = base.config.replace(**model)
    if masking := request.get("masking"):
        if base.masking is None:
            raise ValueError(f"only a masked model is masked, got {', '.join(masking)} for a causal one")
        base = dataclasses.replace(base, masking=dataclasses.replace(base.masking, **masking))
    vocab_size = base.vocab_size if request["vocab_size"] is None else request["vocab_size"]
    return dataclasses.replace(base, vocab_size=vocab_size, config=config, settings=settings)


def with_vocabulary(recipe: RecipeT, vocab_size: int) -> RecipeT:
    """The recipe for as many pieces as the tokenizer has."""
    config = recipe.config.replace(vocab_size=vocab_size)
    return dataclasses.replace(recipe, vocab_size=vocab_size, config=config)


def timed_recipe(
    recipe: RecipeT,
    seconds: float,
    learning: Objective,
    spare_model: Callable[[], nn.Module],
    layout: Layout | None = None,
) -> tuple[RecipeT, str]:
    """The recipe with as many steps as fit into so many seconds, and words about how long they take."""
    settings, expected = steps_within(seconds, spare_model, learning, recipe.settings, layout=layout)
    return dataclasses.replace(recipe, settings=settings), f", about {expected:.0f} s"
