"""Write an edition of the course into a folder of its own, with all that is needed to work through it."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from tinytx_course.building.notebooks import build_notebook
from tinytx_course.lessons import Lesson, project_root, written_lessons

_AS_THEY_ARE = (
    "LICENSE",
    "LICENSE-TEXT",
    "pyproject.toml",
    "constraints.txt",
    "environment.yml",
    ".gitignore",
)
_FOLDERS = ("tinytx", "figures", "results")
# Lines and sections of the README that only make sense beside the sources and the tests.
_README_EDITS = (
    (r"^make test .*$", "make lab        # opens your own copy of the notebooks in JupyterLab"),
    (r"^python -m pytest.*\n", ""),
    (r" +notebooks/src/   what is edited", ""),
    (r"^tests/ .*\n", ""),
    (r" Solutions in\n`notebooks/src` stand between nbgrader's markers\.", ""),
    (r" · \.ci/run · \.github/workflows/", ""),
    (r"^\| \*test:\*.*\n", ""),
    (r"^## For authors\n.*?(?=^## )", ""),
    (r": `make torture` kills[^.]*`results/torture.json`\.", "."),
    (r"`make bench`", "`python -m benchmarks`"),
)
_AUTHORS_TARGETS = ("test", "check", "check-the-checkers", "torture", "bench")


@dataclass(frozen=True, kw_only=True)
class Release:
    """What was written where."""

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


def write_release(folder: Path, *, solved: bool = False, root: Path | None = None) -> Release:
    """Write the learner's edition, or the solved one.

    Everything is built beside the folder and moved there at the end: there is all of it or nothing.

    Parameters
    ----------
    folder : Path
        New, or empty.
    solved : bool
        With solutions in place of the stubs.
    root : Path, optional
        The checkout to take it from.

    Returns
    -------
    Release

    Raises
    ------
    ValueError
        If something stands in the folder, or the checkout has no sources.
    """
    root = project_root() if root is None else root
    if not (root / "notebooks" / "src").is_dir():
        raise ValueError("a release is made from the sources in notebooks/src, got a release without them")
    folder = folder.absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"the folder of a release must be new or empty, got {folder} with something in it")
    lessons = written_lessons(root)
    built = [(lesson, _with_outputs(lesson, root, solved)) for lesson in lessons]
    folder.parent.mkdir(parents=True, exist_ok=True)
    files = _files_to_copy(root)
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        _fill(aside, root, files, built)
        n_files = sum(path.is_file() for path in aside.rglob("*"))
        aside.chmod(0o755)  # temporary folders are private, this one is to be handed out
        if folder.exists():
            folder.rmdir()
        aside.rename(folder)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    names = tuple(lesson.name for lesson in lessons)
    return Release(folder=folder, solved=solved, notebooks=names, n_files=n_files)


def _files_to_copy(root: Path) -> list[Path]:
    """Return the files of the package, figures and results, relative to the checkout."""
    found = [root / name for name in _AS_THEY_ARE]
    for name in _FOLDERS:
        found += sorted((root / name).rglob("*"))
    return [
        path.relative_to(root)
        for path in found
        if path.is_file() and "__pycache__" not in path.parts and not path.name.endswith((".pyc", ".tmp"))
    ]


def _fill(
    target: Path, root: Path, files: Sequence[Path], built: Sequence[tuple[Lesson, NotebookNode]]
) -> None:
    for path in files:
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / path, target / path)
    (target / "notebooks").mkdir()
    for lesson, notebook in built:
        text = nbformat.writes(notebook) + "\n"
        (target / "notebooks" / f"{lesson.name}.ipynb").write_text(text, encoding="utf-8")
    readme = (root / "README.md").read_text(encoding="utf-8")
    (target / "README.md").write_text(learners_readme(readme), encoding="utf-8")
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    (target / "Makefile").write_text(learners_makefile(makefile), encoding="utf-8")


def learners_readme(readme: str) -> str:
    """Return a README without what is said about tests and sources."""
    for pattern, text in _README_EDITS:
        readme = re.sub(pattern, text, readme, flags=re.M | re.S if pattern.startswith("^##") else re.M)
    return readme


def learners_makefile(makefile: str) -> str:
    """Return a Makefile without the targets that need the sources or the tests.

    Those are the ones whose help begins with "for authors", and a few by name.

    Examples
    --------
    >>> learners_makefile("a:  ## run\\n\\tx\\n\\nb:  ## for authors: y\\n\\tz\\n").split()
    ['a:', '##', 'run', 'x']
    """
    paragraphs = makefile.rstrip("\n").split("\n\n")
    heads = [re.match(r"([a-z-]+):.*?(?:## (.*))?$", text, re.M) for text in paragraphs]
    dropped = {
        head[1]
        for head in heads
        if head and (head[1] in _AUTHORS_TARGETS or (head[2] or "").startswith("for authors"))
    }
    kept = [text for text, head in zip(paragraphs, heads, strict=True) if not head or head[1] not in dropped]

    def phony(found: re.Match[str]) -> str:
        return " ".join([".PHONY:", *(name for name in found[1].split() if name not in dropped)])

    return re.sub(r"^\.PHONY:(.*)$", phony, "\n\n".join(kept), flags=re.M) + "\n"


def _with_outputs(lesson: Lesson, root: Path, solved: bool) -> NotebookNode:
    """Build a notebook, with the published outputs of those cells that are as they were published.

    In the solved edition the cells that call a check go without: what was published says "not attempted".
    """
    notebook = build_notebook(lesson, root, solved=solved)
    place = root / "notebooks" / f"{lesson.name}.ipynb"
    if not place.is_file():
        return notebook
    published = {cell.id: cell for cell in nbformat.read(place, 4).cells if cell.cell_type == "code"}
    for cell in notebook.cells:
        kept = published.get(cell.id)
        if cell.cell_type != "code" or kept is None or kept.source != cell.source:
            continue
        if solved and "course.check(" in cell.source:
            continue
        cell.outputs, cell.execution_count = kept.outputs, kept.execution_count
    return notebook
