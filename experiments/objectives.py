"""The contest of objectives: causal, masked, and masked with next sentences, measured cell by cell."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments.store import Store, kept_or_measured
from tinytx.model.config import TransformerConfig
from tinytx.model.costs import cost_table
from tinytx.model.counting import count_parameters
from tinytx.model.masked_lm import MaskedLanguageModel
from tinytx.model.transformer import LanguageModel
from tinytx.text.corpora import Corpus, load_corpus
from tinytx.text.tokenizer import Tokenizer
from tinytx.training.evaluate import Sides, fill_probs
from tinytx.training.files import json_bytes
from tinytx.training.fit import FitResult, Report, fit
from tinytx.training.generate import generate_ids, unwritten_ids
from tinytx.training.intervals import PairedInterval, paired_interval
from tinytx.training.loop import progress_bar
from tinytx.training.masking import Masking, PairsOfSentences, draw_pairs, make_passages
from tinytx.training.objectives import PackedSequences, pair_rows
from tinytx.training.recipes import Recipe, parse_budget, plan, plan_finetuning
from tinytx.training.tasks import fingerprint
from tinytx.world.world import World
from tinytx_course.labs.lesson_10 import TopicOverlap, complete_masked

MEAN_LEN = 40  # ids of a review of the world, about; read for the closed form of operations
BODY = {"tie_embeddings": True, "n_segments": 2}  # of all contestants, so that their bodies are alike
TRAINING = ("n_steps", "lr", "optimizer", "decay", "final_lr_fraction")  # all but the first alike, too


@dataclass(frozen=True)
class Contestant:
    """One way to pretrain.

    Attributes
    ----------
    name : str
    objective : str
        Of `fit`.
    equal : str or None
        What it has in common with the causal model beside data, tokenizer and body: "compute" (floating-point
        operations of training, by closed form) or "tokens" (steps). None for the causal model itself.
    """

    name: str
    objective: str
    equal: str | None


CONTESTANTS = (
    Contestant("causal", "causal", None),
    Contestant("masked", "masked", "compute"),
    Contestant("masked+nsp", "masked+nsp", "compute"),
    Contestant("masked, same tokens", "masked", "tokens"),
    Contestant("masked+nsp, same tokens", "masked+nsp", "tokens"),
)


def training_flops(config: TransformerConfig, masking: Masking | None, seq_len: int = MEAN_LEN) -> float:
    """Floating-point operations of the forward pass for each id read, by closed form; training takes thrice.

    Only drawn places of a masked model reach its output layer.
    """
    body = cost_table(config, None, batch_size=1, seq_len=seq_len).flops_forward
    output = cost_table(config, "lm", batch_size=1, seq_len=seq_len).flops_forward - body
    if masking is None:
        return (body + output) / seq_len
    if masking.transform:
        output += 2 * seq_len * config.d_model**2
    pooler = 2 * config.d_model**2 + 4 * config.d_model if masking.next_sentence else 0
    return (body + masking.p * output + pooler) / seq_len


class Contest:
    """The models of a contest, trained when first needed, and what is measured on them."""

    def __init__(
        self,
        data: Corpus,
        budget: str,
        label_counts: Sequence[int],
        n_blanks: int,
        n_prefixes: int,
        work_dir: Path,
        device: str,
        report: Report,
    ) -> None:
        self.data, self.budget, self.labels = data, budget, tuple(label_counts)
        self.n_blanks, self.n_prefixes = n_blanks, n_prefixes
        self.work_dir, self.device, self.report = work_dir, device, report
        self._texts = fingerprint(data)
        self._split = "valid" if data.test is None else "test"
        self._at_hand: tuple[int, str] | None = None
        self._result: FitResult | None = None
        self._best: float | None = None

    def measures(self, one: Contestant) -> list[str]:
        """Names of what is measured on a contestant."""
        fills = ["fill", "fill, left side"] if one.objective == "causal" else ["fill"]
        following = ["next sentence"] if one.objective == "masked+nsp" else []
        ways = [f"{way} {n}" for n in self.labels for way in ("probe", "finetune")]
        return ["pretraining", *fills, "complete", *following, *ways]

    def origin(self, seed: int, one: Contestant, measure: str) -> dict[str, Any]:
        """Everything that a record follows from."""
        settings: dict[str, Any] = {}
        if measure.startswith("fill"):
            settings = {"n_blanks": self.n_blanks}
        elif measure == "complete":
            settings = {"n_prefixes": self.n_prefixes}
        elif measure.startswith(("probe", "finetune")):
            settings = {"finetuning": dataclasses.asdict(plan_finetuning("world", self.budget))}
        return {"texts": self._texts, "recipe": self._plan(seed, one).to_dict(), "settings": settings}

    def _plan(self, seed: int, one: Contestant) -> Recipe:
        """What a contestant is pretrained with, before its tokenizer is known."""
        base = plan("world", "masked", self.budget, seed=seed)
        config, masking = base.config.replace(**BODY, causal=one.objective == "causal"), None
        n_steps = base.settings.n_steps
        if one.objective != "causal":
            masking = Masking(next_sentence=one.objective == "masked+nsp", transform=False)
        if one.equal == "compute":
            n_steps = round(n_steps * training_flops(config, None) / training_flops(config, masking))
        settings = base.settings.replace(n_steps=n_steps)
        return dataclasses.replace(base, config=config, settings=settings, masking=masking)

    def _trained(self, seed: int, one: Contestant) -> FitResult:
        if self._at_hand != (seed, one.name) or self._result is None:
            wanted = self._plan(seed, one)
            what = json_bytes({"texts": self._texts, "recipe": wanted.to_dict()})
            digest = hashlib.sha256(what).hexdigest()[:12]
            name = one.name.replace(", ", "-").replace(" ", "-")
            self._result = fit(
                self.data,
                objective=one.objective,
                budget=self.budget,
                seed=seed,
                out=self.work_dir / f"objectives-{name}-{self.budget}-seed{seed}-{digest}",
                resume=True,
                device=self.device,
                model_changes=BODY,
                training_changes={name: getattr(wanted.settings, name) for name in TRAINING},
                masking_changes=None if wanted.masking is None else {"transform": False},
                progress=False,
                report=self.report,
            )
            self._at_hand = (seed, one.name)
        return self._result

    def measured(self, seed: int, one: Contestant, measure: str) -> dict[str, Any]:
        """One record."""
        result = self._trained(seed, one)
        model, tokenizer, texts = result.model, result.tokenizer, self.data.splits[self._split].texts
        if measure == "pretraining":
            return self._pretraining(result)
        if measure.startswith("fill"):
            sides: Sides = "left" if measure.endswith("left side") else "both"
            return fill_measures(model, tokenizer, texts, self.n_blanks, sides)
        if measure == "complete":
            return completion_measures(model, tokenizer, texts, self.n_prefixes, seed=seed)
        if measure == "next sentence" and isinstance(model, MaskedLanguageModel):
            return next_sentence_measures(model, tokenizer, self.data, self._split)
        return self._labelled(result, seed, *measure.split(" "))

    def _pretraining(self, result: FitResult) -> dict[str, Any]:
        settings, config = result.recipe.settings, result.recipe.config
        return {
            **{key: value for key, value in result.to_dict().items() if key != "path"},
            "n_body": count_parameters(result.model.body),
            "ids_at_most": settings.n_steps * settings.tokens_per_batch,
            "flops_per_id": 3 * training_flops(config, result.recipe.masking),
            "history": {"step": result.history.step, "loss": result.history.loss},
        }

    def _labelled(self, result: FitResult, seed: int, way: str, n_labels: str) -> dict[str, Any]:
        tuned = fit(
            self.data,
            objective="classification",
            start=result,
            frozen=way == "probe",
            budget=self.budget,
            seed=seed,
            n_labels=int(n_labels),
            device=self.device,
            n_scored=1,
            progress=False,
            report=lambda line: None,
        )
        if self._best is None:
            split = self.data.splits[self._split]
            self._best = best_label_accuracy(split.texts, split.labels or ())
        return {**tuned.evaluation.score.to_dict(), "exact": {"accuracy": self._best}}


_BLANKS, _PAIRS = 41, 42  # seeds of what is drawn from the test texts


def fill_measures(
    model: LanguageModel | MaskedLanguageModel,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    n_blanks: int,
    sides: Sides = "both",
) -> dict[str, Any]:
    """Fill one blank in each of some texts of the world.

    Returns
    -------
    dict
        ``nats`` (mean surprise at the true piece), ``accuracy`` of the most probable one, ``excess`` (mean
        Kullback-Leibler divergence from the exact fill given both sides), and under ``exact`` the first two
        for the exact fill. Blanks are the same for every model.
    """
    through = World().through(tokenizer)
    rng = np.random.default_rng(_BLANKS)
    found: dict[str, list[float]] = {"nats": [], "accuracy": [], "excess": []}
    exact: dict[str, list[float]] = {"nats": [], "accuracy": []}
    for ids in tokenizer.encode_batch(texts[:n_blanks]):
        place = int(rng.integers(len(ids)))
        truth = through.fill_token(ids, place)
        chances = fill_probs(model, tokenizer, ids, place, sides=sides)
        for which, probs in ((found, chances), (exact, truth)):
            which["nats"].append(-float(np.log(probs[ids[place]])))
            which["accuracy"].append(float(probs.argmax() == ids[place]))
        possible = truth > 0
        found["excess"].append(float((truth[possible] * np.log(truth[possible] / chances[possible])).sum()))
    means = {name: float(np.mean(values)) for name, values in found.items()}
    return {
        "n": len(found["nats"]),
        **means,
        "exact": {name: float(np.mean(values)) for name, values in exact.items()},
    }


def completion_measures(
    model: LanguageModel | MaskedLanguageModel,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    n_prefixes: int,
    *,
    n_sweeps: int = 4,
    seed: int = 0,
) -> dict[str, Any]:
    """Carry on the first half of some texts of the world by sampling, to the end of the review.

    A causal model stops by itself. A masked one is told the true number of pieces.

    Returns
    -------
    dict
        ``possible``: share of completed reviews that the world can write at all; ``words_before_error``: mean
        number of new words before the first one that no review could have there; ``new_words``: mean number
        of new words. Samples of the exact language would have 1, and no error.
    """
    prefixes, n_new = [], []
    for text in texts[:n_prefixes]:
        words = text.split(" ")
        prefixes.append(words[: len(words) // 2])
        n_new.append(len(tokenizer.encode(" ".join(words[len(words) // 2 :]))))
    starts = [tokenizer.encode(" ".join(prefix)) for prefix in prefixes]
    if isinstance(model, MaskedLanguageModel):
        new = complete_masked(model, tokenizer, starts, n_new, n_sweeps=n_sweeps, seed=seed)
    else:
        first = seed * len(starts)
        new = [_carried_on(model, tokenizer, start, first + i) for i, start in enumerate(starts)]
    world, possible, before_error, n_words = World(), 0, 0, 0
    for prefix, start, ids in zip(prefixes, starts, new, strict=True):
        words = tokenizer.decode([*start, *ids]).split(" ")
        possible += world.log_prob(words) > -np.inf
        fine = [state.total > 0 for state in world.automaton.prefixes(words)][1:]
        good = fine.index(False) if False in fine else len(fine)
        before_error += max(0, good - len(prefix))
        n_words += max(0, len(words) - len(prefix))
    n = len(prefixes)
    return {
        "n": n,
        "possible": possible / n,
        "words_before_error": before_error / n,
        "new_words": n_words / n,
        "n_sweeps": n_sweeps,
    }


def _carried_on(model: LanguageModel, tokenizer: Tokenizer, start: list[int], seed: int) -> list[int]:
    ids = generate_ids(
        model,
        [tokenizer.bos_id, *start],
        eos_id=tokenizer.eos_id,
        forbidden_ids=unwritten_ids(tokenizer),
        max_new_tokens=model.config.max_len - len(start) - 1,
        seed=seed,
    )
    return ids[:-1] if ids[-1] == tokenizer.eos_id else ids


def next_sentence_measures(
    model: MaskedLanguageModel, tokenizer: Tokenizer, corpus: Corpus, split: str
) -> dict[str, Any]:
    """Ask whether one part of a text follows another, and ask counts of words the same.

    Returns
    -------
    dict
        Accuracies on one pair a passage of the split: of the ``model``, of ``associations`` between words of
        the training pairs, and of ``shared`` words; see `TopicOverlap`.
    """
    room = model.config.max_len - 3
    learned, asked = (
        draw_pairs(make_passages(tokenizer, texts, room), room, np.random.default_rng(seed))
        for texts, seed in ((corpus.train.texts, _PAIRS), (corpus.splits[split].texts, _PAIRS + 1))
    )
    labels = np.array(asked.labels)
    accuracy = {"model": float((_follows(model, tokenizer, asked) == labels).mean())}
    for name, associations in (("associations", True), ("shared", False)):
        baseline = TopicOverlap(tokenizer.vocab_size, associations=associations)
        baseline.fit(learned.firsts, learned.seconds, learned.labels)
        accuracy[name] = float((baseline.predict(asked.firsts, asked.seconds) == labels).mean())
    return {"n": len(labels), **accuracy}


@torch.no_grad()
def _follows(
    model: MaskedLanguageModel, tokenizer: Tokenizer, pairs: PairsOfSentences, n_rows: int = 64
) -> np.ndarray:
    """The model's answers, 0 or 1, shape (N,)."""
    device = next(model.parameters()).device
    rows = PackedSequences(pair_rows(tokenizer, pairs), tokenizer.pad_id)
    firsts = [len(first) + 2 for first in pairs.firsts]
    order = sorted(range(len(rows)), key=lambda i: rows.lengths[i])
    answers = np.zeros(len(rows), dtype=int)
    was_training = model.training
    model.eval()
    for at in range(0, len(order), n_rows):
        chosen = order[at : at + n_rows]
        inputs = rows.rows(chosen)  # (n, T)
        places = torch.arange(inputs.shape[1])
        real = inputs != tokenizer.pad_id
        second = (places >= torch.tensor([firsts[i] for i in chosen])[:, None]) & real
        segments = second.long().to(device) if model.config.n_segments else None
        found = model.follows(inputs.to(device), real.to(device), segments)
        answers[chosen] = found.argmax(dim=1).cpu().numpy()
    model.train(was_training)
    return answers


def best_label_accuracy(texts: Sequence[str], labels: Sequence[int]) -> float:
    """How often the most probable label, given the whole review, is the right one: nobody can expect more."""
    world = World()
    right = [
        (world.label_posterior(text.split(" ")) > 0.5) == bool(label)
        for text, label in zip(texts, labels, strict=True)
    ]
    return float(np.mean(right))


@dataclass(frozen=True)
class ObjectivesRow:
    """One measure of one contestant over all seeds.

    Attributes
    ----------
    measure, contestant : str
    values : tuple of float
        One a seed.
    interval : PairedInterval or None
        Of the mean over seeds; None for a single seed.
    gain : PairedInterval or None
        Of the difference from the causal model with the same seeds; None for that model or a single seed.
    exact : float or None
        What the exact language reaches, the optimum.
    """

    measure: str
    contestant: str
    values: tuple[float, ...]
    interval: PairedInterval | None
    gain: PairedInterval | None
    exact: float | None

    def __str__(self) -> str:
        line = f"{self.measure:<22}{self.contestant:<25}{statistics.fmean(self.values):>8.3f}"
        if self.interval is not None:
            line += f" [{self.interval.low:.3f}, {self.interval.high:.3f}]"
        if self.gain is not None:
            line += f"  against causal {self.gain.mean:+.3f} [{self.gain.low:+.3f}, {self.gain.high:+.3f}]"
        return line if self.exact is None else f"{line}  exact {self.exact:.3f}"

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON can hold them, with the mean."""
        fields = {**dataclasses.asdict(self), "mean": statistics.fmean(self.values)}
        for name in ("interval", "gain"):
            one = getattr(self, name)
            fields[name] = None if one is None else [one.mean, one.low, one.high]
        return fields


def objectives(
    *,
    store: Store,
    corpus: Corpus | None = None,
    budget: str | float | None = None,
    n_seeds: int = 3,
    label_counts: Sequence[int] = (50, 200),
    n_blanks: int = 200,
    n_prefixes: int = 100,
    work_dir: str | os.PathLike[str] = "build",
    device: str = "auto",
    progress: bool | None = None,
    report: Report = print,
) -> list[ObjectivesRow]:
    """Pretrain every contestant with every seed on the world, and judge what it learned.

    Each cell (seed, contestant, measure) is kept in the store as soon as it is measured; what is there
    already, from the same texts, plan and settings, is not measured again. Models lie below ``work_dir``,
    where an interrupted training goes on.

    Parameters
    ----------
    store : Store
        Such as ``tinytx_course.results.Results("objectives")``.
    corpus : Corpus, optional
        Texts of the world, by default those of `load_corpus`.
    budget : str, optional
        Name of a budget: its masked recipe is that of all, but for mask and number of steps.
    n_seeds : int
        Seeds 0, 1, ...: of weights, order, masks and labels.
    label_counts : sequence of int
        For the linear probe and for fine-tuning.
    n_blanks, n_prefixes : int
        Test texts in which one blank is filled, and whose first half is carried on.
    work_dir, device : path, str
    progress : bool, optional
        Show a bar; by default when a person watches.
    report : callable
        Told the plan of each training in one line.

    Returns
    -------
    list of ObjectivesRow
    """
    asked = parse_budget(budget)
    if n_seeds < 1:
        raise ValueError(f"n_seeds must be at least 1, got {n_seeds}")
    if isinstance(asked, float):
        raise ValueError(f"the contest needs a budget by name, as equal steps are compared, got {asked} s")
    data = load_corpus("world") if corpus is None else corpus
    contest = Contest(data, asked, label_counts, n_blanks, n_prefixes, Path(work_dir), device, report)
    cells = [
        (seed, one, measure)
        for seed in range(n_seeds)
        for one in CONTESTANTS
        for measure in contest.measures(one)
    ]
    records: dict[tuple[str, str], list[dict[str, Any]]] = {}
    with progress_bar(len(cells), label="objectives", show=progress) as bar:
        for cell in cells:
            seed, one, measure = cell
            key, origin = f"{asked}/seed {seed}/{one.name}/{measure}", contest.origin(seed, one, measure)
            record = kept_or_measured(store, key, origin, partial(_measured, contest, *cell))
            records.setdefault((measure, one.name), []).append(record)
            bar.update()
    return _rows(records)


def _measured(contest: Contest, seed: int, one: Contestant, measure: str) -> dict[str, Any]:
    return {
        "seed": seed,
        "contestant": one.name,
        "measure": measure,
        **contest.measured(seed, one, measure),
    }


def kept_rows(store: Mapping[str, dict[str, Any]], budget: str) -> list[ObjectivesRow]:
    """The rows of what `objectives` has kept for a budget, nothing measured.

    Parameters
    ----------
    store : mapping of str to dict
        Records by key, such as ``read_results("objectives").data``.
    budget : str

    Returns
    -------
    list of ObjectivesRow
        Over the seeds that every contestant has been through, for every measure.
    """
    parts = {key: key.split("/") for key in store if key.startswith(f"{budget}/")}
    found: dict[str, set[tuple[str, str]]] = {}
    for _, seed, contestant, measure in parts.values():
        found.setdefault(seed, set()).add((contestant, measure))
    whole = set().union(*found.values()) if found else set()
    records: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for key, (_, seed, contestant, measure) in sorted(parts.items()):
        if found[seed] == whole:
            records.setdefault((measure, contestant), []).append(store[key])
    return _rows(records)


# What of each record is compared: name of the row -> (measure, field).
_FIGURES = {
    "fill: nats": ("fill", "nats"),
    "fill: excess": ("fill", "excess"),
    "fill: accuracy": ("fill", "accuracy"),
    "fill, left: nats": ("fill, left side", "nats"),
    "fill, left: accuracy": ("fill, left side", "accuracy"),
    "complete: possible": ("complete", "possible"),
    "complete: good words": ("complete", "words_before_error"),
    "next: model": ("next sentence", "model"),
    "next: associations": ("next sentence", "associations"),
    "next: shared words": ("next sentence", "shared"),
}
_IDEAL = {"fill: excess": 0.0, "complete: possible": 1.0}


def _rows(records: Mapping[tuple[str, str], list[dict[str, Any]]]) -> list[ObjectivesRow]:
    labelled = {measure for measure, _ in records if measure.startswith(("probe", "finetune"))}
    figures = {**_FIGURES, **{f"{name} labels": (name, "accuracy") for name in sorted(labelled)}}
    rows = []
    for label, (measure, field) in figures.items():
        causal = [record[field] for record in records.get((measure, "causal"), [])]
        for one in CONTESTANTS:
            found = records.get((measure, one.name))
            if not found:
                continue
            values = [record[field] for record in found]
            several = len(values) > 1
            gain = None
            if several and causal and one.name != "causal":
                gain = paired_interval([a - b for a, b in zip(values, causal, strict=True)])
            exact = found[0].get("exact", {}).get(field, _IDEAL.get(label))
            interval = paired_interval(values) if several else None
            rows.append(ObjectivesRow(label, one.name, tuple(values), interval, gain, exact))
    return rows
