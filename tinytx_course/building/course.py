"""The course as a whole: run every lesson and write the site, open a personal copy, publish."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat
from tqdm import tqdm

from tinytx_course.building.notebooks import Run, build_notebook, execute, kernel_environment, normalise
from tinytx_course.lessons import Lesson, pick_lessons, project_root, spoken_time, written_lessons
from tinytx_course.site.pages import write_site

#: A committed notebook stays below this, so that it opens on a phone and in a browser.
LARGEST_NOTEBOOK = 1_000_000


@dataclass(frozen=True, kw_only=True)
class CourseReport:
    """What a run of the course took and where its pages are.

    Parameters
    ----------
    runs : tuple of Run
        In the order of the lessons.
    index : Path or None
        The first page of the site, where one was written.
    """

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
            "seconds": round(sum(run.seconds for run in self.runs), 1),
            "peak_memory_mib": round(max((run.peak_bytes for run in self.runs), default=0) / 2**20),
            "index": None if self.index is None else str(self.index),
            "notebooks": [
                {
                    "name": run.lesson.name,
                    "ok": run.failure is None,
                    "seconds": round(run.seconds, 1),
                    "peak_memory_mib": round(run.peak_bytes / 2**20),
                    "failure": None if run.failure is None else str(run.failure),
                }
                for run in self.runs
            ],
        }


def _say(line: str) -> None:
    tqdm.write(line, file=sys.stderr)


def _run_all(
    lessons: Sequence[Lesson], root: Path, *, figures: Path | None = None, budget: str | None = None
) -> list[Run]:
    """Build and execute the lessons in order below ``build/``; what fails is told, and the next one runs."""
    folder = root / "build" / "notebooks"
    folder.mkdir(parents=True, exist_ok=True)
    environment = kernel_environment(root, figures=figures, budget=budget)
    built = [(lesson, build_notebook(lesson, root)) for lesson in lessons]
    n_cells = sum(cell.cell_type == "code" for _, notebook in built for cell in notebook.cells)
    runs = []
    with tqdm(total=n_cells, unit="cell", disable=None, leave=False) as bar:
        for lesson, notebook in built:
            bar.set_description(lesson.name)
            run = execute(lesson, notebook, folder, environment, on_cell=bar.update)
            nbformat.write(notebook, folder / f"{lesson.name}.ipynb")
            runs.append(run)
            verdict = "ok" if run.failure is None else "FAILED"
            _say(f"{lesson.name:<30}{run.seconds:7.1f} s {run.peak_bytes / 2**20:8.0f} MiB   {verdict}")
            if run.failure is not None:
                _say(str(run.failure))
    return runs


def run_course(
    wanted: Iterable[str] = (), *, budget: str | None = None, root: Path | None = None
) -> CourseReport:
    """Execute the lessons in order and write ``site/``; nothing that git tracks is changed.

    Parameters
    ----------
    wanted : iterable of str
        Numbers or slugs of some lessons; all of them when empty.
    budget : str, optional
        What TINYTX_BUDGET is to be for the notebooks.
    root : Path, optional
        The checkout; the one this package is imported from unless told otherwise.

    Returns
    -------
    CourseReport
    """
    root = project_root() if root is None else root
    lessons = pick_lessons(wanted, root)
    runs = _run_all(lessons, root, budget=budget)
    index = write_site(runs, root / "site")
    report = CourseReport(runs=tuple(runs), index=index)
    n_failed = sum(run.failure is not None for run in runs)
    total = spoken_time(sum(run.seconds for run in runs))
    _say(f"{len(runs) - n_failed} of {len(runs)} notebooks ran to their end in {total}; open {index}")
    return report


def copy_for_learner(root: Path) -> list[Path]:
    """Put into ``work/`` each notebook that is not there yet, without outputs; return the new ones.

    What is there is never touched, whatever became of it.
    """
    folder = root / "work"
    folder.mkdir(exist_ok=True)
    new = []
    for lesson in written_lessons(root):
        target = folder / f"{lesson.name}.ipynb"
        if not target.exists():
            nbformat.write(build_notebook(lesson, root), target)
            new.append(target)
    return new


def open_lab(root: Path | None = None) -> int:
    """Open the learner's copy of the course in JupyterLab and wait until it is closed.

    Raises
    ------
    ValueError
        If JupyterLab is not installed.
    """
    root = project_root() if root is None else root
    try:
        import jupyterlab  # noqa: F401
    except ImportError:
        raise ValueError("the lab needs JupyterLab: install it with `pip install -e .[lab]`") from None
    new = copy_for_learner(root)
    here = len(written_lessons(root)) - len(new)
    _say(f"your notebooks are in {root / 'work'}: {len(new)} new, {here} of yours left as they are")
    first = root / "work" / "00_start_here.ipynb"
    command = [sys.executable, "-m", "jupyterlab", str(first if first.exists() else root / "work")]
    environment = kernel_environment(root)
    del environment["TQDM_DISABLE"]  # a person is watching
    return subprocess.run(command, cwd=root / "work", env=environment, check=False).returncode


def publish(wanted: Iterable[str] = (), root: Path | None = None) -> CourseReport:
    """Write ``notebooks/NN_slug.ipynb`` with fresh outputs, and the figures of the course.

    Raises
    ------
    ValueError
        If there are no sources, or an executed notebook is larger than ``LARGEST_NOTEBOOK`` bytes.
    """
    root = project_root() if root is None else root
    if not (root / "notebooks" / "src").is_dir():
        raise ValueError("publishing needs the sources in notebooks/src, got a release of the course without")
    lessons = pick_lessons(wanted, root)
    fresh = root / "build" / "figures"
    for lesson in lessons:
        for old in fresh.glob(f"{lesson.number:02d}_*"):  # another publication may be drawing the others
            old.unlink()
    runs = _run_all(lessons, root, figures=fresh)
    for run in runs:
        if run.failure is not None:
            continue
        text = nbformat.writes(normalise(run.notebook, root)) + "\n"
        if len(text.encode()) > LARGEST_NOTEBOOK:
            raise ValueError(
                f"a published notebook must stay below {LARGEST_NOTEBOOK:,} bytes, "
                f"got {len(text.encode()):,} for {run.lesson.name}: draw fewer or smaller figures"
            )
        (root / "notebooks" / f"{run.lesson.name}.ipynb").write_text(text, encoding="utf-8")
        _replace_figures(run.lesson, fresh, root / "figures")
    names = {f"{lesson.name}.ipynb" for lesson in written_lessons(root)}
    for path in (root / "notebooks").glob("*.ipynb"):
        if path.name not in names:
            path.unlink()
    return CourseReport(runs=tuple(runs), index=None)


def _replace_figures(lesson: Lesson, fresh: Path, figures: Path) -> None:
    """Let the figures of one lesson, whose names begin with its number, be those just drawn."""
    prefix = f"{lesson.number:02d}_*"
    for old in figures.glob(prefix):
        old.unlink()
    for new in fresh.glob(prefix):
        figures.mkdir(exist_ok=True)
        shutil.copyfile(new, figures / new.name)
