"""Run every notebook many times at the smallest budget: ``python -m tests.notebooks.flaky``.

A round fails where a cell raises, or shows words that the published notebook does not (`stale_cells`). What
is stored is taken up again while the commit is the same.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import nbformat

from tinytx_course.building.notebooks import build_notebook, execute, kernel_environment
from tinytx_course.building.stale import stale_cells
from tinytx_course.lessons import Lesson, pick_lessons
from tinytx_course.results import Results, provenance

ROOT = Path(__file__).resolve().parents[2]


def first_failure(lesson: Lesson, folder: Path) -> str | None:
    """Run a notebook once; the first cell that raised or is stale, or None."""
    run = execute(lesson, build_notebook(lesson, ROOT), folder, kernel_environment(ROOT, budget="smoke"))
    if run.failure:
        return run.failure
    published = nbformat.read(ROOT / "notebooks" / f"{lesson.name}.ipynb", 4)
    stale = stale_cells(lesson.name, published, run.notebook, ROOT)
    return f"stale: {stale[0]}" if stale else None


def main() -> int:
    """Read the options, run the rounds, print and store a line a lesson."""
    parser = argparse.ArgumentParser(prog="python -m tests.notebooks.flaky", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--notebooks", nargs="*", help="numbers of lessons, such as 02; all by default")
    parser.add_argument("--results", type=Path, required=True, help="folder to store the table in")
    args = parser.parse_args()
    stored, commit, n_failed = Results("flaky", args.results), provenance()["commit"], 0
    for number in range(args.rounds):
        for lesson in pick_lessons(args.notebooks or [], ROOT):
            record = stored.get(lesson.name)
            if record is None or record["commit"] != commit:
                record = {"commit": commit, "rounds": 0, "failed": 0, "first_failure": None}
            if record["rounds"] > number:
                continue
            with tempfile.TemporaryDirectory(prefix="flaky-") as folder:
                failure = first_failure(lesson, Path(folder))
            record["rounds"] += 1
            record["failed"] += failure is not None
            record["first_failure"] = record["first_failure"] or failure
            stored.put(lesson.name, record)
            n_failed += failure is not None
            print(f"round {number + 1}, {lesson.name}: {failure or 'ok'}", flush=True)
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
