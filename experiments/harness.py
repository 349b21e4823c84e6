"""What all experiments share: settings, records measured once, and tables of means with intervals."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import torch
from tqdm.auto import tqdm

from tinytx_course.results import Results
from tinytx_run.corpora import Corpus
from tinytx_run.evaluate import exact_nats
from tinytx_run.files import json_bytes
from tinytx_run.intervals import paired_interval
from tinytx_run.recipes import Recipe, parse_budget
from tinytx_run.training import RunOptions
from tinyworld.world import World

Record = dict[str, Any]
Records = Mapping[str, Record]  # by key, as `Results.data` has them
Conclusions = dict[str, bool | np.bool]  # whether each sentence holds
FRESH_SEED = 1_000  # beyond every seed that an experiment takes


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How an experiment runs, and where its records are stored."""

    store: Results  # each record is on disk as soon as it is measured
    budget: str | float | None = None  # of each training, see `parse_budget`
    n_seeds: int = 1
    first_seed: int = 0  # what seeds are counted from, where a conclusion is tried with others
    longer: int = 1  # multiplies the number of steps, where a conclusion is tried with more
    data_dir: Path | None = None  # holds one folder a corpus
    work_dir: Path = Path("build")  # folders of training runs; an interrupted run resumes from there
    device: str = "auto"
    report: Callable[[str], None] = print  # takes each line of progress

    def __post_init__(self) -> None:
        if self.n_seeds < 1:
            raise ValueError(f"n_seeds must be at least 1, got {self.n_seeds}")
        object.__setattr__(self, "budget", parse_budget(self.budget))

    @property
    def resumed(self) -> RunOptions:
        """Options of a run that resumes, and reports."""
        return RunOptions(resume=True, device=self.device, report=self.report)

    @property
    def quiet(self) -> RunOptions:
        """Options of one run of many, which says nothing and is scored at its end alone."""
        silent: dict[str, Any] = {"report": lambda line: None, "on_step": lambda step, model: None}
        return RunOptions(device=self.device, progress=False, **silent)

    def seeds(self, start: int = 0) -> range:
        """As many seeds as asked for, from `start` on, or `first_seed` later."""
        return range(self.first_seed + start, self.first_seed + start + self.n_seeds)

    def lengthened(self, recipe: Recipe) -> Recipe:
        """The recipe with `longer` times its steps."""
        n_steps = self.longer * recipe.settings.n_steps
        return replace(recipe, settings=recipe.settings.replace(n_steps=n_steps))

    def check_budget(self, *names: str) -> str:
        """The budget; a ValueError unless it is one of these, where an experiment knows no other."""
        if self.budget not in names:
            raise ValueError(f"budget must be {' or '.join(names)}, got {self.budget}")
        return str(self.budget)

    def cached(self, key: str, origin: Mapping[str, Any], measure: Callable[[], Record]) -> Record:
        """The stored record of a key; it is measured where there is none, or one of another origin.

        The origin should hold all settings and texts that a record follows from, as JSON can hold them; it is
        stored with the record, and does not see changes of the code.
        """
        record, origin = self.store.get(key), json.loads(json.dumps(origin))  # tuples are stored as lists
        if record is None or record.get("origin") != origin:
            record = {**measure(), "origin": origin}
            self.store.put(key, record)
        return record

    def measured(
        self,
        label: str,
        cells: Iterable[tuple[Any, ...]],
        key: Callable[..., str],
        origin: Callable[..., Mapping[str, Any]],
        measure: Callable[..., Record],
        *,
        n_threads: int | None = None,
    ) -> dict[str, Record]:
        """The records of all cells by key, see `cached`; the functions take the parts of a cell.

        With a number of threads they are measured in another process. Where it dies, the cell is
        named and left empty, and the next one gets a new process.
        """
        records, pool, spawn = {}, None, get_context("spawn")
        with ExitStack() as pools:
            for cell in tqdm(list(cells), desc=label, disable=None):
                name, task = key(*cell), partial(measure, *cell)
                if n_threads is not None:
                    if pool is None:
                        new = ProcessPoolExecutor(1, spawn, torch.set_num_threads, (n_threads,))
                        pool = pools.enter_context(new)
                    task = partial(_result, pool, task)
                try:
                    records[name] = self.cached(name, origin(*cell), task)
                except BrokenProcessPool:
                    self.report(f"{name}: its worker died, the cell is left empty")
                    pool = None
        return records


def _result(pool: ProcessPoolExecutor, task: Callable[[], Record]) -> Record:
    return pool.submit(task).result()


def best_rate(tune: Callable[[float], float], learning_rates: Sequence[float], n_beyond: int) -> float:
    """The learning rate with the lowest loss; where that is at an end of those tried, more are tried.

    Examples
    --------
    >>> best_rate(lambda lr: abs(lr - 0.25), (1.0, 2.0, 4.0), n_beyond=5)
    0.25
    """
    tried = {lr: tune(lr) for lr in learning_rates}
    for _ in range(n_beyond):
        best = min(tried, key=lambda lr: tried[lr])
        if min(tried) < best < max(tried):
            break
        beyond = best / 2 if best == min(tried) else best * 2
        tried[beyond] = tune(beyond)
    return min(tried, key=lambda lr: tried[lr])


def best_rates(
    tune: Callable[[Any, float], float],
    names: Iterable[Any],
    learning_rates: Sequence[float],
    n_beyond: int = 0,
) -> dict[Any, float]:
    """The best learning rate for each name, see `best_rate`; the loss is that of a name and a rate."""
    return {
        name: best_rate(partial(tune, name), learning_rates, n_beyond)
        for name in tqdm(names, desc="learning rates", disable=None)
    }


def entropy_bound(corpus: Corpus, texts: Sequence[str]) -> float:
    """Nats of all of some texts together by the exact language, which must be known."""
    exact = exact_nats(corpus, texts)
    assert exact is not None
    return float(exact.sum())


def best_label_accuracy(texts: Sequence[str], labels: Sequence[int]) -> float:
    """How often the most probable label, given the whole review, is right; a tie counts half.

    It is the Bayes optimum on these texts.
    """
    world = World()
    posterior = np.array([world.label_posterior(text.split(" ")) for text in texts])
    right = np.where(abs(posterior - 0.5) < 1e-6, 0.5, (posterior > 0.5) == np.array(labels))
    return float(right.mean())


def digest_of(content: Mapping[str, Any]) -> str:
    """A short name for some settings or texts, which changes whenever any of them does."""
    return hashlib.sha256(json_bytes(content)).hexdigest()[:12]


def frame(records: Records, fields: Sequence[str], budget_at: int) -> pd.DataFrame:
    """Some fields of all records and their budget, which is one part of their keys; one row a record."""
    rows = [{"budget": key.split("/")[budget_at], **one} for key, one in records.items()]
    return pd.DataFrame(rows, columns=["budget", *fields])


def mean_table(
    data: pd.DataFrame,
    value: str,
    *,
    by: Sequence[str],
    variant: str,
    baselines: Sequence[str] = (),
    others: Sequence[str] = (),
    test_share: float = 0.0,
) -> pd.DataFrame:
    """Mean of a value for each variant, and its differences from the baselines, paired by seed.

    Parameters
    ----------
    data : DataFrame
        One row a measurement, with the columns `by`, `variant`, "seed" and `value`.
    by : sequence of str
        What variants have in common when they are compared, such as the number of labels.
    baselines : sequence of str
        Variants that the others are compared with.
    others : sequence of str
        Further columns, whose means follow in the table.
    test_share : float
        For training sets that overlap, see `paired_interval`.

    Returns
    -------
    DataFrame
        Columns `by`, `variant`, ``n``, ``mean``, ``low``, ``high``, and for each baseline ``minus NAME``,
        ``minus NAME low``, ``minus NAME high``, then `others`. Ends are of 95 % t-intervals; they are missing
        where there are fewer than two measurements.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = [("a", 0, 1.0), ("a", 1, 3.0), ("b", 0, 2.0), ("b", 1, 5.0)]
    >>> data = pd.DataFrame(rows, columns=["variant", "seed", "loss"])
    >>> table = mean_table(data, "loss", by=(), variant="variant", baselines=("a",))
    >>> table[["variant", "mean", "minus a"]].values.tolist()[1]
    ['b', 3.5, 1.5]
    """
    names, rows = [*by, variant], []
    by_variant = data.groupby(names, sort=False, dropna=False)
    groups = {key: group.set_index("seed")[value] for key, group in by_variant}
    for key, values in groups.items():
        row = dict(zip(names, key, strict=True)) | {"n": len(values), "mean": values.mean()}
        row |= _ends("", values, test_share)
        for baseline in baselines:
            if (other := groups.get((*key[:-1], baseline))) is not None and key[-1] != baseline:
                differences = (values - other).dropna()
                row |= {f"minus {baseline}": differences.mean()}
                row |= _ends(f"minus {baseline} ", differences, test_share)
        rows.append(row)
    return pd.DataFrame(rows).join(by_variant[list(others)].mean(), on=names)


def _ends(name: str, values: pd.Series, test_share: float) -> dict[str, float]:
    if len(values) < 2:
        return {}
    interval = paired_interval(values, test_share=test_share)
    return {f"{name}low": interval.low, f"{name}high": interval.high}


def doubt(settings: Settings, name: str, module: ModuleType, stored: Records) -> pd.DataFrame:
    """Measure an experiment again, twice as long and with fresh seeds, and try its conclusions on both.

    Its module has a function of this name, and `conclusions`: from records to sentences, each with whether it
    holds of them. New records are put into ``doubt-NAME.json`` next to its own, so one that was stopped
    resumes. Gives the columns `sentence`, ``stored`` and ``doubted``, whether it holds of either, and
    ``stays``, both.
    """
    store = Results(f"doubt-{settings.store.name}", settings.store.path.parent)
    getattr(module, name)(replace(settings, store=store, first_seed=FRESH_SEED, longer=2))
    before, after = (module.conclusions(records) for records in (stored, store.data))
    rows = [(sentence, bool(holds), bool(after[sentence])) for sentence, holds in before.items()]
    found = pd.DataFrame(rows, columns=["sentence", "stored", "doubted"])
    return found.assign(stays=found["stored"] & found["doubted"])
