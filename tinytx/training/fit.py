"""One training run from start to end: prepare, batches, loop, evaluation, checkpoint.

Pretraining, fine-tuning and translation are three recipes of one function, `fit`. What differs between them is a
task: where the tokenizer and the model come from, what is learned, and how the result is evaluated.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import itertools
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from tinytx.model.config import TransformerConfig
from tinytx.model.counting import count_parameters
from tinytx.model.encoder_decoder import Translator
from tinytx.model.masked_lm import MaskedLanguageModel
from tinytx.model.transformer import Classifier, LanguageModel, Pooling
from tinytx.text.corpora import Corpus, Split, label_subset, load_corpus
from tinytx.text.pairs import PairCorpus, load_pairs
from tinytx.text.tokenizer import SPECIAL_PIECES, Tokenizer, plain
from tinytx.training.beam import Search
from tinytx.training.bleu import TranslationEvaluation, evaluate_translator, translation_objective
from tinytx.training.checkpoint import Model, load, load_tokenizer
from tinytx.training.distributed import Processes
from tinytx.training.evaluate import (
    Evaluation,
    classifier_inputs,
    count_correct,
    evaluate_split,
    reported_split,
)
from tinytx.training.generate import check_vocabulary
from tinytx.training.loop import History, OnStep, train
from tinytx.training.objectives import (
    CausalObjective,
    ClassificationObjective,
    MaskedObjective,
    Objective,
    TranslationObjective,
)
from tinytx.training.recipes import (
    FF_FACTOR,
    Recipe,
    corpus_kind,
    pair_kind,
    parse_budget,
    plan,
    plan_finetuning,
    resize,
)
from tinytx.training.runs import check_request, find_run, open_run, read_training
from tinytx.training.settings import Layout, TrainingSettings, choose_device, choose_precision
from tinytx.training.timing import wait_for
from tinytx.training.translate import GREEDY

Report = Callable[[str], None]
ModelT = TypeVar("ModelT", bound=nn.Module)

PROBE_RATE = 10.0
# For models that others pretrained at length: Devlin et al., arXiv 1810.04805, appendix A.3.
PUBLISHED_RATE, PUBLISHED_EPOCHS = 3e-5, 4


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
    task: _Task
    if objective == "classification":
        task = _Classification(corpus, data_dir, start, fresh, frozen, n_labels, n_epochs, pooling, n_scored)
    elif start is not None:
        raise ValueError(f"start goes with the objective classification, got {objective!r}")
    elif objective == "translation":
        task = _Translation(corpus, data_dir, search)
    else:
        task = _Pretraining(corpus, data_dir, objective)
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


class _Task:
    """What differs between pretraining, translation and classification."""

    corpus: Any
    label = "training"
    data: dict[str, Any]

    def __init__(self) -> None:
        self.data = {}

    def request(self) -> dict[str, Any]:
        """What was asked for, apart from what all tasks have."""
        return {}

    def recipe(self, budget: str | float, seed: int) -> Recipe:
        """The recipe of the budget."""
        raise NotImplementedError

    def tokenizer(self, vocab_size: int, *, exact: bool) -> Tokenizer:
        """Train a tokenizer, or give the one at hand."""
        raise NotImplementedError

    def with_tokenizer(self, recipe: Recipe, tokenizer: Tokenizer) -> Recipe:
        """The recipe for as many tokens as the tokenizer has."""
        vocab_size = tokenizer.vocab_size
        return recipe.replace(vocab_size=vocab_size, config=recipe.config.replace(vocab_size=vocab_size))

    def objective(self, tokenizer: Tokenizer, recipe: Recipe) -> Any:
        """What is learned, from the training split."""
        raise NotImplementedError

    def model(self, recipe: Recipe, seed: int) -> Model:
        """The model before training."""
        raise NotImplementedError

    def schedule(
        self, recipe: Recipe, budget: str | float, learning: Any, model: nn.Module, layout: Layout | None
    ) -> tuple[Recipe, str]:
        """The recipe with its number of steps, and words about how long they take, where that was timed."""
        if isinstance(budget, str):
            return recipe, ""
        settings, seconds = steps_within(budget, model, learning, recipe.settings, layout=layout)
        return recipe.replace(settings=settings), f", about {seconds:.0f} s"

    def remarks(self, recipe: Recipe) -> list[str]:
        """What should be known about the data."""
        return []

    def on_step(self, tokenizer: Tokenizer, recipe: Recipe, learning: Any) -> OnStep | None:
        """What is measured during training."""
        return None

    def evaluate(self, model: Any, tokenizer: Tokenizer) -> Evaluation | TranslationEvaluation | None:
        """Evaluate the trained model on a held-out split."""
        return evaluate_split(model, tokenizer, self.corpus, "valid")


class _Pretraining(_Task):
    """A language model, causal or masked, with new weights."""

    label = "pretraining"

    def __init__(self, corpus: Any, data_dir: Any, objective: str) -> None:
        super().__init__()
        self.corpus = corpus if isinstance(corpus, Corpus) else load_corpus(corpus, data_dir)
        self.kind, self._objective = corpus_kind(self.corpus), objective

    def recipe(self, budget: str | float, seed: int) -> Recipe:
        return plan(self.kind, self._objective, budget, seed=seed)

    def tokenizer(self, vocab_size: int, *, exact: bool) -> Tokenizer:
        return train_tokenizer(self.corpus.train.texts, vocab_size, exact=exact, kind=self.kind)

    def objective(self, tokenizer: Tokenizer, recipe: Recipe) -> CausalObjective | MaskedObjective:
        return text_objective(recipe, tokenizer, self.corpus.train.texts)

    def model(self, recipe: Recipe, seed: int) -> Model:
        return new_model(recipe, seed)


class _Translation(_Task):
    """A translator with new weights, and one tokenizer for both languages."""

    label = "translation"

    def __init__(self, corpus: Any, data_dir: Any, search: Search | None) -> None:
        super().__init__()
        if isinstance(corpus, Corpus):
            raise ValueError(f"a translator learns from pairs, got the texts of {corpus.name}")
        self.corpus = corpus if isinstance(corpus, PairCorpus) else load_pairs(corpus, data_dir)
        self._search = search

    def recipe(self, budget: str | float, seed: int) -> Recipe:
        return plan(pair_kind(self.corpus.name), "translation", budget, seed=seed)

    def tokenizer(self, vocab_size: int, *, exact: bool) -> Tokenizer:
        pairs = self.corpus.train
        texts = [plain(text) for text in (*pairs.sources, *pairs.targets)]
        return train_tokenizer(texts, vocab_size, exact=exact, kind="pairs")

    def objective(self, tokenizer: Tokenizer, recipe: Recipe) -> TranslationObjective:
        max_len = recipe.config.max_len
        learning = translation_objective(tokenizer, self.corpus.train, max_len, recipe.label_smoothing or 0.0)
        if learning is None:
            raise ValueError(
                f"{self.corpus.name} must hold a training pair of fewer than {max_len} tokens a side, got none"
            )
        self.data["n_left_out"] = learning.n_left_out
        return learning

    def model(self, recipe: Recipe, seed: int) -> Model:
        return seeded(lambda: Translator(recipe.config), seed)

    def evaluate(self, model: Any, tokenizer: Tokenizer) -> TranslationEvaluation | None:
        if self._search is None:
            return None
        return evaluate_translator(model, tokenizer, self.corpus, split="valid", search=self._search)


class _Classification(_Task):
    """A new head on a copy of a pretrained body, or on a new one."""

    def __init__(
        self,
        corpus: Any,
        data_dir: Any,
        start: Any,
        fresh: bool,
        frozen: bool,
        n_labels: int | None,
        n_epochs: int | None,
        pooling: Pooling,
        n_scored: int | None,
    ) -> None:
        super().__init__()
        self.corpus = corpus if isinstance(corpus, Corpus) else load_corpus(corpus, data_dir)
        self.label = "from scratch" if fresh else "probing" if frozen else "fine-tuning"
        self._body, self._tokenizer = body_and_tokenizer(start)
        self._published = not isinstance(start, FitResult) and _is_published(start)
        self._fresh, self._frozen, self._n_labels, self._n_epochs = fresh, frozen, n_labels, n_epochs
        self._pooling, self._n_scored = pooling, n_scored

    def request(self) -> dict[str, Any]:
        return {
            "start": weights_fingerprint(self._body),
            "fresh": self._fresh,
            "frozen": self._frozen,
            "n_labels": self._n_labels,
            "n_epochs": self._n_epochs,
            "pooling": self._pooling,
        }

    def recipe(self, budget: str | float, seed: int) -> Recipe:
        row = plan_finetuning(corpus_kind(self.corpus), budget)
        lr, n_epochs = row.lr, row.n_epochs
        if self._frozen:
            lr *= PROBE_RATE
        elif not self._fresh and self._published:
            lr, n_epochs = PUBLISHED_RATE, min(n_epochs, PUBLISHED_EPOCHS)
        config = self._body.config.replace(dropout=row.dropout)
        settings = TrainingSettings(n_steps=1, lr=lr, tokens_per_batch=row.tokens_per_batch, seed=seed)
        n_epochs = n_epochs if self._n_epochs is None else self._n_epochs
        return Recipe(row.budget, config.vocab_size, config, settings, n_epochs=n_epochs)

    def tokenizer(self, vocab_size: int, *, exact: bool) -> Tokenizer:
        return self._tokenizer

    def with_tokenizer(self, recipe: Recipe, tokenizer: Tokenizer) -> Recipe:
        return recipe  # the body has its embeddings already

    def objective(self, tokenizer: Tokenizer, recipe: Recipe) -> ClassificationObjective:
        split, seed = self.corpus.train, recipe.settings.seed
        learned = split if self._n_labels is None else label_subset(split, self._n_labels, seed)
        learning, n_cut = class_objective(tokenizer, learned, recipe.config)
        self.data = {"fresh": self._fresh, "n_labels": len(learned), "n_cut_in_training": n_cut}
        return learning

    def model(self, recipe: Recipe, seed: int) -> Model:
        n_classes = _n_classes(self.corpus)
        model = seeded(lambda: Classifier(recipe.config, n_classes, self._pooling), seed)
        if not self._fresh:
            model.body.load_state_dict(self._body.state_dict())
        model.body.requires_grad_(not self._frozen)
        return model

    def schedule(
        self, recipe: Recipe, budget: str | float, learning: Any, model: nn.Module, layout: Layout | None
    ) -> tuple[Recipe, str]:
        settings, n_epochs, expected = recipe.settings, recipe.n_epochs or 1, ""
        if isinstance(budget, float):
            timed, seconds = steps_within(budget, model, learning, settings, layout=layout)
            n_epochs = 1
            while epoch_ends(learning, settings, n_epochs + 1)[-1] <= timed.n_steps:
                n_epochs += 1
            seconds *= epoch_ends(learning, settings, n_epochs)[-1] / timed.n_steps
            expected = f", about {seconds:.0f} s"
        settings = resize(settings, epoch_ends(learning, settings, n_epochs)[-1])
        return recipe.replace(settings=settings, n_epochs=n_epochs), expected

    def remarks(self, recipe: Recipe) -> list[str]:
        n, n_cut = self.data["n_labels"], self.data["n_cut_in_training"]
        lines = [f"{n:,} labelled texts, {recipe.n_epochs} epochs"]
        if n_cut:
            lines.append(f"{n_cut:,} of {n:,} texts exceed {recipe.config.max_len} tokens and lose their end")
        return lines

    def on_step(self, tokenizer: Tokenizer, recipe: Recipe, learning: Any) -> OnStep | None:
        split = self.corpus.splits[reported_split(self.corpus)]
        if self._n_scored is not None and self._n_scored < len(split):
            # Corpora are often sorted by class: the first texts would be of one.
            split = label_subset(split, self._n_scored, seed=0)
        scored, _ = class_objective(tokenizer, split, recipe.config)
        ends = epoch_ends(learning, recipe.settings, recipe.n_epochs or 1)

        def score_epoch(step: int, model: nn.Module) -> dict[str, Any] | None:
            if step not in ends or not isinstance(model, Classifier):
                return None
            accuracy = count_correct(model, scored) / len(split)
            return {"epoch": 1 + ends.index(step), "accuracy": accuracy, "n": len(split)}

        return score_epoch

    def evaluate(self, model: Any, tokenizer: Tokenizer) -> Evaluation:
        return evaluate_split(model, tokenizer, self.corpus, reported_split(self.corpus))


def _n_classes(corpus: Corpus) -> int:
    n_classes = corpus.n_classes
    if n_classes is None:
        raise ValueError(f"fine-tuning needs a corpus with labels, got {corpus.name}, which has none")
    if n_classes > len(corpus.train):
        raise ValueError(
            f"labels must count up from 0, got the label {n_classes - 1} among {len(corpus.train)} texts"
        )
    return n_classes


def _is_published(start: str | os.PathLike[str]) -> bool:
    from tinytx.hf.folders import is_published

    return is_published(start)


def body_and_tokenizer(start: str | os.PathLike[str] | FitResult | None) -> tuple[Any, Tokenizer]:
    """The body to be fine-tuned and its tokenizer; a checkpoint that has none is refused."""
    if start is None:
        raise ValueError("fine-tuning needs start, a checkpoint or the result of pretraining, got None")
    if isinstance(start, FitResult):
        model, tokenizer = start.model, start.tokenizer
    else:
        model, tokenizer = load(start), load_tokenizer(start)
    if isinstance(model, Translator):
        raise ValueError("fine-tuning needs a model with one body, got a translator")
    check_vocabulary(model, tokenizer)
    return model.body, tokenizer


def class_objective(
    tokenizer: Tokenizer, split: Split, config: TransformerConfig
) -> tuple[ClassificationObjective, int]:
    """Naming the classes of a split as an objective, and how many of its texts were cut to what fits."""
    sequences, n_cut = classifier_inputs(tokenizer, split.texts, config.max_len, causal=config.causal)
    return ClassificationObjective(sequences, split.labels or (), pad_id=tokenizer.pad_id), n_cut


def epoch_ends(learning: Objective, settings: TrainingSettings, n_epochs: int) -> list[int]:
    """The step that ends each epoch."""
    size, seed = settings.tokens_per_batch, settings.seed
    sizes = (
        len(learning.epoch_batches(seed=seed, epoch=epoch, tokens_per_batch=size))
        for epoch in range(n_epochs)
    )
    return list(itertools.accumulate(sizes))


def steps_within(
    seconds: float,
    model: nn.Module,
    objective: Objective,
    settings: TrainingSettings,
    n_timed: int = 8,
    layout: Layout | None = None,
) -> tuple[TrainingSettings, float]:
    """Settings whose steps take about so many seconds, found by timing the first steps of a copy of a model.

    Parameters
    ----------
    seconds : float
        For all steps together, the timed ones included.
    model : Module
        Stays as it is.
    objective : Objective
    settings : TrainingSettings
        All but the number of steps stays.
    n_timed : int
        Steps that are timed, after two that are not.
    layout : Layout, optional
        See `train`.

    Returns
    -------
    settings : TrainingSettings
        With steps, warm-up and intervals that suit the time.
    seconds : float
        How long these steps should take.
    """
    if layout is not None and layout.shard:
        raise ValueError(f"a sharded model needs a budget by name, got {seconds:g} seconds")
    begin = time.perf_counter()
    ends: list[float] = []

    def mark(step: int, model: nn.Module) -> None:
        wait_for(next(model.parameters()).device)
        ends.append(time.perf_counter())

    timed = settings.replace(n_steps=n_timed + 2, warmup_steps=0, lr=settings.lr / 10)
    train(copy.deepcopy(model), objective, timed, layout=layout, on_step=mark, progress=False)

    def steps_left() -> tuple[int, float]:
        per_step = statistics.fmean(b - a for a, b in itertools.pairwise(ends[1:]))
        n_steps = max(1, int((seconds - (time.perf_counter() - begin)) / per_step))
        return n_steps, n_steps * per_step

    n_steps, expected = Processes.current().agree(steps_left)
    return resize(settings, n_steps), expected


def seeded(make: Callable[[], ModelT], seed: int) -> ModelT:
    """A model whose first weights are drawn from ``seed``; the global random state is left alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


def new_model(recipe: Recipe, seed: int) -> LanguageModel | MaskedLanguageModel:
    """The language model of a recipe, causal or masked, with first weights drawn from ``seed``."""
    masking = recipe.masking
    if masking is None:
        return seeded(lambda: LanguageModel(recipe.config), seed)
    heads = {"transform": masking.transform, "next_sentence": masking.next_sentence}
    return seeded(lambda: MaskedLanguageModel(recipe.config, **heads), seed)


def text_objective(
    recipe: Recipe, tokenizer: Tokenizer, texts: Sequence[str]
) -> CausalObjective | MaskedObjective:
    """What the language model of a recipe learns from some texts."""
    if recipe.masking is not None:
        return MaskedObjective(tokenizer, texts, max_len=recipe.config.max_len, masking=recipe.masking)
    return CausalObjective(
        tokenizer.encode_batch(texts),
        bos_id=tokenizer.bos_id,
        eos_id=tokenizer.eos_id,
        pad_id=tokenizer.pad_id,
        max_len=recipe.config.max_len,
    )


TOKENIZERS: dict[str, dict[str, Any]] = {
    "world": {"model_type": "bpe", "split_by_script": False},
    "pairs": {"model_type": "bpe"},
}


def train_tokenizer(
    texts: Sequence[str], vocab_size: int, *, exact: bool = True, kind: str = "text"
) -> Tokenizer:
    """Learn a subword vocabulary from texts; unless ``exact``, a size that does not suit them is adapted.

    Parameters
    ----------
    texts : sequence of str
    vocab_size : int
    exact : bool
        False: a text with more characters than tokens asked for gets more, one too poor to fill them fewer.
    kind : str
        Of the corpus, see `corpus_kind`. The few words of the world are merged into tokens that are mostly
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


def fingerprint(corpus: Corpus | PairCorpus) -> str:
    """A short name for the training texts and labels, or pairs, which changes whenever any of them does."""
    digest, train_split = hashlib.sha256(), corpus.train
    if isinstance(corpus, PairCorpus):
        for source, target in zip(train_split.sources, train_split.targets, strict=True):
            digest.update(f"{source}\t{target}\n".encode())
    else:
        for text in train_split.texts:
            digest.update(text.encode() + b"\n")
        digest.update(repr(train_split.labels).encode())
    return digest.hexdigest()[:16]


def weights_fingerprint(body: nn.Module) -> str:
    """A short name for the weights of a body, which changes whenever any of them does."""
    digest = hashlib.sha256()
    for name, tensor in body.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def describe(model: Any, settings: TrainingSettings) -> str:
    """Summarise model size and training length in one line."""
    config = model.config
    return (
        f"{config.n_layers} layers of width {config.d_model}, {config.vocab_size:,} tokens in the vocabulary, "
        f"{count_parameters(model):,} parameters; {settings.n_steps:,} steps of up to "
        f"{settings.tokens_per_batch:,} tokens, {settings.precision}"
    )
