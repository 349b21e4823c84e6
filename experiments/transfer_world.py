"""Experiments with several seeds, cell by cell, so that what is measured once is never lost."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from experiments.store import Store, kept_or_measured
from tinytx.text.corpora import Corpus, load_corpus
from tinytx.training.files import json_bytes
from tinytx.training.fit import Report, fit
from tinytx.training.intervals import PairedInterval, paired_interval
from tinytx.training.loop import progress_bar
from tinytx.training.recipes import corpus_kind, parse_budget, plan, plan_finetuning
from tinytx.training.tasks import body_and_tokenizer, fingerprint, weights_fingerprint

STARTS = ("pretrained", "scratch", "frozen")  # the last: a pretrained body of which only the head learns


@dataclass(frozen=True)
class TransferRow:
    """Pretrained against scratch with one number of labels, over all seeds.

    Attributes
    ----------
    n_labels : int
    seeds : tuple of int
    pretrained, scratch, frozen : tuple of float
        Accuracy after the last epoch, one a seed; frozen: the pretrained body as it is, only the head learns.
    gain : PairedInterval or None
        Of pretrained minus scratch; None for a single seed.
    """

    n_labels: int
    seeds: tuple[int, ...]
    pretrained: tuple[float, ...]
    scratch: tuple[float, ...]
    frozen: tuple[float, ...]
    gain: PairedInterval | None

    def __str__(self) -> str:
        line = (
            f"{self.n_labels:>6,} labels, {len(self.seeds)} seeds: pretrained "
            f"{statistics.fmean(self.pretrained):.3f}, scratch {statistics.fmean(self.scratch):.3f}, "
            f"frozen {statistics.fmean(self.frozen):.3f}"
        )
        if self.gain is None:
            return line
        return f"{line}, gain {self.gain.mean:+.3f} [{self.gain.low:+.3f}, {self.gain.high:+.3f}]"

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON can hold them, with the means."""
        return {
            "n_labels": self.n_labels,
            "seeds": list(self.seeds),
            "pretrained": list(self.pretrained),
            "scratch": list(self.scratch),
            "frozen": list(self.frozen),
            "mean_pretrained": statistics.fmean(self.pretrained),
            "mean_scratch": statistics.fmean(self.scratch),
            "mean_frozen": statistics.fmean(self.frozen),
            "gain": None if self.gain is None else [self.gain.mean, self.gain.low, self.gain.high],
        }


def transfer(
    corpus: str | os.PathLike[str] | Corpus = "world",
    *,
    store: Store,
    budget: str | float | None = None,
    n_seeds: int = 5,
    label_counts: Sequence[int] = (50, 200),
    checkpoint: str | os.PathLike[str] | None = None,
    work_dir: str | os.PathLike[str] = "build",
    data_dir: str | os.PathLike[str] | None = None,
    device: str = "auto",
    n_scored: int | None = None,
    progress: bool | None = None,
    report: Report = print,
) -> list[TransferRow]:
    """Measure what pretraining is worth: the same labels, order and seeds, with and without it.

    Each cell (number of labels, seed, start) is kept in the store as soon as it is measured. Cells that are
    there already, from the same pretrained weights, texts and budget, are not measured again.

    Parameters
    ----------
    corpus : str, path or Corpus
        With labels.
    store : Store
        Such as ``tinytx_course.results.Results("transfer")``.
    budget : str or float, optional
        For pretraining and for each fine-tuning.
    n_seeds : int
        Seeds 0, 1, ...: each draws another subset of labels, another order and other new weights.
    label_counts : sequence of int
    checkpoint : path, optional
        A pretrained model. By default one is pretrained, once, in a folder below ``work_dir``.
    work_dir, data_dir, device : path, path, str
    n_scored : int, optional
        Texts that each curve looks at after each epoch; the accuracy of a row counts all of the split.
    progress : bool, optional
        Show a bar; by default when a person watches.
    report : callable
        Told the plan in one line.

    Returns
    -------
    list of TransferRow
        One a number of labels.
    """
    if n_seeds < 1:
        raise ValueError(f"n_seeds must be at least 1, got {n_seeds}")
    asked = parse_budget(budget)
    data = corpus if isinstance(corpus, Corpus) else load_corpus(corpus, data_dir)
    if data.train.labels is None:
        raise ValueError(
            f"the transfer experiment needs a corpus with labels, got {data.name}, which has none"
        )
    if not label_counts or not all(1 <= n <= len(data.train) for n in label_counts):
        raise ValueError(f"labels must be numbers from 1 to {len(data.train)}, got {list(label_counts)}")
    if checkpoint is None:
        recipe = plan(corpus_kind(data), "causal", asked).to_dict()
        name = hashlib.sha256(json_bytes({"recipe": recipe, "texts": fingerprint(data)})).hexdigest()[:12]
        checkpoint = Path(work_dir) / f"transfer-{data.name}-{asked}-{name}"
        fit(data, budget=asked, out=checkpoint, resume=True, device=device, progress=progress, report=report)
    # Refuses a checkpoint that cannot be fine-tuned before anything is measured.
    weights = weights_fingerprint(body_and_tokenizer(checkpoint)[0])
    origin = {
        "budget": asked,
        "weights": weights,
        "texts": fingerprint(data),
        "finetuning": dataclasses.asdict(plan_finetuning(corpus_kind(data), asked)),
        "n_scored": n_scored,
    }
    cells = [(n, seed, start) for n in label_counts for seed in range(n_seeds) for start in STARTS]
    records = {}
    with progress_bar(len(cells), label="transfer", show=progress) as bar:
        for n_labels, seed, start in cells:
            key = f"{data.name}/{asked}/labels {n_labels}/seed {seed}/{start}"
            measure = partial(_measure, checkpoint, data, asked, n_labels, seed, start, device, n_scored)
            records[n_labels, seed, start] = kept_or_measured(store, key, origin, measure)
            bar.update()
    return list(_rows(records, label_counts, n_seeds))


def _measure(
    checkpoint: str | os.PathLike[str],
    corpus: Corpus,
    budget: str | float,
    n_labels: int,
    seed: int,
    start: str,
    device: str,
    n_scored: int | None,
) -> dict[str, Any]:
    result = fit(
        corpus,
        objective="classification",
        start=checkpoint,
        fresh=start == "scratch",
        frozen=start == "frozen",
        budget=budget,
        seed=seed,
        n_labels=n_labels,
        device=device,
        n_scored=n_scored,
        progress=False,
        report=lambda line: None,
    )
    return {
        "corpus": corpus.name,
        "n_labels": n_labels,
        "seed": seed,
        "start": start,
        "split": result.evaluation.split,
        "correct": result.evaluation.score.correct,
        "n": result.evaluation.score.n,
        "accuracy": result.evaluation.score.accuracy,
        "accuracy_by_epoch": result.accuracy_by_epoch,
    }


def _rows(
    records: Mapping[tuple[int, int, str], Mapping[str, Any]], label_counts: Sequence[int], n_seeds: int
) -> Iterator[TransferRow]:
    seeds = range(n_seeds)
    for n_labels in label_counts:
        pretrained, scratch, frozen = (
            tuple(records[n_labels, seed, start]["accuracy"] for seed in seeds) for start in STARTS
        )
        differences = [a - b for a, b in zip(pretrained, scratch, strict=True)]
        gain = paired_interval(differences) if n_seeds > 1 else None
        yield TransferRow(n_labels, tuple(seeds), pretrained, scratch, frozen, gain)
