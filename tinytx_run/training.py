"""What every training run does, whatever it learns: plan or resume, train, evaluate, and keep checkpoints.

`pretrain`, `finetune` and `train_translator` say what is learned; each hands it to a `Run`.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from tinytx.counting import count_parameters
from tinytx.history import History, TrainingInterrupted
from tinytx.loop import OnStep
from tinytx.objectives import Objective
from tinytx.settings import TrainingSettings, choose_device, choose_precision, require
from tinytx.tokenizer import Tokenizer, UnknownTokensWarning, warn_of_unknown
from tinytx_run.checkpoint import Checkpoint, tokenizer_in
from tinytx_run.corpora import Corpus
from tinytx_run.distributed import Processes, require_processes, train
from tinytx_run.pairs import PairCorpus, Pairs
from tinytx_run.recipes import FF_FACTOR, Recipe, parse_budget, resize
from tinytx_run.runs import Checkpoints, check_request, find_run, read_training
from tinytx_run.splits import TextHashes

Report = Callable[[str], None]
Changes = Mapping[str, Any] | None
PathLike = str | os.PathLike[str]
ModelT = TypeVar("ModelT", bound=nn.Module)
TIMED = 8  # steps, where a budget is a number of seconds
LONG_TO_READ = 1_000_000  # characters, from which on a run says that it begins with them
BYTES_PER_CHARACTER = 50  # of a corpus, its tokens and the training of a tokenizer, at most
# Settings that `resize` chooses by the number of steps: what was asked for replaces them once that is known.
OF_LENGTH = ("warmup_steps", "decay_steps", "log_every", "checkpoint_every")


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a run is made, apart from what it learns.

    Parameters
    ----------
    resume : bool
        Resume the run in ``out``; a missing or empty folder starts afresh, a finished run is only read.
    device : {"auto", "cpu", "cuda"}
    data_dir : path, optional
        Folder that holds one folder a corpus, for a corpus that is given by its name.
    shard : bool
        Whether each of several processes keeps only its part of the weights, or all of them.
    on_step, progress
        As in `tinytx.train`. In fine-tuning ``on_step`` replaces the accuracy after each epoch.
    report : callable
        Gets the plan, and what should be known about the data, a line each.

    Examples
    --------
    >>> RunOptions(resume=True, device="cpu").resume
    True
    """

    resume: bool = False
    device: str = "auto"
    data_dir: PathLike | None = None
    shard: bool = False
    on_step: OnStep | None = None
    progress: bool | None = None
    report: Report = print


DEFAULTS = RunOptions()


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TrainingResult(Checkpoint):
    """A trained model, as it was after the last step (nothing was selected), and how it came about.

    Attributes
    ----------
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


class Run:
    """One training run, new or resumed; the arguments are those that all three functions have."""

    def __init__(
        self,
        out: PathLike | None,
        budget: str | float | None,
        seed: int,
        model_changes: Changes,
        training_changes: Changes,
        options: RunOptions,
    ) -> None:
        self.out, self.options, self.processes = out, options, Processes.current()
        self.report = options.report if self.processes.first else lambda line: None
        self.device, self.budget = choose_device(options.device), parse_budget(budget)
        require_processes(options.shard)
        if options.shard and isinstance(self.budget, float):
            raise ValueError(f"a sharded model needs a budget by name, got {self.budget:g} seconds")
        changes = {"model": dict(model_changes or {}), "training": dict(training_changes or {})}
        self.asked: dict[str, Any] = {"budget": self.budget, "seed": seed, **changes}
        self.stored = self.processes.agree(self._find)
        self.expected = ""  # words about how long it takes, where that was timed

    def _find(self) -> dict[str, Any] | None:
        """Request, recipe and tokenizer of the run in the folder; None where a run may begin afresh."""
        checkpoint = find_run(self.out, self.options.resume)
        if checkpoint is None:
            if self.options.resume:
                self.report(f"{self.out} holds nothing to resume: a new run begins")
            return None
        return {**read_training(checkpoint)["plan"], "tokenizer": tokenizer_in(checkpoint)}

    def plan(
        self,
        objective: str,
        corpus: Corpus | PairCorpus,
        recipe: Recipe,
        tokenizer: Callable[[int], Tokenizer],
        **more: Any,
    ) -> tuple[Recipe, Tokenizer]:
        """The stored recipe and tokenizer, if the same was asked for then; else new ones, as asked for.

        All that was asked for is stored with each checkpoint; ``more`` is what only one objective has.
        """
        named = {"objective": objective, "corpus": corpus.name, "training texts": fingerprint(corpus)}
        self.asked |= {**named, "vocab_size": None, "masking": {}, **more}
        if self.stored is not None:
            check_request(self.stored.get("request", {}), self.asked)
            return Recipe.from_dict(self.stored["recipe"]), self.stored["tokenizer"]
        planned, asked = self._changed(recipe), self.asked["vocab_size"]
        texts = {
            name: (*split.sources, *split.targets) if isinstance(split, Pairs) else split.texts
            for name, split in corpus.splits.items()
        }
        n_chars = sum(len(text) for split in texts.values() for text in split)
        if n_chars > LONG_TO_READ and corpus.name != "world":  # whose few words take a moment
            memory = f"they may take {n_chars * BYTES_PER_CHARACTER / 1e9:.1f} GB of memory"
            self.report(f"{corpus.name}: {n_chars:,} characters are cut into tokens first; {memory}")
        made = self.processes.agree(lambda: tokenizer(planned.vocab_size if asked is None else asked))
        if self.processes.first:  # of one split, that evaluations need not repeat
            any(warn_of_unknown(made, texts[name], f"{corpus.name}, {name} split,") for name in texts)
        config = planned.config.replace(vocab_size=made.vocab_size)
        return planned.replace(vocab_size=made.vocab_size, config=config), made

    def _changed(self, recipe: Recipe) -> Recipe:
        model, training, size = dict(self.asked["model"]), self.asked["training"], self.asked["vocab_size"]
        in_model, rule = model.get("vocab_size", size), "vocab_size must be given as such"
        require(in_model == size, f"{rule}, not among model_changes alone", in_model)
        for name, value in {**self.asked, **training}.items():
            if name in ("n_steps", "n_epochs") and isinstance(self.budget, float):
                got = f"{value} and {self.budget:g} s"
                require(value is None, f"{name} must be left out with a budget in seconds", got)
        now = {name: value for name, value in training.items() if name not in OF_LENGTH}
        settings = recipe.settings.replace(**now)
        settings = settings.replace(precision=choose_precision(settings.precision, self.device))
        if "d_model" in model:
            model.setdefault("d_ff", FF_FACTOR * model["d_model"])
        return recipe.replace(config=recipe.config.replace(**model), settings=settings)

    def schedule(self, recipe: Recipe, model: nn.Module, learning: Objective) -> Recipe:
        """The recipe with its number of steps: the budget's, or as many as its seconds hold."""
        if self.stored is not None:
            return recipe
        n_steps = recipe.settings.n_steps
        if isinstance(self.budget, float):
            n_steps, seconds = steps_within(self.budget, model, learning, recipe.settings)
            self.expected = f", about {seconds:.0f} s"
        return self.resized(recipe, n_steps)

    def resized(self, recipe: Recipe, n_steps: int, **changes: Any) -> Recipe:
        """The recipe for that number of steps; what follows from it holds unless it was asked for."""
        asked = {name: value for name, value in self.asked["training"].items() if name in OF_LENGTH}
        return recipe.replace(settings=resize(recipe.settings, n_steps).replace(**asked), **changes)

    def train(
        self,
        model: Any,
        tokenizer: Tokenizer,
        learning: Objective,
        recipe: Recipe,
        evaluate: Callable[[], Any],
        *,
        label: str,
        remarks: Sequence[str] = (),
        data: dict[str, Any] | None = None,
        on_step: OnStep | None = None,
        class_names: tuple[str, ...] | None = None,
        learned: tuple[TextHashes, ...],
    ) -> TrainingResult:
        """Report the plan, train to the end, and evaluate; what is ``learned`` is noted, see `Checkpoint`."""
        for line in (describe(model, recipe.settings) + self.expected, *remarks):
            self.report(line)
        plan = {"request": self.asked, "recipe": recipe.to_dict()}
        how: dict[str, Any] = {"shard": self.options.shard, "progress": self.options.progress}
        how["on_step"] = self.options.on_step or on_step
        run: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
        if self.out is not None and self.processes.first:
            run = Checkpoints(Path(self.out), plan, tokenizer, class_names, learned).opened()
        with run as kept:
            history = train(model, learning, recipe.settings, checkpoints=kept, label=label, **how)
        model.requires_grad_(True)  # a frozen body may be trained later

        def quiet() -> Any:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UnknownTokensWarning)  # it was given before the training
                return evaluate()

        return TrainingResult(
            model=model,
            tokenizer=tokenizer,
            class_names=class_names,
            learned=learned,
            history=history,
            recipe=recipe,
            evaluation=self.processes.agree(quiet),
            data=data or {},
            path=None if self.out is None else Path(self.out),
        )


def describe(model: Any, settings: TrainingSettings) -> str:
    """Summarise model size and training length in one line."""
    config = model.config
    return (
        f"{config.n_layers} layers of width {config.d_model}, a vocabulary of {config.vocab_size:,}, "
        f"{count_parameters(model):,} parameters; {settings.n_steps:,} steps of up to "
        f"{settings.tokens_per_batch:,} tokens, {settings.precision}"
    )


def seeded(make: Callable[[], ModelT], seed: int) -> ModelT:
    """A model whose first weights are drawn from ``seed``; the global random state is left alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


def fingerprint(corpus: Corpus | PairCorpus) -> str:
    """A short name for the training texts and labels, or pairs, which changes whenever any of them does."""
    if isinstance(corpus, PairCorpus):
        sides = zip(corpus.train.sources, corpus.train.targets, strict=True)
        content = "".join(f"{_escaped(source)}\t{_escaped(target)}\n" for source, target in sides)
    else:
        content = "".join(f"{_escaped(text)}\n" for text in corpus.train.texts) + repr(corpus.train.labels)
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def _escaped(text: str) -> str:
    """A text in which no tab or end of line is taken for that between texts."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")


def weights_fingerprint(body: nn.Module) -> str:
    """A short name for the weights of a body, which changes whenever any of them does."""
    digest = hashlib.sha256()
    for name, tensor in body.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:16]


def steps_within(
    seconds: float, model: nn.Module, objective: Objective, settings: TrainingSettings
) -> tuple[int, float]:
    """How many steps take about so many seconds, timed ones included, and the seconds expected for them.

    The first steps of a copy of the model are timed: `TIMED`, after two that are not.
    """
    begin = time.perf_counter()
    ends: list[float] = []

    def mark(step: int, model: nn.Module) -> None:
        if next(model.parameters()).device.type == "cuda":
            torch.cuda.synchronize()
        ends.append(time.perf_counter())

    timed = settings.replace(n_steps=TIMED + 2, warmup_steps=0, lr=settings.lr / 10)
    try:
        train(copy.deepcopy(model), objective, timed, on_step=mark, progress=False)
    except TrainingInterrupted as stop:
        raise TrainingInterrupted("interrupted while steps were timed, before training began") from stop

    def steps_left() -> tuple[int, float]:
        per_step = (ends[-1] - ends[1]) / TIMED
        n_steps = max(1, int((seconds - (time.perf_counter() - begin)) / per_step))
        return n_steps, n_steps * per_step

    return Processes.current().agree(steps_left)
