"""Training a translator from start to end: pairs, tokenizer, encoder-decoder, training, held-out BLEU."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tinytx.model import TransformerConfig, Translator, count_parameters
from tinytx.text import Tokenizer
from tinytx.text.pairs import PairCorpus, load_pairs
from tinytx.text.plain import plain
from tinytx.training.budgets import parse_budget
from tinytx.training.engine.loop import History, OnStep, train
from tinytx.training.generation.beamsearch import Search
from tinytx.training.parallel.distributed import Processes
from tinytx.training.plans import check_request, describe, stored_plan, stored_tokenizer
from tinytx.training.pretraining import (
    Report,
    changed_recipe,
    timed_recipe,
    train_tokenizer,
    with_vocabulary,
)
from tinytx.training.runs.runfolder import RunFolder
from tinytx.training.settings import Layout, choose_device
from tinytx.training.translation.objective import TranslationObjective
from tinytx.training.translation.recipes import TranslationRecipe, pair_kind, plan_translation
from tinytx.training.translation.scoring import (
    TranslationEvaluation,
    evaluate_translator,
    translation_objective,
)
from tinytx.training.translation.translating import GREEDY


@dataclass(frozen=True, eq=False, repr=False)
class TranslatorResult:
    """A trained translator and how it came about.

    Attributes
    ----------
    model : Translator
        In evaluation mode.
    tokenizer : Tokenizer
        Of both languages together.
    history : History
    recipe : TranslationRecipe
        Every number that was used.
    evaluation : TranslationEvaluation or None
        Of the valid split; None where it was not asked for.
    path : Path or None
        The run folder.
    n_left_out : int
        Training pairs that were too long.
    """

    model: Translator
    tokenizer: Tokenizer
    history: History
    recipe: TranslationRecipe
    evaluation: TranslationEvaluation | None
    path: Path | None
    n_left_out: int

    def to_dict(self) -> dict[str, Any]:
        """Figures as JSON can hold them."""
        return {
            **({} if self.evaluation is None else self.evaluation.to_dict()),
            "n_params": count_parameters(self.model),
            "vocab_size": self.recipe.vocab_size,
            "n_steps": self.recipe.settings.n_steps,
            "precision": self.recipe.settings.precision,
            "first_loss": self.history.loss[0],
            "last_loss": self.history.loss[-1],
            "n_left_out": self.n_left_out,
            "path": None if self.path is None else str(self.path),
        }

    def __repr__(self) -> str:
        lines = [] if self.evaluation is None else [str(self.evaluation)]
        if self.n_left_out:
            lines.append(f"{self.n_left_out:,} training pairs were too long and left out")
        return "\n".join(lines if self.path is None else [*lines, f"kept in {self.path}"])


def train_translator(
    corpus: str | os.PathLike[str] | PairCorpus,
    *,
    budget: str | float | None = None,
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    data_dir: str | os.PathLike[str] | None = None,
    device: str = "auto",
    vocab_size: int | None = None,
    model_changes: Mapping[str, Any] | None = None,
    training_changes: Mapping[str, Any] | None = None,
    search: Search | None = GREEDY,
    layout: Layout | None = None,
    on_step: OnStep | None = None,
    progress: bool | None = None,
    report: Report = print,
) -> TranslatorResult:
    """Train a joint tokenizer and a translator on the training pairs, and translate the valid split.

    Parameters
    ----------
    corpus : str, path or PairCorpus
        As in `load_pairs`, or pairs at hand.
    budget, seed, out, resume, data_dir, device, vocab_size, layout, on_step, progress, report
        As in `tinytx.training.pretrain`.
    model_changes, training_changes : mapping, optional
        Fields of `TransformerConfig` and `TrainingSettings` to be used in place of the budget's.
    search : Search, optional
        How the valid split is translated; None leaves that out.

    Returns
    -------
    TranslatorResult
    """
    processes = Processes.current()
    report = report if processes.first else lambda line: None
    where = choose_device(device)
    stored = processes.agree(lambda: stored_plan(out, resume))
    asked = parse_budget(budget)
    data = corpus if isinstance(corpus, PairCorpus) else load_pairs(corpus, data_dir)
    request = {
        "command": "pretrain",
        "corpus": data.name,
        "texts": pairs_fingerprint(data),
        "objective": "translation",
        "budget": asked,
        "seed": seed,
        "vocab_size": vocab_size,
        "model": dict(model_changes or {}),
        "training": dict(training_changes or {}),
    }
    if stored is None:
        recipe = changed_recipe(plan_translation(pair_kind(data.name), asked, seed=seed), request, where)
        size, exact = recipe.vocab_size, vocab_size is not None
        tokenizer = processes.agree(lambda: joint_tokenizer(data, size, exact=exact))
        recipe = with_vocabulary(recipe, tokenizer.vocab_size)
    else:
        check_request(stored, request)
        recipe = TranslationRecipe.from_dict(stored["recipe"])
        size = recipe.vocab_size
        tokenizer = processes.agree(
            lambda: stored_tokenizer(out or "", stored) or joint_tokenizer(data, size)
        )
    learning = _learning(tokenizer, data, recipe)
    expected = ""
    if stored is None and isinstance(asked, float):
        recipe, expected = timed_recipe(
            recipe, asked, learning, lambda: new_translator(recipe.config, 0).to(where), layout
        )
    model = new_translator(recipe.config, seed).to(where)
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
            label="translation",
        )
    evaluation = None
    if search is not None:
        evaluation = processes.agree(
            lambda: evaluate_translator(model, tokenizer, data, split="valid", search=search)
        )
    path = None if out is None else Path(out)
    return TranslatorResult(model, tokenizer, history, recipe, evaluation, path, learning.n_left_out)


def new_translator(config: TransformerConfig, seed: int) -> Translator:
    """A translator with first weights drawn from ``seed``; the global random state is left alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Translator(config)


def joint_tokenizer(corpus: PairCorpus, vocab_size: int, *, exact: bool = True) -> Tokenizer:
    """Pieces for both languages together, learned from the training pairs in plain typography."""
    texts = [plain(text) for text in (*corpus.train.sources, *corpus.train.targets)]
    return train_tokenizer(texts, vocab_size, exact=exact, kind="pairs")


def pairs_fingerprint(corpus: PairCorpus) -> str:
    """A short name for the training pairs, which changes whenever any of them does."""
    digest = hashlib.sha256()
    for source, target in zip(corpus.train.sources, corpus.train.targets, strict=True):
        digest.update(f"{source}\t{target}\n".encode())
    return digest.hexdigest()[:16]


def _learning(tokenizer: Tokenizer, corpus: PairCorpus, recipe: TranslationRecipe) -> TranslationObjective:
    max_len = recipe.config.max_len
    found = translation_objective(tokenizer, corpus.train, max_len, recipe.label_smoothing)
    if found is None:
        raise ValueError(
            f"{corpus.name} must hold a training pair of fewer than {max_len} pieces a side, got none"
        )
    return found
