"""Run the parts of a benchmark and store their times; ``python -m benchmarks.report`` writes the tables."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.race import race_table
from benchmarks.settings import BenchSettings
from tinytx_course.labs.lesson_13 import speed_line
from tinytx_course.labs.timing import Turns
from tinytx_course.results import ROOTS, Results, with_table

Record = dict[str, Any]
# A part is a module with this function: it yields keys and records as measured.
Measure = Callable[[BenchSettings], Iterator[tuple[str, Record]]]
OURS = "tinytx"
PAGE = ROOTS[0] / "docs" / "speed.md"  # holds the tables
EQUAL, AS_IT_COMES = "equal precision", "as it comes"  # groups of candidates
PARTS = ("steps", "reviews", "generation")  # what "all" means


def run_parts(parts: Sequence[str], settings: BenchSettings, folder: Path) -> dict[str, Record]:
    """Measure some of ``PARTS``, modules of this package, one after the other; gives records by ``PART/key``.

    Each record is put into ``bench-PART.json`` of the folder as soon as it is measured: what an interrupted
    run has finished stays.
    """
    records: dict[str, Record] = {}
    for part in parts:
        store = Results(f"bench-{part}", folder)
        measure: Measure = importlib.import_module(f"benchmarks.{part}").measure
        for key, record in measure(settings):
            store.put(key, record)
            records[f"{part}/{key}"] = record
            settings.report(speed_line(key, record))
    return records


def compare(turns: Turns, details: Mapping[str, Record]) -> Record:
    """The record of a comparison: times of all candidates, and how many times as fast ours is.

    Parameters
    ----------
    details : mapping of str to dict
        What else is stored of each candidate (parameters, precision ...). All but ours have a ``group``,
        such as "equal precision".

    Returns
    -------
    dict
        ``contestants``: by name its times and details; ``fastest``: of each group the ``name`` of the
        fastest, with ``median``, ``low`` and ``high`` of its time over ours, round by round.
    """
    contestants, groups = {}, dict[str, list[str]]()
    for name, about in details.items():
        contestants[name] = {**turns.times_of(name), **about}
        if name != OURS:
            groups.setdefault(about["group"], []).append(name)
    fastest = {group: turns.fastest(names) for group, names in groups.items()}
    wins = {group: {"name": name, **turns.ratio(name, OURS).to_dict()} for group, name in fastest.items()}
    return {"ours": OURS, "contestants": contestants, "fastest": wins}


def bench_table(folder: Path) -> str:
    """The tables of the page, from a folder of results."""
    stores = {part: Results(f"bench-{part}", folder) for part in PARTS}
    speeds = [
        f"| {part}: {key} | {' | '.join(_cells(record))} |"
        for part, store in stores.items()
        for key, record in store.data.items()
        if record.get("fastest")
    ]
    head = "| times as fast as | the fastest peer at equal precision | as it comes | ourselves, otherwise |"
    tables = ["\n".join([head, "|---|---|---|---|", *speeds])] if speeds else []
    tables += [f"{part}: {store.source_line()}." for part, store in stores.items() if store.data]
    if raced := race_table(folder):
        tables.append(raced)
    return "\n\n".join(tables) or "Not measured yet: `make bench` does it."


def _cells(record: Record) -> list[str]:
    """Ratios of a comparison in the columns of the table: peers, peers as they come, and ourselves."""
    cells: list[list[str]] = [[], [], []]
    for group, each in record["fastest"].items():
        name = each["name"].removesuffix(f", {group}")
        ours = name.startswith(OURS) or "the same model" in name
        times = f"**{each['median']:.1f}** ({each['low']:.1f} to {each['high']:.1f})"
        cells[2 if ours else int(group == AS_IT_COMES)].append(f"{times} {name.removeprefix(OURS + ', ')}")
    return ["<br>".join(cell) for cell in cells]


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(with_table(page, "bench", bench_table(ROOTS[0] / "results")), encoding="utf-8")
