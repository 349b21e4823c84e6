"""The contest of objectives: causal, masked, and masked with next sentences, measured cell by cell."""

from __future__ import annotations

import dataclasses
import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tinytx.text.corpora import Corpus, load_corpus
from tinytx.training.budgets import parse_budget
from tinytx.training.engine.progress import progress_bar
from tinytx.training.experiments.contest import CONTESTANTS, Contest, Contestant
from tinytx.training.experiments.kept import Store, kept_or_measured
from tinytx.training.intervals import PairedInterval, paired_interval
from tinytx.training.pretraining import Report


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
        Such as ``tinytx.teaching.results.Results("objectives")``.
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
