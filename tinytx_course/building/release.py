"""What is handed out: an edition of the course in a folder of its own, and its pages."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from string import Template

import nbformat
from nbformat import NotebookNode

from tinytx_course import PACKAGES
from tinytx_course.building.notebooks import Run, build_notebook
from tinytx_course.lessons import Lesson, lesson_table, project_root, written_lessons
from tinytx_course.results import text_of
from tinytx_course.site.booklet import write_booklet
from tinytx_course.site.pages import write_site

_FILES = [
    "LICENSE",
    "LICENSE-TEXT",
    "pyproject.toml",
    "setup.py",
    "constraints.txt",
    "environment.yml",
    ".gitignore",
]
# The last is what a kit is made of.
_FOLDERS = (*PACKAGES, "experiments", "benchmarks", "figures", "results", "notebooks/teaching")
# The line of the Makefile below which the targets are that need the sources or the tests.
_AUTHORS_LINE = "# For authors\n"


@dataclass(frozen=True, kw_only=True)
class Release:
    """What was written into which folder."""

    folder: Path
    solved: bool
    notebooks: tuple[str, ...]
    n_files: int

    def to_dict(self) -> dict:
        """Return plain values for ``--json``."""
        return {
            "folder": str(self.folder),
            "edition": "solved" if self.solved else "learner",
            "notebooks": list(self.notebooks),
            "files": self.n_files,
        }

    def __str__(self) -> str:
        edition = "solved" if self.solved else "learner's"
        return (
            f"the {edition} edition is in {self.folder}: "
            f"{len(self.notebooks)} notebooks, {self.n_files} files\n"
            "begin with `make lab` there, or read README.md"
        )


@contextlib.contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Give a temporary folder that becomes ``folder`` at the end, or vanishes when something fails.

    An empty folder that is there already is filled, not replaced: it may be a mount point, a link to another
    place, or where the command was called.

    Raises
    ------
    ValueError
        If the folder is neither new nor empty.
    """
    folder = Path(os.path.abspath(folder))  # with a name, also for `.`
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"the folder to write must be new or empty, got {folder} with something in it")
    there = folder.exists()
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder if there else folder.parent))
    try:
        yield aside
        if there:
            for path in list(aside.iterdir()):
                path.rename(folder / path.name)
            aside.rmdir()
        else:
            aside.chmod(0o755)  # temporary folders are private, this one is to be handed out
            aside.rename(folder)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise


def write_release(folder: Path, *, solved: bool = False, root: Path | None = None) -> Release:
    """Write the learner's edition, or the solved one, with all that is needed to work through it.

    The folder is new, or empty; nothing is left in it when something fails.

    Raises
    ------
    ValueError
        If the folder is not empty, or the checkout has no sources.
    """
    root = root or project_root()
    folder = Path(os.path.abspath(folder))
    if not (root / "notebooks" / "src").is_dir():
        raise ValueError("a release is made from the sources in notebooks/src, got a release without them")
    lessons = written_lessons(root)
    with new_folder(folder) as target:
        for name in _FILES:
            shutil.copyfile(root / name, target / name)
        unwanted = shutil.ignore_patterns("__pycache__", "*.pyc", "*.tmp")
        for name in filter(lambda name: (root / name).is_dir(), _FOLDERS):
            shutil.copytree(root / name, target / name, ignore=unwanted, copy_function=shutil.copyfile)
        (target / "notebooks").mkdir(exist_ok=True)
        notebooks = root / "notebooks"
        for path in (*notebooks.glob("gpt_*.py"), *notebooks.glob("*.html")):  # shown by lessons 07 and 18
            shutil.copyfile(path, target / "notebooks" / path.name)
        for lesson in lessons:
            text = nbformat.writes(_with_outputs(lesson, root, solved)) + "\n"
            (target / "notebooks" / f"{lesson.name}.ipynb").write_text(text, encoding="utf-8")
        makefile = (root / "Makefile").read_text(encoding="utf-8").partition(_AUTHORS_LINE)[0]
        (target / "Makefile").write_text(makefile.rstrip() + "\n", encoding="utf-8")
        readme = Template(text_of("building/release.md"))
        edition = "the solved edition" if solved else "the learner's edition"
        text = readme.substitute(edition=edition, lessons=lesson_table("notebooks/", root))
        (target / "README.md").write_text(text, encoding="utf-8")
        if not solved:
            (target / "AGENTS.md").write_text(text_of("building/agents.md"), encoding="utf-8")
        n_files = sum(path.is_file() for path in target.rglob("*"))
    names = tuple(lesson.name for lesson in lessons)
    return Release(folder=folder, solved=solved, notebooks=names, n_files=n_files)


def _with_outputs(lesson: Lesson, root: Path, solved: bool) -> NotebookNode:
    """Build a notebook with its published outputs, but of checks of solutions: they say "not attempted"."""
    notebook = build_notebook(lesson, root, solved=solved)
    path = root / "notebooks" / f"{lesson.name}.ipynb"
    published = {cell.id: cell for cell in nbformat.read(path, 4).cells} if path.is_file() else {}
    for cell in notebook.cells:
        same = cell.cell_type == "code" and cell.id in published and published[cell.id].source == cell.source
        if same and not (solved and "course.check(" in cell.source):
            cell.outputs = published[cell.id].outputs
            cell.execution_count = published[cell.id].execution_count
    return notebook


def write_pages(
    folder: Path, *, zipped: bool = False, printed: bool = False, root: Path | None = None
) -> Path:
    """Write the published notebooks as pages; return the path of the first page, of the zip file or the PDF.

    The folder is new, or empty; nothing is left in it when something fails. `zipped` writes ``FOLDER.zip`` in
    its place, which holds it; `printed` writes ``FOLDER.pdf``, a booklet of all lessons.

    Raises
    ------
    ValueError
        If the folder is not empty, or there is no published notebook.
    """
    root = root or project_root()
    folder = Path(os.path.abspath(folder))  # named, also for `.`: a nameless one would pack itself
    paths = [(lesson, root / "notebooks" / f"{lesson.name}.ipynb") for lesson in written_lessons(root)]
    runs = [Run(lesson=lesson, notebook=nbformat.read(path, 4)) for lesson, path in paths if path.is_file()]
    if not runs:
        raise ValueError(f"pages are made from executed notebooks, got none in {root / 'notebooks'}")
    drawings = root / "figures"
    if not zipped and not printed:
        with new_folder(folder) as target:
            write_site(runs, target, drawings)
        return folder / "index.html"
    file = folder.with_name(f"{folder.name}.{'pdf' if printed else 'zip'}")
    file.parent.mkdir(parents=True, exist_ok=True)
    if printed:
        return write_booklet(runs, file, drawings)
    with tempfile.TemporaryDirectory(dir=file.parent) as aside:
        write_site(runs, Path(aside) / folder.name, drawings)
        archive = shutil.make_archive(f"{aside}/pages", "zip", aside, folder.name)
        return Path(archive).replace(file)
