"""Training a translator from start to end: pairs, tokenizer, encoder-decoder, training, held-out BLEU."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from tinytx.hf.folders import is_published
from tinytx.model.config import TransformerConfig
from tinytx.model.counting import count_parameters
from tinytx.model.encoder_decoder import Translator
from tinytx.model.masked_lm import MaskedLanguageModel
from tinytx.model.transformer import Classifier, LanguageModel, Pooling, Transformer
from tinytx.text.corpora import Corpus, label_subset, load_corpus
from tinytx.text.pairs import PairCorpus, load_pairs
from tinytx.text.tokenizer import SPECIAL_PIECES, Tokenizer, plain
from tinytx.training.beam import Search
from tinytx.training.bleu import TranslationEvaluation, evaluate_translator, translation_objective
from tinytx.training.checkpoint import (
    RunFolder,
    check_request,
    describe,
    fingerprint,
    load,
    load_tokenizer,
    stored_plan,
    stored_tokenizer,
)
from tinytx.training.distributed import Processes
from tinytx.training.evaluate import ClassifierScore, Evaluation, evaluate_split, reported_split
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
    EpochScoring,
    FinetuneRecipe,
    Recipe,
    TranslationRecipe,
    corpus_kind,
    epoch_ends,
    n_steps_of,
    objective_of,
    pair_kind,
    parse_budget,
    plan,
    plan_finetuning,
    plan_translation,
    resize,
    steps_within,
)
from tinytx.training.settings import Layout, TrainingSettings, choose_device, choose_precision
from tinytx.training.translate import GREEDY


def new_model(recipe: Recipe, seed: int) -> LanguageModel | MaskedLanguageModel:
    """The model of a recipe with first weights drawn from ``seed``; the global random state is left alone."""
    if recipe.masking is None:
        return new_language_model(recipe.config, seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return MaskedLanguageModel(
            recipe.config, transform=recipe.masking.transform, next_sentence=recipe.masking.next_sentence
        )


def new_language_model(config: TransformerConfig, seed: int) -> LanguageModel:
    """A language model with first weights drawn from ``seed``; the global random state is left alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LanguageModel(config)


def objective_for(
    recipe: Recipe, tokenizer: Tokenizer, texts: Sequence[str]
) -> CausalObjective | MaskedObjective:
    """What the model of a recipe is to learn from some texts."""
    if recipe.masking is None:
        return causal_objective(tokenizer, texts, recipe.config.max_len)
    return MaskedObjective(tokenizer, texts, max_len=recipe.config.max_len, masking=recipe.masking)


def causal_objective(tokenizer: Tokenizer, texts: Sequence[str], max_len: int) -> CausalObjective:
    """Next-token prediction over all of some texts."""
    return CausalObjective(
        tokenizer.encode_batch(texts),
        bos_id=tokenizer.bos_id,
        eos_id=tokenizer.eos_id,
        pad_id=tokenizer.pad_id,
        max_len=max_len,
    )


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


def weights_fingerprint(body: Transformer) -> str:
    """A short name for the weights of a body, which changes whenever any of them does."""
    digest = hashlib.sha256()
    for name, tensor in body.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def body_and_tokenizer(
    checkpoint: str | os.PathLike[str] | PretrainResult,
) -> tuple[Transformer, Tokenizer]:
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
    given: Transformer, dropout: float, n_classes: int, pooling: Pooling, fresh: bool, seed: int
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
