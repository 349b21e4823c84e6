"""A patient: the program with one line wrong, trained live on a small part of the world.

Shape letters: B rows, H heads, T queries, S keys.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tinytx.attention import record_attention
from tinytx.config import TransformerConfig
from tinytx_course.museum.faults import FAULTS, PATIENTS, check_number, load
from tinytx_run.recipes import default_budget
from tinyworld.lexicon import TABLES, read_table
from tinyworld.reviews import ReviewPlan
from tinyworld.world import World

TASKS = {"language model": "LanguageModel", "classifier": "Classifier", "translator": "Translator"}
#: How each task is trained: rows drawn, rows held out of them, steps, rows a step, learning rate, dropout.
RECIPES = {
    "language model": {"n": 3000, "held": 200, "n_steps": 220, "n_rows": 24, "lr": 1e-2, "dropout": 0.1},
    "classifier": {"n": 500, "held": 100, "n_steps": 150, "n_rows": 24, "lr": 3e-3, "dropout": 0.0},
    "translator": {"n": 3000, "held": 120, "n_steps": 200, "n_rows": 32, "lr": 1e-2, "dropout": 0.1},
}
SMOKE_STEPS = 3
N_CHECKS = 10  # points of the held-out curve, the first before training
N_FRESH = 300
_FRESH_SEED, _DRAW_SEED = 900, 100

#: Of each table the columns that tell its groups apart, and how many rows of a group the small world has.
_SMALL = {
    "nouns": (("role",), 4),
    "adjectives": (("polarity", "place", "of", "degree"), 2),
    "verbs": (("kind", "polarity"), 2),
    "adverbs": (("polarity",), 2),
    "particles": (("class",), 2),
    "openers": (("class",), 1),
}


@dataclass(frozen=True)
class SmallWorld:
    """The world with few words, in short reviews: small enough to be learned in seconds."""

    french: World
    sentences: World  # what a translator learns
    words: tuple[str, ...]  # by word id; the first three are padding, beginning and end

    @cached_property
    def ids(self) -> dict[str, int]:
        """Word ids by word."""
        return {word: number for number, word in enumerate(self.words)}

    def encode(self, words: Sequence[str]) -> list[int]:
        """Word ids, from the mark of the beginning to that of the end."""
        return [1, *(self.ids[word] for word in words), 2]

    def decode(self, row: Sequence[int]) -> list[str]:
        """The words of a row, without marks."""
        return [self.words[number] for number in row if number > 2]

    def rows(self, task: str, n: int, *, seed: int) -> list[Any]:
        """Draw rows of a task: ids; (ids, label); or (English ids, French ids)."""
        if task == "translator":
            pairs = self.sentences.sentence_pairs(n, seed=seed)
            return [(self.encode(pair.english), self.encode(pair.french)) for pair in pairs]
        reviews = self.french.reviews(n, seed=seed)
        if task == "classifier":
            return [(self.encode(review.words), review.label) for review in reviews]
        return [self.encode(review.words) for review in reviews]

    def bound(self, task: str, rows: Sequence[Any]) -> float:
        """The exact loss that no honest model can expect to beat on these rows, in nats a prediction.

        For a translator it is that of a reader who does not see the source: with it, the loss can be lower.
        """
        if task == "classifier":
            right = [self.french.label_posterior(self.decode(row)) for row, _ in rows]
            chances = [p if label else 1 - p for p, (_, label) in zip(right, rows, strict=True)]
            return float(-np.log(chances).mean())
        texts = [self.decode(row[1] if task == "translator" else row) for row in rows]
        nats = -(self.sentences if task == "translator" else self.french).batch_log_prob(texts)
        return float(nats.sum() / sum(len(text) + 1 for text in texts))


@cache
def _tables() -> Path:
    """A folder with the first rows of each group of the tables of the world, and all its sentences."""
    folder = Path(tempfile.mkdtemp(prefix="tinytx-museum-"))
    for table in TABLES.glob("*.tsv"):
        columns, n = _SMALL.get(table.stem, ((), 1000))
        counts: Counter[tuple[str, ...]] = Counter()
        rows = read_table(table)
        lines = ["\t".join(rows[0])]
        for row in rows:
            group = tuple(row[column] for column in columns)
            counts[group] += 1
            lines += ["\t".join(row.values())] if counts[group] <= n else []
        (folder / table.name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@cache
def small_world() -> SmallWorld:
    """The world of the museum."""
    french, sentences = (
        World(tables=_tables(), plan=ReviewPlan(sentences=sizes)) for sizes in ({1: 0.4, 2: 0.6}, {1: 1.0})
    )
    words = dict.fromkeys([*french.vocabulary, *World("en", tables=_tables()).vocabulary])
    return SmallWorld(french, sentences, ("<pad>", "<s>", "</s>", *words))


@dataclass
class History:
    """What was noted while a model trained."""

    loss: list[float]  # of each training batch, in nats a prediction
    gradients: list[dict[str, float]]  # norm of the gradient of each part, before each update
    held_out: list[tuple[int, float]]  # steps taken, and the loss on rows held out


#: The parts of a model by a mark in the names of their parameters; the first that fits counts.
PARTS = {"norms": "norm", "attention": "attn", "feed-forward": "ff.", "embedding, head": ""}


def gradient_norms(model: nn.Module) -> dict[str, float]:
    """Norm of the gradient of each part; 0 where there is none."""
    squares = dict.fromkeys(PARTS, 0.0)
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            part = next(part for part, mark in PARTS.items() if mark in name)
            squares[part] += float(parameter.grad.square().sum())
    return {part: value**0.5 for part, value in squares.items()}


class Patient:
    """A model with one line wrong, or with none; trained when its model is first asked for.

    Parameters
    ----------
    fault : str, optional
        One of `FAULTS`; the healthy program where not given.
    task : str, optional
        One of `TASKS`, for the healthy program.
    seed : int
        Of the rows, the weights and the order of training.
    number : int, optional
        Under which it is shown; the name of the fault is not.
    n_steps : int, optional
        Of its training; by default as the recipe says, and few with the budget smoke.

    Attributes
    ----------
    task : str
    program : module
        The program, with its own `LanguageModel`, `train`, `evaluate` ...
    train_rows, held_out : list
        As the program has split them.
    """

    def __init__(
        self,
        fault: str | None = None,
        *,
        task: str | None = None,
        seed: int = 0,
        number: int | None = None,
        n_steps: int | None = None,
    ) -> None:
        task = FAULTS[fault].task if fault else task
        if task not in RECIPES:
            raise ValueError(f"task must be one of {', '.join(RECIPES)}, got {task!r}")
        self.task, self.number, self.seed = task, number, seed
        self.program: ModuleType = load(fault)
        self.recipe = RECIPES[task]
        usual = SMOKE_STEPS if default_budget() == "smoke" else int(self.recipe["n_steps"])
        self.n_steps = usual if n_steps is None else n_steps
        rows = small_world().rows(task, int(self.recipe["n"]), seed=_DRAW_SEED + seed)
        self.train_rows, self.held_out = self.program.split(rows, int(self.recipe["held"]))

    def __repr__(self) -> str:
        name = "a healthy model" if self.number is None else f"patient {self.number}"
        return f"{name} ({self.task}, seed {self.seed})"

    @cached_property
    def fresh(self) -> list[Any]:
        """Rows drawn anew, which no training has seen."""
        return small_world().rows(self.task, N_FRESH, seed=_FRESH_SEED + self.seed)

    def new_model(self) -> Any:
        """The model before training."""
        torch.manual_seed(self.seed)
        config = TransformerConfig(
            vocab_size=len(small_world().words), d_model=48, n_heads=4, n_layers=1, d_ff=96,
            dropout=self.recipe["dropout"], tie_embeddings=True, max_len=128,
        )  # fmt: skip
        return getattr(self.program, TASKS[self.task])(config)

    def train(self, rows: Sequence[Any], n_steps: int, n_checks: int = 0) -> tuple[Any, History]:
        """A new model, trained on some rows, and what was noted meanwhile."""
        model, history = self.new_model(), History([], [], [])
        every = max(1, n_steps // max(1, n_checks - 1))

        def watch(step: int, loss: float) -> None:
            if n_checks and step % every == 0:
                history.held_out.append((step, self.program.evaluate(model, self.held_out)))
            history.loss.append(loss)
            history.gradients.append(gradient_norms(model))

        n_rows, lr = int(self.recipe["n_rows"]), self.recipe["lr"]
        self.program.train(model, rows, n_steps=n_steps, n_rows=n_rows, lr=lr, seed=self.seed, watch=watch)
        if n_checks:
            history.held_out.append((n_steps, self.program.evaluate(model, self.held_out)))
        return model, history

    @cached_property
    def _trained(self) -> tuple[Any, History]:
        with torch.random.fork_rng(devices=()):
            return self.train(self.train_rows, self.n_steps, N_CHECKS)

    @property
    def model(self) -> Any:
        """The trained model, as its program left it: in evaluation mode, if the program says so."""
        return self._trained[0]

    @property
    def history(self) -> History:
        """What was noted while it trained."""
        return self._trained[1]

    @cached_property
    def bound(self) -> float:
        """The exact loss to compare with, see `SmallWorld.bound`, on the rows held out."""
        return small_world().bound(self.task, self.held_out)

    def log_probs(self, rows: Sequence[Any], model: Any = None) -> Tensor:
        """Log-probabilities as the program computes them: (B, T, V), for a classifier (B, C)."""
        model = self.model if model is None else model
        model.eval()
        with torch.no_grad():
            return model(*self.inputs(rows)).log_softmax(dim=-1)

    def inputs(self, rows: Sequence[Any]) -> tuple[Tensor, ...]:
        """What the model reads of some rows, padded: word ids without the last, sources first."""
        pad, padded = self.program.PAD, self.program.pad_batch
        if self.task == "translator":
            return padded([src for src, _ in rows], pad), padded([ids[:-1] for _, ids in rows], pad)
        return (
            padded([ids for ids, _ in rows] if self.task == "classifier" else [r[:-1] for r in rows], pad),
        )

    def attention_map(self, row: Any, model: Any = None) -> Tensor:
        """Self-attention weights of the layer on one row, (H, T, T): those of the decoder in a translator."""
        model = self.model if model is None else model
        with record_attention(model) as recorded, torch.no_grad():
            self.log_probs([row], model)
        stack = "decoder" if self.task == "translator" else "body"
        return recorded[f"{stack}.blocks.0.attn"][0].detach()

    def words(self, row: Any) -> list[int]:
        """Word ids of the text that the model predicts or judges: in a translator, of the French one."""
        return row[1] if self.task == "translator" else row[0] if self.task == "classifier" else row


def patient(number: int) -> Patient:
    """The patient of this number; it trains, some seconds long, when it is first examined.

    Raises
    ------
    ValueError
        If there is no patient of this number.
    """
    return Patient(PATIENTS[check_number(number)], number=number)


def healthy(task: str = "language model") -> Patient:
    """A model of the same task whose program is right in every line."""
    return Patient(task=task)
