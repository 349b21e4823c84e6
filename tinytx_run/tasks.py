"""The three tasks of `tinytx_run.fit`: pretraining, translation and classification.

A task has what differs between them: recipe, tokenizer, objective, model, and what is evaluated.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import nn

from tinytx.beam import Search
from tinytx.config import TransformerConfig
from tinytx.encoder_decoder import Translator
from tinytx.generate import check_vocabulary
from tinytx.loop import OnStep, TrainingInterrupted
from tinytx.masked_lm import MaskedLanguageModel
from tinytx.objectives import (
    CausalObjective,
    ClassificationObjective,
    FreshObjective,
    HybridObjective,
    MaskedObjective,
    Objective,
    TranslationObjective,
)
from tinytx.settings import TrainingSettings
from tinytx.tokenizer import SPECIAL_PIECES, Tokenizer, plain
from tinytx.transformer import Classifier, LanguageModel, Pooling
from tinytx_run.bleu import TranslationEvaluation, evaluate_translator, translation_objective
from tinytx_run.checkpoint import Model, load, load_tokenizer
from tinytx_run.corpora import Corpus, Split, label_subset, load_corpus
from tinytx_run.distributed import Layout, Processes, train
from tinytx_run.evaluate import (
    Evaluation,
    classifier_inputs,
    count_correct,
    evaluate_split,
    reported_split,
)
from tinytx_run.pairs import PairCorpus, load_pairs
from tinytx_run.recipes import Recipe, corpus_kind, pair_kind, plan, plan_finetuning, resize

ModelT = TypeVar("ModelT", bound=nn.Module)

PROBE_RATE = 10.0
SMOKE_LABELS = 1000  # at most, as the smallest budget is to take seconds whatever the corpus
# For models that others pretrained at length: Devlin et al., arXiv 1810.04805, appendix A.3.
PUBLISHED_RATE, PUBLISHED_EPOCHS = 3e-5, 4


class Pretraining:
    """A language model, causal or masked, with new weights; other tasks override what they do differently."""

    label = "pretraining"
    corpus: Any

    def __init__(self, corpus: Any, data_dir: Any, objective: str) -> None:
        self.corpus = corpus if isinstance(corpus, Corpus) else load_corpus(corpus, data_dir)
        self.kind, self._objective = corpus_kind(self.corpus), objective
        self.data: dict[str, Any] = {}

    def request(self) -> dict[str, Any]:
        """What was asked for, apart from what all tasks have."""
        return {}

    def recipe(self, budget: str | float, seed: int) -> Recipe:
        """The recipe of the budget."""
        return plan(self.kind, self._objective, budget, seed=seed)

    def check_changes(self, model: Mapping[str, Any], training: Mapping[str, Any]) -> None:
        """Refuse changes of a recipe that make no sense."""
        if self._objective in ("causal", "hybrid") and model.get("causal") is False:
            raise ValueError(f"causal must be True for the objective {self._objective}, got False")

    def tokenizer(self, vocab_size: int, *, exact: bool) -> Tokenizer:
        """Train a tokenizer, or give the one at hand."""
        return train_tokenizer(self.corpus.train.texts, vocab_size, exact=exact, kind=self.kind)

    def with_tokenizer(self, recipe: Recipe, tokenizer: Tokenizer) -> Recipe:
        """The recipe for as many tokens as the tokenizer has."""
        vocab_size = tokenizer.vocab_size
        return recipe.replace(vocab_size=vocab_size, config=recipe.config.replace(vocab_size=vocab_size))

    def objective(self, tokenizer: Tokenizer, recipe: Recipe) -> Any:
        """What is learned: the training split; of a generated language, new texts in each further pass."""
        train, draw = self.corpus.train.texts, self.corpus.draw

        def of_pass(epoch: int) -> CausalObjective | MaskedObjective:
            texts = draw(epoch) if epoch and draw else train
            return objective_for(recipe, tokenizer, texts)

        return FreshObjective(of_pass) if draw else of_pass(0)

    def model(self, recipe: Recipe, seed: int) -> Model:
        """The model before training."""
        return new_model(recipe, seed)

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
        parts = _parts(self.corpus)
        return [f"{self.corpus.name}: {parts}"] if parts else []

    def on_step(self, tokenizer: Tokenizer, recipe: Recipe, learning: Any) -> OnStep | None:
        """What is measured during training."""
        return None

    def evaluate(self, model: Any, tokenizer: Tokenizer) -> Evaluation | TranslationEvaluation | None:
        """Evaluate the trained model on a held-out split."""
        return evaluate_split(model, tokenizer, self.corpus, "valid")


class Translation(Pretraining):
    """A translator with new weights, and one tokenizer for both languages."""

    label = "translation"

    def __init__(self, corpus: Any, data_dir: Any, search: Search | None) -> None:
        if isinstance(corpus, Corpus):
            raise ValueError(f"a translator learns from pairs, got the texts of {corpus.name}")
        self.corpus = corpus if isinstance(corpus, PairCorpus) else load_pairs(corpus, data_dir)
        self.kind, self._objective = pair_kind(self.corpus.name), "translation"
        self.data, self._search = {}, search

    def tokenizer(self, vocab_size: int, *, exact: bool) -> Tokenizer:
        pairs = self.corpus.train
        texts = [plain(text) for text in (*pairs.sources, *pairs.targets)]
        return train_tokenizer(texts, vocab_size, exact=exact, kind="pairs")

    def objective(self, tokenizer: Tokenizer, recipe: Recipe) -> TranslationObjective:
        max_len, smoothing = recipe.config.max_len, recipe.label_smoothing or 0.0
        learning = translation_objective(tokenizer, self.corpus.train, max_len, smoothing)
        self.data["n_left_out"] = learning.n_left_out
        return learning

    def model(self, recipe: Recipe, seed: int) -> Model:
        return seeded(lambda: Translator(recipe.config), seed)

    def evaluate(self, model: Any, tokenizer: Tokenizer) -> TranslationEvaluation | None:
        if self._search is None:
            return None
        return evaluate_translator(model, tokenizer, self.corpus, split="valid", search=self._search)


@dataclass(eq=False)
class Classification(Pretraining):
    """A new head on a copy of a pretrained body, or on a new one; the fields are arguments of `fit`."""

    corpus: Any
    data_dir: Any
    start: Any
    fresh: bool
    frozen: bool
    n_labels: int | None
    n_epochs: int | None
    pooling: Pooling
    n_scored: int | None

    def __post_init__(self) -> None:
        from tinytx_run.hf.folders import is_published

        super().__init__(self.corpus, self.data_dir, "classification")
        self.label = "from scratch" if self.fresh else "probing" if self.frozen else "fine-tuning"
        self._body, self._tokenizer = body_and_tokenizer(self.start)
        self._published = isinstance(self.start, str | os.PathLike) and is_published(self.start)

    def request(self) -> dict[str, Any]:
        names = ("fresh", "frozen", "n_labels", "n_epochs", "pooling")
        return {"start": weights_fingerprint(self._body), **{name: getattr(self, name) for name in names}}

    def recipe(self, budget: str | float, seed: int) -> Recipe:
        row = plan_finetuning(self.kind, budget)
        lr, n_epochs = row.lr, row.n_epochs
        if self.frozen:
            lr *= PROBE_RATE
        elif not self.fresh and self._published:
            lr, n_epochs = PUBLISHED_RATE, min(n_epochs, PUBLISHED_EPOCHS)
        config = self._body.config.replace(dropout=row.dropout)
        settings = TrainingSettings(n_steps=1, lr=lr, tokens_per_batch=row.tokens_per_batch, seed=seed)
        n_epochs = n_epochs if self.n_epochs is None else self.n_epochs
        return Recipe(row.budget, config.vocab_size, config, settings, n_epochs=n_epochs)

    def check_changes(self, model: Mapping[str, Any], training: Mapping[str, Any]) -> None:
        for name in ("n_epochs", "n_scored"):
            if (given := getattr(self, name)) is not None and given < 1:
                raise ValueError(f"{name} must be at least 1, got {given}")
        if "n_steps" in training:
            raise ValueError(f"n_steps follows from n_epochs in fine-tuning, got {training['n_steps']}")
        if other := ", ".join(model.keys() - {"dropout"}):
            raise ValueError(
                f"the body of a classifier is that of start, only its dropout may change, got {other}"
            )

    def tokenizer(self, vocab_size: int, *, exact: bool) -> Tokenizer:
        return self._tokenizer

    def objective(self, tokenizer: Tokenizer, recipe: Recipe) -> ClassificationObjective:
        split, seed, n_labels = self.corpus.train, recipe.settings.seed, self.n_labels
        if n_labels is None and recipe.budget == "smoke":
            n_labels = min(SMOKE_LABELS, len(split))
        learned = split if n_labels is None else label_subset(split, n_labels, seed)
        learning, n_cut = class_objective(tokenizer, learned, recipe.config)
        self.data = {"fresh": self.fresh, "n_labels": len(learned), "n_cut_in_training": n_cut}
        return learning

    def model(self, recipe: Recipe, seed: int) -> Model:
        n_classes, n_texts = self.corpus.n_classes, len(self.corpus.train)
        if n_classes is None:
            raise ValueError(
                f"fine-tuning needs a corpus with labels, got {self.corpus.name}, which has none"
            )
        if n_classes < 2:
            raise ValueError(f"labels must be of at least 2 classes, got {n_classes} in {self.corpus.name}")
        if n_classes > n_texts:
            raise ValueError(
                f"labels must count up from 0, got the label {n_classes - 1} among {n_texts} texts"
            )
        model = seeded(lambda: Classifier(recipe.config, n_classes, self.pooling), seed)
        if not self.fresh:
            model.body.load_state_dict(self._body.state_dict())
        model.body.requires_grad_(not self.frozen)
        return model

    def schedule(
        self, recipe: Recipe, budget: str | float, learning: Any, model: nn.Module, layout: Layout | None
    ) -> tuple[Recipe, str]:
        settings, n_epochs, expected = recipe.settings, recipe.n_epochs or 1, ""
        if isinstance(budget, float):
            timed, seconds = steps_within(budget, model, learning, settings, layout=layout)
            to_score = seconds_to_score(model, self.scored(self._tokenizer, recipe))
            left, per_step, total = seconds - to_score, seconds / timed.n_steps, 0.0
            for n, end in enumerate(_ends(learning, settings), start=1):
                needed = end * per_step + n * to_score
                if n > 1 and needed > left:
                    break
                n_epochs, total = n, needed
            expected = f", about {total:.0f} s"
        settings = resize(settings, epoch_ends(learning, settings, n_epochs)[-1])
        return recipe.replace(settings=settings, n_epochs=n_epochs), expected

    def remarks(self, recipe: Recipe) -> list[str]:
        n, n_cut = self.data["n_labels"], self.data["n_cut_in_training"]
        lines = [f"{n:,} labelled texts, {recipe.n_epochs} epochs"]
        if n_cut:
            lines.append(f"{n_cut:,} of {n:,} texts exceed {recipe.config.max_len} tokens and lose their end")
        return lines

    def scored(self, tokenizer: Tokenizer, recipe: Recipe) -> ClassificationObjective:
        """The texts that the model answers after each epoch."""
        split = self.corpus.splits[reported_split(self.corpus)]
        if self.n_scored is not None and self.n_scored < len(split):
            # Corpora are often sorted by class: the first texts would be of one.
            split = label_subset(split, self.n_scored, seed=0)
        return class_objective(tokenizer, split, recipe.config)[0]

    def on_step(self, tokenizer: Tokenizer, recipe: Recipe, learning: Any) -> OnStep | None:
        scored = self.scored(tokenizer, recipe)
        ends = epoch_ends(learning, recipe.settings, recipe.n_epochs or 1)
        epochs = {end: number for number, end in enumerate(ends, start=1)}

        def score_epoch(step: int, model: Any) -> dict[str, Any] | None:
            if step not in epochs:
                return None
            n = len(scored.labels)
            return {"epoch": epochs[step], "accuracy": count_correct(model, scored) / n, "n": n}

        return score_epoch

    def evaluate(self, model: Any, tokenizer: Tokenizer) -> Evaluation:
        return evaluate_split(model, tokenizer, self.corpus, reported_split(self.corpus))


def body_and_tokenizer(start: Any) -> tuple[Any, Tokenizer]:
    """Body and tokenizer of a checkpoint, or of a result of `fit`; a model without one body is refused."""
    if start is None:
        raise ValueError("fine-tuning needs start, a checkpoint or the result of pretraining, got None")
    if isinstance(start, str | os.PathLike):
        model, tokenizer = load(start), load_tokenizer(start)
    elif not (hasattr(start, "model") and hasattr(start, "tokenizer")):
        raise TypeError(f"start must be a checkpoint or the result of fit, got a {type(start).__name__}")
    else:
        model, tokenizer = start.model, start.tokenizer
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
    return list(itertools.islice(_ends(learning, settings), n_epochs))


def _ends(learning: Objective, settings: TrainingSettings) -> Iterator[int]:
    """The step that ends each epoch, without end."""
    how = {"seed": settings.seed, "tokens_per_batch": settings.tokens_per_batch}
    return itertools.accumulate(
        len(learning.epoch_batches(epoch=epoch, **how)) for epoch in itertools.count()
    )


def seeded(make: Callable[[], ModelT], seed: int) -> ModelT:
    """A model whose first weights are drawn from ``seed``; the global random state is left alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


def new_language_model(config: TransformerConfig, seed: int) -> LanguageModel:
    """A language model whose first weights are drawn from ``seed``."""
    return seeded(lambda: LanguageModel(config), seed)


def new_model(recipe: Recipe, seed: int) -> LanguageModel | MaskedLanguageModel:
    """The language model of a recipe, causal or masked, whose first weights are drawn from ``seed``."""
    masking = recipe.masking
    if masking is None or masking.causal_share:
        return new_language_model(recipe.config, seed)
    heads = {"transform": masking.transform, "next_sentence": masking.next_sentence}
    return seeded(lambda: MaskedLanguageModel(recipe.config, **heads), seed)


def causal_objective(tokenizer: Tokenizer, texts: Sequence[str], max_len: int) -> CausalObjective:
    """Next-token prediction over all of some texts."""
    ids = {"bos_id": tokenizer.bos_id, "eos_id": tokenizer.eos_id, "pad_id": tokenizer.pad_id}
    return CausalObjective(tokenizer.encode_batch(texts), max_len=max_len, **ids)


def objective_for(
    recipe: Recipe, tokenizer: Tokenizer, texts: Sequence[str]
) -> CausalObjective | MaskedObjective:
    """What the language model of a recipe learns from some texts."""
    if recipe.masking is None:
        return causal_objective(tokenizer, texts, recipe.config.max_len)
    maker = HybridObjective if recipe.masking.causal_share else MaskedObjective
    return maker(tokenizer, texts, max_len=recipe.config.max_len, masking=recipe.masking)


TOKENIZERS: dict[str, dict[str, Any]] = {
    "world": {"model_type": "bpe", "split_by_script": False},
    "pairs": {"model_type": "bpe"},
}


def train_tokenizer(
    texts: Sequence[str], vocab_size: int, *, exact: bool = True, kind: str = "text"
) -> Tokenizer:
    """Learn a subword vocabulary from texts.

    Parameters
    ----------
    texts : sequence of str
    vocab_size : int
    exact : bool
        False: texts with more characters than that get more tokens, those too poor to fill them fewer.
    kind : str
        Of the corpus, see `corpus_kind`, or "pairs". The few words of the world are merged into tokens that
        are mostly whole words ("l'" among them), so its texts are short.
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
    if isinstance(corpus, PairCorpus):
        sides = zip(corpus.train.sources, corpus.train.targets, strict=True)
        content = "".join(f"{source}\t{target}\n" for source, target in sides)
    else:
        content = "".join(f"{text}\n" for text in corpus.train.texts) + repr(corpus.train.labels)
        content += _parts(corpus)
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def _parts(corpus: Corpus | PairCorpus) -> str:
    """Size and number of parts of a file of one's own that is read in parts; else nothing."""
    return "" if corpus.licence else corpus.source


def weights_fingerprint(body: nn.Module) -> str:
    """A short name for the weights of a body, which changes whenever any of them does."""
    digest = hashlib.sha256()
    for name, tensor in body.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def steps_within(
    seconds: float,
    model: nn.Module,
    objective: Objective,
    settings: TrainingSettings,
    n_timed: int = 8,
    layout: Layout | None = None,
) -> tuple[TrainingSettings, float]:
    """Settings whose steps take about so many seconds, timed ones included, and the seconds expected.

    The first steps of a copy of the model are timed: ``n_timed``, after two that are not.
    """
    if layout is not None and layout.shard:
        raise ValueError(f"a sharded model needs a budget by name, got {seconds:g} seconds")
    begin = time.perf_counter()
    ends: list[float] = []

    def mark(step: int, model: nn.Module) -> None:
        if next(model.parameters()).device.type == "cuda":
            torch.cuda.synchronize()
        ends.append(time.perf_counter())

    timed = settings.replace(n_steps=n_timed + 2, warmup_steps=0, lr=settings.lr / 10)
    try:
        train(copy.deepcopy(model), objective, timed, layout=layout, on_step=mark, progress=False)
    except TrainingInterrupted as stop:
        raise TrainingInterrupted("interrupted while steps were timed, before training began") from stop

    def steps_left() -> tuple[int, float]:
        per_step = statistics.fmean(b - a for a, b in itertools.pairwise(ends[1:]))
        n_steps = max(1, int((seconds - (time.perf_counter() - begin)) / per_step))
        return n_steps, n_steps * per_step

    n_steps, expected = Processes.current().agree(steps_left)
    return resize(settings, n_steps), expected


def seconds_to_score(model: Any, scored: ClassificationObjective) -> float:
    """How long it takes to answer some labelled texts once; the same number in all processes."""

    def timed() -> float:
        begin = time.perf_counter()
        count_correct(model, scored)
        return time.perf_counter() - begin

    return Processes.current().agree(timed)
