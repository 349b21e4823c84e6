"""Fine-tuning: a new head on a copy of a pretrained body, or on a new one, learns the classes of texts."""

from __future__ import annotations

import os
import time
from typing import Any, Literal

from tinytx.classifier import Classifier
from tinytx.config import TransformerConfig
from tinytx.encoder_decoder import Translator
from tinytx.generate import check_vocabulary
from tinytx.loop import OnStep
from tinytx.objectives import ClassificationObjective, Objective
from tinytx.settings import TrainingSettings, check_whole, require
from tinytx.tokenizer import Tokenizer
from tinytx.transformer import Transformer
from tinytx_run.checkpoint import Checkpoint, load
from tinytx_run.classify import classifier_inputs
from tinytx_run.corpora import Corpus, Split, at_hand, label_subset, load_corpus
from tinytx_run.distributed import Processes
from tinytx_run.evaluate import count_correct, evaluate_split
from tinytx_run.hf.folders import is_published
from tinytx_run.recipes import Recipe, corpus_kind, named_budget, plan_finetuning
from tinytx_run.splits import TextHashes
from tinytx_run.training import (
    DEFAULTS,
    Changes,
    PathLike,
    Run,
    RunOptions,
    TrainingResult,
    seeded,
    steps_within,
    weights_fingerprint,
)

Body = Literal["pretrained", "fresh", "frozen", "random"]
BODIES = {  # whether its weights are new, whether they stay as they are, and what that is called
    "pretrained": (False, False, "fine-tuning"),
    "fresh": (True, False, "from scratch"),
    "frozen": (False, True, "probing"),
    "random": (True, True, "random features"),
}
PROBE_RATE = 10.0
SMOKE_LABELS = 1000  # at most, as the smallest budget is to take seconds whatever the corpus
# For models that others pretrained at length: Devlin et al., arXiv 1810.04805, appendix A.3.
PUBLISHED_RATE, PUBLISHED_EPOCHS = 3e-5, 4


def finetune(
    start: PathLike | Checkpoint,
    corpus: PathLike | Corpus,
    *,
    body: Body = "pretrained",
    n_labels: int | None = None,
    n_epochs: int | None = None,
    budget: str | float | None = None,
    seed: int = 0,
    out: PathLike | None = None,
    model_changes: Changes = None,
    training_changes: Changes = None,
    options: RunOptions = DEFAULTS,
) -> TrainingResult:
    """Train a classifier on labelled texts; evaluate on test, or on valid where there is no test split.

    Parameters
    ----------
    start : path, str or Checkpoint
        What gives tokenizer, configuration and body: a checkpoint or a result of training, or a published
        model by its name or folder, which then learns at ``PUBLISHED_RATE`` for at most
        ``PUBLISHED_EPOCHS`` epochs. The body is copied.
    corpus : str, path or Corpus
        With labels.
    body : {"pretrained", "fresh", "frozen", "random"}
        Train the body of ``start``; new weights in its place (the baseline without pretraining); leave the
        body as it is and train the head alone (a linear probe), at `PROBE_RATE` times the learning rate; the
        same on new weights (random features).
    n_labels : int, optional
        Learn from so many texts only, equally many of each class, drawn by ``seed``. By default all; at the
        budget "smoke" 1,000 at most. Texts of the world are then learned at "gpu" as at "study".
    n_epochs : int, optional
        Passes over the texts; by default the budget's.
    budget, seed, out, training_changes, options
        As in `pretrain`; the seed draws the subset of labels, too.
    model_changes : mapping, optional
        ``dropout`` and ``pooling`` of the `Classifier`; the rest of its model is that of ``start``.

    Examples
    --------
    >>> import tinytx as tx
    >>> from tinytx_run.corpora import Corpus, Split
    >>> texts = Split(("le chat dort", "un chien mange"), labels=(0, 1))
    >>> tokenizer = tx.Tokenizer.train(texts.texts, vocab_size=25)
    >>> start = Checkpoint(tx.LanguageModel(tx.PRESETS["tiny"].replace(vocab_size=25)), tokenizer)
    >>> run = finetune(start, Corpus("two", texts, texts, label_names=("cat", "dog")), n_epochs=20)
    2 layers of width 64, ...; 20 steps of ...
    2 labelled texts of 2 classes (cat, dog), 20 epochs
    >>> run.evaluation.score.accuracy
    1.0
    """
    changes: dict[str, Any] = {"pooling": "mean", **(model_changes or {})}
    asked: dict[str, Any] = {"n_labels": n_labels, "n_epochs": n_epochs, "pooling": changes.pop("pooling")}
    require(body in BODIES, f"body must be one of {', '.join(BODIES)}", repr(body))
    for name, value in {"n_epochs": n_epochs, "n_labels": n_labels}.items():
        if value is not None:
            check_whole(name, value, 1)
    if "n_steps" in (training_changes or {}):
        raise ValueError("n_steps follows from n_epochs in fine-tuning and must be left out, got one")
    if other := ", ".join(changes.keys() - {"dropout"}):
        raise ValueError(f"only dropout and pooling may differ from the model of start, got {other}")
    run = Run(out, budget, seed, changes, training_changes, options)
    data = at_hand(corpus, Corpus, load_corpus, options.data_dir)
    begun = load(start) if isinstance(start, str | os.PathLike) else start
    given, of_start = body_and_tokenizer(begun)
    fresh, frozen, label = BODIES[body]
    asked |= {"start": weights_fingerprint(given), "fresh": fresh, "frozen": frozen}
    kind, name = corpus_kind(data), named_budget(run.budget)
    few = n_labels is not None and (kind, name) == ("world", "gpu")  # few steps, in large batches
    row = plan_finetuning(kind, "study" if few else name)
    lr, epochs, config = row.lr, row.n_epochs, given.config.replace(dropout=row.dropout)
    if frozen:
        lr *= PROBE_RATE
    elif not fresh and isinstance(start, str | os.PathLike) and is_published(start):
        lr, epochs = PUBLISHED_RATE, min(epochs, PUBLISHED_EPOCHS)
    settings = TrainingSettings(n_steps=1, lr=lr, tokens_per_batch=row.tokens_per_batch, seed=seed)
    planned = Recipe(name, config.vocab_size, config, settings, n_epochs=n_epochs or epochs)
    recipe, tokenizer = run.plan("classification", data, planned, lambda size: of_start, **asked)
    if n_labels is None and recipe.budget == "smoke":
        n_labels = min(SMOKE_LABELS, len(data.train))
    learned = data.train if n_labels is None else label_subset(data.train, n_labels, seed)
    learning, n_cut = class_objective(tokenizer, learned, recipe.config)
    n_classes = data.n_classes or 0
    if not 2 <= n_classes <= len(data.train):
        got = f"{n_classes:,} among {len(data.train):,} texts of {data.name}"
        raise ValueError(f"labels must be of at least 2 classes, numbered from 0 without gaps, got {got}")
    model = seeded(lambda: Classifier(recipe.config, n_classes, asked["pooling"]), seed)
    if not fresh:
        model.body.load_state_dict(given.state_dict())
    model.body.requires_grad_(not frozen)
    model.to(run.device)
    scoring, _ = class_objective(tokenizer, data.splits[data.reported], recipe.config)
    if run.stored is None:
        recipe = schedule(run, recipe, model, learning, scoring)
    names = ", ".join(data.class_names[:8]) + (", ..." if n_classes > 8 else "")
    remarks = [f"{len(learned):,} labelled texts of {n_classes} classes ({names}), {recipe.n_epochs} epochs"]
    hashes = (TextHashes.of(learned.texts), *(() if fresh else begun.learned))
    if n_cut:
        cut = f"{n_cut:,} of {len(learned):,} texts"
        remarks.append(f"{cut} exceed {recipe.config.max_len} tokens and lose their end")
    return run.train(
        model,
        tokenizer,
        learning,
        recipe,
        lambda: evaluate_split(model, tokenizer, data, data.reported, data.class_names, hashes),
        label=label,
        remarks=remarks,
        data={"fresh": fresh, "n_labels": len(learned), "n_cut_in_training": n_cut},
        on_step=_after_each_epoch(epoch_ends(learning, recipe.settings, recipe.n_epochs or 1), scoring),
        class_names=data.class_names,
        learned=hashes,
    )


def body_and_tokenizer(start: Checkpoint) -> tuple[Transformer, Tokenizer]:
    """Body and tokenizer of a checkpoint, or of a result of training; a model without one body is refused."""
    if not isinstance(start, Checkpoint):
        raise TypeError(f"start must be a checkpoint or a result of training, got a {type(start).__name__}")
    model, tokenizer = start.with_tokenizer()
    if isinstance(model, Translator):
        raise ValueError("fine-tuning needs a model with one body, got a translator")
    check_vocabulary(model, tokenizer)
    return model.body, tokenizer


def class_objective(
    tokenizer: Tokenizer, split: Split, config: TransformerConfig
) -> tuple[ClassificationObjective, int]:
    """Naming the classes of a split as an objective, and how many of its texts were cut to what fits."""
    sequences, cut = classifier_inputs(tokenizer, split.texts, config.max_len, causal=config.causal)
    return ClassificationObjective(sequences, split.labels or (), pad_id=tokenizer.pad_id), len(cut)


def schedule(
    run: Run, recipe: Recipe, model: Classifier, learning: Objective, scored: ClassificationObjective
) -> Recipe:
    """The recipe with its number of steps: whole epochs, the budget's or as many as its seconds hold."""
    settings, n_epochs = recipe.settings, recipe.n_epochs or 1
    if isinstance(run.budget, float):
        n_steps, seconds = steps_within(run.budget, model, learning, settings)
        to_score = seconds_to_score(model, scored)
        per_epoch = epoch_ends(learning, settings, 1)[0] * seconds / n_steps + to_score
        n_epochs = max(1, int((seconds - to_score) / per_epoch))
        run.expected = f", about {n_epochs * per_epoch:.0f} s"
    return run.resized(recipe, epoch_ends(learning, settings, n_epochs)[-1], n_epochs=n_epochs)


def _after_each_epoch(ends: range, scored: ClassificationObjective) -> OnStep:
    """The accuracy on some texts after each epoch."""
    n = len(scored.labels)

    def score_epoch(step: int, model: Any) -> dict[str, Any] | None:
        if step not in ends:
            return None
        return {"epoch": step // ends.step, "accuracy": count_correct(model, scored) / n, "n": n}

    return score_epoch


def epoch_ends(learning: Objective, settings: TrainingSettings, n_epochs: int) -> range:
    """The step that ends each epoch: all have as many batches, as these follow from lengths."""
    how = {"seed": settings.seed, "tokens_per_batch": settings.tokens_per_batch}
    n_batches = len(learning.epoch_batches(epoch=0, **how))
    return range(n_batches, n_epochs * n_batches + 1, n_batches)


def seconds_to_score(model: Any, scored: ClassificationObjective) -> float:
    """How long it takes to answer some labelled texts once; the same number in all processes."""
    begin = time.perf_counter()
    count_correct(model, scored)
    seconds = time.perf_counter() - begin
    return Processes.current().agree(lambda: seconds)
