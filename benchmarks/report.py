"""Run the parts of a benchmark, store what they measure, and make the table of the README from it."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from benchmarks.ceiling import Ceiling, measure_ceiling
from benchmarks.settings import BenchSettings
from tinytx_course.labs.lesson_13 import speed_line
from tinytx_course.labs.timing import Turns

if TYPE_CHECKING:
    from tinytx_course.results import Results

Record = dict[str, Any]
# A part is a module with this function: yields records as they are measured, with the key of each.
Measure = Callable[[BenchSettings, Ceiling], Iterator[tuple[str, Record]]]
OURS = "tinytx"
PARTS = ("steps", "reviews", "generation")  # what "all" means
LONGER = ("quality", "speedrun")  # only by name


def run_parts(
    parts: Sequence[str], settings: BenchSettings, store_of: Callable[[str], Results]
) -> dict[str, Record]:
    """Measure some parts, one after the other.

    Parameters
    ----------
    parts : sequence of str
        Among ``PARTS`` and ``LONGER``, which are modules of this package.
    settings : BenchSettings
    store_of : callable
        Gives the results called ``bench-PART``. Each record is put as soon as it is measured: what an
        interrupted run has finished stays.

    Returns
    -------
    dict of str to dict
        All records of this run, by ``PART/key``.
    """
    found: dict[str, Record] = {}
    ceiling = measure_ceiling(settings)
    settings.report(str(ceiling))
    for part in parts:
        store = store_of(f"bench-{part}")
        store.put("ceiling", ceiling.to_dict())
        found[f"{part}/ceiling"] = ceiling.to_dict()
        measure: Measure = importlib.import_module(f"benchmarks.{part}").measure
        for key, record in measure(settings, ceiling):
            store.put(key, record)
            found[f"{part}/{key}"] = record
            if any(name in record for name in ("fastest", "worse_by", "nats")):
                settings.report(line_of(key, record))
    return found


def compare(
    turns: Turns, *, ours: str = OURS, details: dict[str, Record], groups: Mapping[str, Sequence[str]]
) -> Record:
    """The record of a comparison: times of all candidates, and how many times as fast ours is.

    Parameters
    ----------
    turns : Turns
    ours : str
        The candidate that the others are compared with.
    details : dict of str to dict
        What else is stored of each candidate (parameters, precision, tokens a second ...).
    groups : dict of str to sequence of str
        Candidates by what they have in common, such as "equal precision": of each group the fastest is
        named, with its ratio.

    Returns
    -------
    dict
        ``contestants``: by name its times and details; ``ratios``: by name ``median``, ``low``, ``high`` of
        their time over ours, and the same of processor time under ``processor``; ``fastest``: by group its
        ``name``, ``median``, ``low``, ``high``.
    """
    others = [name for name in turns.wall if name != ours and name in details]
    ratios = {
        name: {
            **turns.ratio(name, ours).to_dict(),
            "processor": turns.processor_ratio(name, ours).to_dict(),
        }
        for name in others
    }
    fastest = {}
    for group, names in groups.items():
        if names:
            name = turns.fastest(names)
            fastest[group] = {"name": name, **turns.ratio(name, ours).to_dict()}
    return {
        "ours": ours,
        "contestants": {name: {**turns.times_of(name), **details[name]} for name in [ours, *others]},
        "ratios": ratios,
        "fastest": fastest,
    }


def line_of(key: str, record: Record) -> str:
    """One comparison in a line."""
    if record.get("fastest"):
        return speed_line(key, record)
    if "worse_by" in record:
        worse = record["worse_by"]
        ends = f"[{worse['low']:.4f}, {worse['high']:.4f}]"
        return f"{key}: {record['precision']} loses {worse['mean']:.4f} {ends} nats"
    return f"{key}: {_quality(record)}"


def _quality(record: Record) -> str:
    if "nats_by_order" in record:
        each = ", ".join(f"{int(n) - 1}: {nats:.3f}" for n, nats in record["nats_by_order"].items())
        return f"nats a character by characters of context {each}"
    floor = f", {record['above_floor']:.1%} above the floor" if "floor" in record else ""
    when = f"after {record['n_steps']:,} steps, {record['seconds']:.0f} s"
    return f"{record['nats']:.4f} nats a {record['unit']}{floor} {when}"


def bench_table(folder: Path) -> str:
    """The tables of the README, from a folder of results."""
    head = ["| times as fast as | the fastest peer at equal precision | as it comes | ourselves, otherwise |"]
    lines = [*head, "|---|---|---|---|"]
    for part in PARTS:
        for key, record in _records(folder, part).items():
            if record.get("fastest"):
                lines.append(f"| {part}: {key} | {' | '.join(_cells(record))} |")
    runs = [(key, each) for key, each in _records(folder, "speedrun").items() if "nats" in each]
    if len(lines) == 2 and not runs:
        return "Not measured yet: `make bench` does it."
    tables = ["\n".join(lines)] if len(lines) > 2 else []
    if runs:
        quality = ["| how good, how soon (`python -m benchmarks speedrun`) | |", "|---|---|"]
        tables.append("\n".join([*quality, *(f"| {key} | {_quality(each)} |" for key, each in runs)]))
    return "\n\n".join(tables)


def _records(folder: Path, part: str) -> dict[str, Record]:
    path = folder / f"bench-{part}.json"
    found = json.loads(path.read_text(encoding="utf-8"))["records"] if path.is_file() else {}
    return cast(dict[str, Record], found)


def _cells(record: Record) -> list[str]:
    """Ratios of a comparison in the columns of the table: peers, peers as they come, and ourselves."""
    cells: list[list[str]] = [[], [], []]
    for group, each in record["fastest"].items():
        name = each["name"].removesuffix(f", {group}")
        ours = name.startswith(OURS) or "the same model" in name
        column = 2 if ours else int(group == "as it comes")
        times = f"**{each['median']:.1f}** ({each['low']:.1f} to {each['high']:.1f})"
        cells[column].append(f"{times} {name.removeprefix(OURS + ', ')}")
    return ["<br>".join(cell) for cell in cells]
