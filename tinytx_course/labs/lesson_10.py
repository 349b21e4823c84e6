"""Lesson 10: batches, stored results, kinds of words, blanks."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from tinytx.batching import pad_batch
from tinytx.fast import trim_memory
from tinytx.masked_lm import MaskedLanguageModel
from tinytx.objectives import causal_batch
from tinytx.optim import make_optimizer
from tinytx.settings import TrainingSettings, choose_precision
from tinytx.tokenizer import Tokenizer
from tinytx.transformer import LanguageModel
from tinytx_run.evaluate import Sides
from tinytx_run.intervals import paired_interval
from tinyworld.checker import DETERMINERS, FrenchForms
from tinyworld.world import Estimate, World, mean_per_word

MakeBatch = Callable[[list[list[int]], torch.Generator], tuple[Tensor, Tensor]]


def causal_batches(tokenizer: Tokenizer, share: float = 1.0) -> MakeBatch:
    """How batches of a causal model are made: what is read, and the labels, -100 where none counts.

    Of the positions a `share` has a label that counts, drawn at random; 1 draws nothing.

    Returns
    -------
    callable
        Of rows of ids without special ones and a generator; it gives two tensors, (B, T) each.
    """

    def make_batch(rows: list[list[int]], generator: torch.Generator) -> tuple[Tensor, Tensor]:
        ids = pad_batch([[tokenizer.bos_id, *row, tokenizer.eos_id] for row in rows], tokenizer.pad_id)
        inputs, labels = causal_batch(ids)
        labels = labels.masked_fill(labels == tokenizer.pad_id, -100)
        if share < 1:
            labels = labels.where(torch.rand(labels.shape, generator=generator) < share, -100)
        return inputs, labels

    return make_batch


@dataclass(frozen=True)
class ObjectiveRow:
    """One measure of one training objective, one value a seed."""

    measure: str
    contestant: str
    values: tuple[float, ...]


_LEFT, _BOTH, _TUNED, _BAG = "fill, left: excess", "fill: excess", "finetune 100 labels", "bag of words"
_FEW = "causal, few positions"
# Name of the row: measure and field of the stored records.
FIGURES = {
    "fill: nats": ("fill", "nats"),
    _BOTH: ("fill", "excess"),
    "fill, left: nats": ("fill, left side", "nats"),
    _LEFT: ("fill, left side", "excess"),
    _TUNED: ("finetune 100", "accuracy"),
}


def objective_rows(records: Mapping[str, Mapping[str, Any]], budget: str) -> list[ObjectiveRow]:
    """Rows of ``results/objectives.json`` for a budget, over the seeds for which every cell is measured.

    The keys of the records are "BUDGET/seed S/CONTESTANT/MEASURE"; those of "tuning" chose learning rates.
    """
    cells: dict[str, dict[tuple[str, str], Mapping[str, Any]]] = {}
    for key, record in sorted(records.items()):
        of_budget, of_seed, contestant, measure = key.split("/")
        if of_budget == budget and of_seed != "tuning":
            cells.setdefault(of_seed, {})[measure, contestant] = record
    every = set().union(*cells.values())
    seeds = [of_seed for of_seed in cells.values() if set(of_seed) == every]
    rows = []
    for name, (measure, field) in FIGURES.items():
        for contestant in dict.fromkeys(contestant for _, contestant in every):
            if (measure, contestant) in every and seeds:
                values = tuple(of_seed[measure, contestant][field] for of_seed in seeds)
                rows.append(ObjectiveRow(name, contestant, values))
    return rows


_UNITS = {_LEFT: " nats of excess", "fill: nats": " nats", _TUNED: ""}
# A question, and the two rows whose difference answers it: yes if the first one is better.
_QUESTIONS = {
    "Is a causal model nearer to its exact value than a masked one": (
        (_LEFT, "causal"),
        (_BOTH, "masked"),
    ),
    "Do fewer positions cost a causal model anything": ((_LEFT, "causal"), (_LEFT, _FEW)),
    "With as few positions, is it nearer than a masked one": ((_LEFT, _FEW), (_BOTH, "masked")),
    "Does a masked model fill a blank better than a causal one that sees the left": (
        ("fill: nats", "masked"),
        ("fill, left: nats", "causal"),
    ),
    "Does a causal model that scores whole reviews fill it better still": (
        ("fill: nats", "causal"),
        ("fill: nats", "masked"),
    ),
    "Fine-tuned, is a causal model better than a masked one": ((_TUNED, "causal"), (_TUNED, "masked")),
    "Does causal pretraining beat new weights": ((_TUNED, "causal"), (_TUNED, "from scratch, one way")),
    "Does masked pretraining beat new weights": ((_TUNED, "masked"), (_TUNED, "from scratch, both ways")),
    "Does masked pretraining beat counting words": ((_TUNED, "masked"), (_TUNED, _BAG)),
}


def findings(rows: Sequence[ObjectiveRow]) -> list[str]:
    """One sentence for each question whose rows are there, with an answer: yes, no or open.

    Differences are paired by seed, plus in favour of yes. Intervals are widened by Bonferroni's correction.
    """
    found = {(row.measure, row.contestant): row for row in rows}
    asked = {
        question: (found[first], found[second])
        for question, (first, second) in _QUESTIONS.items()
        if first in found and second in found
    }
    lines = []
    for question, (first, second) in asked.items():
        gains = np.subtract(first.values, second.values) * (1 if first.measure == _TUNED else -1)
        gain = paired_interval(gains, n_comparisons=len(asked))
        answer = ("yes" if gain.mean > 0 else "no, the reverse") if gain.excludes_zero else "open"
        means = f"{np.mean(first.values):.2f} against {np.mean(second.values):.2f}{_UNITS[first.measure]}"
        lines.append(f"{question}? {answer}: {means}, {gain.mean:+.2f} [{gain.low:+.2f}, {gain.high:+.2f}]")
    return lines


def best_at_an_end(records: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Contestants whose best learning rate of pretraining is the lowest or the highest that was tried."""
    tried: dict[str, list[tuple[float, float]]] = {}
    for record in records.values():
        if record["measure"] == "tuning" and "excess" in record:
            lr = record["origin"]["recipe"]["settings"]["lr"]
            tried.setdefault(record["contestant"], []).append((record["excess"], lr))
    rates = {name: sorted(lr for _, lr in found) for name, found in tried.items()}
    return [name for name, found in tried.items() if min(found)[1] in (rates[name][0], rates[name][-1])]


KINDS = ("first word", "punctuation", "article", "est, sont, ai", "verb", "noun", "adjective", "other")


def kinds_in(world: World, words: Sequence[str]) -> np.ndarray:
    """The kind of each word of a French review, one of `KINDS`, shape (T,)."""
    forms = FrenchForms(world.grammar.lexicon)
    of_kind = {
        "punctuation": {",", ".", "!"},
        "article": DETERMINERS,
        "est, sont, ai": {"est", "sont", "ai"},
        "verb": {*forms.verbs, *forms.participles},
        "noun": forms.nouns,
        "adjective": forms.adjectives,
    }
    found = []
    for before, word, after in zip((None, *words[:-1]), words, (*words[1:], None), strict=True):
        kind = next((kind for kind, its in of_kind.items() if word in its), "other")
        if before in (None, ".", "!"):
            kind = "first word"
        elif word in ("l'", "les") and after == "ai":  # je l'ai lu: a pronoun
            kind = "other"
        found.append(kind)
    return np.array(found)


def by_kind(values: Sequence[np.ndarray], kinds: Sequence[np.ndarray]) -> dict[str, Estimate]:
    """Mean per word of each kind, from the values (T,) and the kinds (T,) of each review; largest first."""
    pairs = list(zip(values, kinds, strict=True))
    means = {kind: mean_per_word([own[names == kind] for own, names in pairs]) for kind in KINDS}
    return dict(sorted(means.items(), key=lambda item: -item[1].mean))


@dataclass(frozen=True)
class Blanks:
    """One token of each of N texts of the world, to be predicted: the same for every model."""

    tokenizer: Tokenizer
    rows: list[list[int]]
    positions: list[int]

    @classmethod
    def drawn(cls, tokenizer: Tokenizer, texts: Sequence[str], *, seed: int) -> Blanks:
        """Draw one position in each text."""
        dice, rows = random.Random(seed), tokenizer.encode_batch(texts)
        return cls(tokenizer, rows, [dice.randrange(len(ids)) for ids in rows])

    def exact(self, world: World, sides: Sides) -> np.ndarray:
        """Nats of the true token for the exact language, shape (N,)."""
        through, blanks = world.through(self.tokenizer), zip(self.rows, self.positions, strict=True)
        ask = through.fill_token if sides == "both" else lambda ids, t: through.next_token(ids[:t])
        return -np.log([ask(ids, t)[ids[t]] for ids, t in blanks])

    @torch.no_grad()
    def nats(self, model: LanguageModel | MaskedLanguageModel) -> np.ndarray:
        """Nats of the true token, given both sides for a masked model, else the left; shape (N,)."""
        its, both = self.tokenizer, isinstance(model, MaskedLanguageModel)
        first = its.cls_id if both else its.bos_id
        ids = pad_batch([[first, *row, its.sep_id] for row in self.rows], its.pad_id)
        rows, at = torch.arange(len(ids)), torch.tensor(self.positions)
        truth = ids[rows, at + 1]
        if both:
            ids[rows, at + 1] = its.mask_id
        # A masked model predicts at the blank itself, a causal one a position earlier.
        hidden = model.body(ids, ids != its.pad_id)[rows, at + both]  # (N, D)
        found: np.ndarray = cross_entropy(model.head(hidden), truth, reduction="none").double().numpy()
        return found


def train(
    model: LanguageModel | MaskedLanguageModel,
    make_batch: MakeBatch,
    texts: Sequence[str],
    settings: TrainingSettings,
    blanks: Blanks,
) -> dict[int, float]:
    """Train as in lesson 08, with a loss at labels that are not -100, and watch the nats of some blanks.

    Parameters
    ----------
    make_batch : callable
        Returns inputs and labels, both of shape (B, T), for some texts as ids and a generator.

    Returns
    -------
    dict
        Mean nats of the blanks by step, at the start and ten times on the way.
    """
    tokenizer = blanks.tokenizer
    # Sorted: a run of neighbours is a batch with little padding.
    rows = sorted(tokenizer.encode_batch(texts), key=len)
    in_bf16 = choose_precision(settings.precision, torch.device("cpu")) == "bf16"
    nats, optimizer = {0: float(blanks.nats(model).mean())}, make_optimizer(model, settings)
    generator, dice = torch.Generator().manual_seed(0), random.Random(0)
    for step in range(1, settings.n_steps + 1):
        start = dice.randrange(len(rows))
        n_rows = settings.tokens_per_batch // len(rows[start])
        inputs, labels = make_batch(rows[start : start + n_rows], generator)
        asked = labels != -100  # (B, T), N of them
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=in_bf16):
            hidden = model.body(inputs, inputs != tokenizer.pad_id)[asked]  # (N, D)
            loss = cross_entropy(model.head(hidden), labels[asked])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip_norm)
        for group in optimizer.param_groups:
            group["lr"] = settings.lr_at(step)
        optimizer.step()
        optimizer.zero_grad()
        if step % max(1, settings.n_steps // 10) == 0:
            nats[step] = float(blanks.nats(model).mean())
            trim_memory()  # batches of many sizes leave gaps
    return nats
