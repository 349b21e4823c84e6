"""The course as a whole: run every lesson and write the site, open a personal copy, publish."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

import nbformat
import psutil
from nbformat import NotebookNode
from tqdm import tqdm

from tinytx_course.building.minutes import times_of, write_times
from tinytx_course.building.notebooks import Run, build_notebook, execute, kernel_environment, normalise
from tinytx_course.building.stale import other_cells, versions
from tinytx_course.building.stills import with_stills
from tinytx_course.lessons import (
    Lesson,
    format_duration,
    lesson_table,
    pick_lessons,
    project_root,
    stored_times,
    written_lessons,
)
from tinytx_course.machine import usable_cores
from tinytx_course.progress.record import VARIABLE as PROGRESS
from tinytx_course.results import Results
from tinytx_course.site.pages import write_index, write_page

#: A committed notebook stays below this, so that it opens on a phone and in a browser.
LARGEST_NOTEBOOK = 1_000_000
#: Written into the metadata of learners' copies. Raise it when copies of the edition before no longer run.
EDITION = 3
_OF_THIS_EDITION = re.compile(rf'"tinytx_edition": *{EDITION}\b')


@dataclass(frozen=True, kw_only=True)
class CourseReport:
    """The executed notebooks in the order of the lessons, and the first page of the site, if written."""

    runs: tuple[Run, ...]
    index: Path | None

    @property
    def ok(self) -> bool:
        """True when every notebook ran to its end."""
        return all(run.failure is None for run in self.runs)

    def to_dict(self) -> dict:
        """Return the report as plain values for ``--json``."""
        return {
            "ok": self.ok,
            "seconds": round(sum(run.seconds or 0 for run in self.runs), 1),
            "peak_memory_mib": round(max((run.peak_bytes for run in self.runs), default=0) / 2**20),
            "index": None if self.index is None else str(self.index),
            "notebooks": [
                {
                    "name": run.lesson.name,
                    "ok": run.failure is None,
                    "seconds": round(run.seconds or 0, 1),
                    "peak_memory_mib": round(run.peak_bytes / 2**20),
                    "failure": run.failure,
                }
                for run in self.runs
            ],
        }


def _print(line: str) -> None:
    tqdm.write(line, file=sys.stderr)


def _run_all(
    lessons: Sequence[Lesson],
    root: Path,
    *,
    figures: Path | None = None,
    budget: str | None = None,
    at_once: int = 1,
    on_run: Callable[[Run], None] = lambda run: None,
) -> list[Run]:
    """Build and execute the lessons in ``build/``, `at_once` side by side; a failure is only printed."""
    folder = root / "build" / "notebooks"
    folder.mkdir(parents=True, exist_ok=True)
    environment = kernel_environment(root, figures=figures, budget=budget, at_once=at_once)
    built = [(lesson, build_notebook(lesson, root)) for lesson in lessons]
    n_cells = sum(cell.cell_type == "code" for _, notebook in built for cell in notebook.cells)
    running: list[str] = []
    with tqdm(total=n_cells, unit="cell", disable=None, leave=False) as bar:

        def run_one(lesson: Lesson, notebook: NotebookNode) -> Run:
            running.append(lesson.name)
            bar.set_description(" and ".join(running))
            try:
                return execute(lesson, notebook, folder, environment, on_cell=bar.update)
            finally:
                running.remove(lesson.name)

        pool = ThreadPoolExecutor(max_workers=at_once)
        futures = [pool.submit(run_one, lesson, notebook) for lesson, notebook in built]
        try:
            for future in as_completed(futures):
                run = future.result()
                nbformat.write(run.notebook, folder / f"{run.lesson.name}.ipynb")
                verdict = "ok" if run.failure is None else f"FAILED\n{run.failure}"
                memory = f"{run.peak_bytes / 2**20:8.0f} MiB"
                _print(f"{run.lesson.name:<30}{run.seconds:7.1f} s {memory}   {verdict}")
                on_run(run)
        except BaseException:  # Ctrl-C above all: no kernel goes on, no lesson begins
            pool.shutdown(wait=False, cancel_futures=True)
            for kernel in psutil.Process().children():
                kernel.kill()
            raise
        pool.shutdown()
    return [future.result() for future in futures]


def run_course(
    wanted: Iterable[str] = (), *, budget: str | None = None, root: Path | None = None
) -> CourseReport:
    """Execute the lessons, two side by side, and write ``site/``; nothing that git tracks is changed.

    Lessons are named by number or slug; all run where none is. The budget is their TINYTX_BUDGET. The page of
    a lesson is written, and the first one named, as soon as the lesson has run.
    """
    root = root or project_root()
    lessons, site, drawings = pick_lessons(wanted, root), root / "site", root / "build" / "figures"
    began = time.perf_counter()

    def show(run: Run) -> None:
        path = write_page(run, site, lessons, drawings)
        if run.lesson == lessons[0] and len(lessons) > 1:
            _print(f"open {path} while the others run")

    runs = _run_all(
        lessons, root, figures=drawings, budget=budget, at_once=min(2, usable_cores()), on_run=show
    )
    index = write_index(runs, site, drawings)
    n_ok = sum(run.failure is None for run in runs)
    total = format_duration(time.perf_counter() - began)
    _print(f"{n_ok} of {len(runs)} notebooks ran to their end in {total}; open {index}")
    return CourseReport(runs=tuple(runs), index=index)


def set_earlier_aside(root: Path) -> list[Path]:
    """Move learners' copies of an earlier edition to ``work/earlier/``; return where they are now.

    Nothing is overwritten: where the new place is taken, a number is added to the name.
    """
    moved = []
    for lesson in written_lessons(root):
        path = root / "work" / f"{lesson.name}.ipynb"
        if path.exists() and not _OF_THIS_EDITION.search(path.read_text(encoding="utf-8", errors="replace")):
            place, number = path.parent / "earlier" / path.name, 1
            while place.exists():
                number += 1
                place = place.with_name(f"{path.stem}-{number}.ipynb")
            place.parent.mkdir(exist_ok=True)
            moved.append(path.rename(place))
    return moved


def copy_for_learner(root: Path) -> list[Path]:
    """Put into ``work/`` each notebook that is not there yet, without outputs; return the new ones."""
    folder = root / "work"
    folder.mkdir(exist_ok=True)
    new = []
    for lesson in written_lessons(root):
        target = folder / f"{lesson.name}.ipynb"
        if not target.exists():
            notebook = build_notebook(lesson, root)
            notebook.metadata |= {
                **_kernel_here(notebook.metadata.kernelspec.name),
                "tinytx_edition": EDITION,
            }
            nbformat.write(notebook, target)
            new.append(target)
    return new


def _kernel_here(name: str) -> dict:
    """Return what JupyterLab writes into a notebook once its kernel is up: opening then changes nothing."""
    from ipykernel.ipkernel import IPythonKernel
    from jupyter_client.kernelspec import KernelSpecManager

    spec = KernelSpecManager().get_kernel_spec(name)
    kernel = {"name": name, "display_name": spec.display_name, "language": spec.language}
    return {"kernelspec": kernel, "language_info": IPythonKernel.language_info}


def open_lab(root: Path | None = None, options: Sequence[str] = ()) -> int:
    """Open the learner's copy of the course in JupyterLab, with more options, and wait until it is closed."""
    from tinytx_course.building.lab import lab_arguments  # without Jupyter, before anything is written

    root = root or project_root()
    work = root / "work"
    if moved := set_earlier_aside(root):
        _print(f"{len(moved)} notebooks of an earlier edition, with your answers: now in {moved[0].parent}")
    new = copy_for_learner(root)
    _print(f"your notebooks are in {work}: {len(new)} new, {len(written_lessons(root)) - len(new)} unchanged")
    command = [sys.executable, "-m", "jupyterlab", *lab_arguments(work), *options]
    if (work / "00_start_here.ipynb").exists():
        command.append("--LabApp.default_url=/lab/tree/00_start_here.ipynb")
    if getattr(os, "geteuid", lambda: 1)() == 0:
        _print("you are root, as in many containers: JupyterLab is started with --allow-root")
        command.append("--allow-root")
    environment = kernel_environment(root)
    Path(environment["IPYTHONDIR"]).mkdir(parents=True, exist_ok=True)  # IPython warns of a missing one
    del environment["TQDM_DISABLE"]  # a person is watching
    environment[PROGRESS] = os.environ.get(PROGRESS) or str(work / "progress.json")
    return subprocess.run(command, cwd=work, env=environment, check=False).returncode


def publish(wanted: Iterable[str] = (), root: Path | None = None) -> CourseReport:
    """Write ``notebooks/NN_slug.ipynb`` with fresh outputs, the course's figures, and how long each takes.

    A second run at the smallest budget finds which outputs depend on it.

    Raises
    ------
    ValueError
        If there are no sources, or an executed notebook is larger than ``LARGEST_NOTEBOOK`` bytes.
    """
    root = root or project_root()
    if not (root / "notebooks" / "src").is_dir():
        raise ValueError("publishing needs the sources in notebooks/src, got a release of the course without")
    lessons = pick_lessons(wanted, root)
    fresh = root / "build" / "figures"
    for lesson in lessons:
        for old in fresh.glob(f"{lesson.number:02d}_*"):  # another process may be drawing the others
            old.unlink()
    runs = _run_all(lessons, root, figures=fresh)
    done = [run for run in runs if run.failure is None and run.seconds is not None]
    for run in done:  # all of them before any table of times is written
        normalise(run.notebook, root)
        times = times_of(run.lesson, run.notebook.cells, run.seconds or 0)
        Results("lessons", root / "results").put(run.lesson.name, asdict(times))
    table = lesson_table(root=root)
    for run in done:
        write_times(run.notebook.cells, stored_times(root)[run.lesson.name])
        _renew_table(run.notebook, table)
        write_published(run, root)
        _replace_figures(run.lesson, fresh, root / "figures")
    _store_varying(done, root)
    names = {f"{lesson.name}.ipynb" for lesson in written_lessons(root)}
    for path in (root / "notebooks").glob("*.ipynb"):
        if path.name not in names:
            path.unlink()
    return CourseReport(runs=tuple(runs), index=None)


def _store_varying(published: Sequence[Run], root: Path) -> None:
    """Run the lessons again at the smallest budget; store which cells say something else, and may."""
    again = _run_all([run.lesson for run in published], root, budget="smoke")
    for run, small in zip(published, again, strict=True):
        if small.failure is None:
            cells = other_cells(run.notebook, small.notebook, root)
            Results("varying", root / "results").put(
                run.lesson.name, {"cells": cells, "versions": versions()}
            )


def _renew_table(notebook: NotebookNode, table: str) -> None:
    """Print the table of all lessons again: it was printed before the other lessons had run."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    for output in outputs:
        if output.get("data", {}).get("text/markdown", "").startswith(table.partition("\n")[0]):
            output.data["text/markdown"] = table


def write_published(run: Run, root: Path) -> None:
    """Write an executed notebook to ``notebooks/``, normalised and with stills, if no larger than allowed."""
    text = nbformat.writes(with_stills(normalise(run.notebook, root), run.lesson.name)) + "\n"
    if len(text.encode()) > LARGEST_NOTEBOOK:
        raise ValueError(
            f"a published notebook must stay below {LARGEST_NOTEBOOK:,} bytes, "
            f"got {len(text.encode()):,} for {run.lesson.name}: draw fewer or smaller figures"
        )
    (root / "notebooks" / f"{run.lesson.name}.ipynb").write_text(text, encoding="utf-8")


def _replace_figures(lesson: Lesson, fresh: Path, figures: Path) -> None:
    """Replace the figures of one lesson, whose names begin with its number, by those just drawn."""
    prefix = f"{lesson.number:02d}_*"
    for old in figures.glob(prefix):
        old.unlink()
    for new in fresh.glob(prefix):
        figures.mkdir(exist_ok=True)
        shutil.copyfile(new, figures / new.name)
