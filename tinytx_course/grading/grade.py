"""Grade filled-in notebooks: learners' code runs in processes of its own, with limits and without a network.

Only what an exercise needs is run: the learner's function, and the imports, definitions and values that
it reads. Training cells stay where they are. Each exercise is tried by itself, with limits on time,
processor, memory, files and threads, in an empty folder; what it writes elsewhere, the network and other
programs are refused. On Linux with unprivileged namespaces (``unshare``) the kernel refuses as well: no
network device, every other file read-only. Elsewhere a guard in the interpreter stands alone. All this
is made for honest learners and their accidents: verdicts are ours, made on the function itself, so that
redefining ``course.check`` gains nothing, but somebody set on cheating a checker that runs in the same
interpreter will find a way.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from tinytx_course.grading.grades import (
    CopyGrades,
    Grade,
    as_csv,
    commonest_mistakes,
    mistakes_table,
    printable,
)
from tinytx_course.grading.running import Limits, grade_submission
from tinytx_course.grading.submission import read_submission

__all__ = ["CopyGrades", "Grade", "Limits", "Report", "grade_folder", "grade_notebook"]


@dataclass(frozen=True, kw_only=True)
class Report:
    """A class: all copies of a folder, and the file with a row each."""

    copies: tuple[CopyGrades, ...]
    csv: Path

    def to_dict(self) -> dict:
        """Return plain values for ``--json``."""
        return {
            "copies": [copy.to_dict() for copy in self.copies],
            "csv": str(self.csv),
            "commonest_mistakes": commonest_mistakes(self.copies),
        }

    def __str__(self) -> str:
        lines = []
        for copy in self.copies:
            score = f"{copy.n_passed} of {len(copy.grades)}" if copy.grades else "not graded"
            told = [f"{grade.exercise}: {grade.in_a_word}" for grade in copy.grades if not grade.passed]
            line = f"{printable(copy.name):<32}{score:<12}{printable(copy.problem or ', '.join(told))}"
            lines.append(line.rstrip())
        return "\n".join([*lines, "", mistakes_table(self.copies), "", f"a row a copy: {self.csv}"])


def grade_notebook(path: Path, *, limits: Limits | None = None) -> CopyGrades:
    """Grade one filled-in notebook.

    Raises
    ------
    ValueError
        If it is no notebook, or has no exercises.
    FileNotFoundError
        If there is no such file.
    """
    copy = grade_submission(read_submission(path), path.name, limits=limits)
    if not copy.grades:
        raise ValueError(f"{path.name}: {copy.problem}")
    return copy


def grade_folder(folder: Path, *, csv: Path | None = None, limits: Limits | None = None) -> Report:
    """Grade all notebooks below a folder, and write a file with a row each.

    Parameters
    ----------
    folder : Path
        Copies, also in folders of their own.
    csv : Path, optional
        Where to write; ``FOLDER-grades.csv`` in the current folder when left out. An older one is replaced.
    limits : Limits, optional
        For each exercise.

    Raises
    ------
    ValueError
        If there is no notebook in it. A file that cannot be graded is a row that says why.
    """
    paths = sorted(path for path in folder.rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts)
    if not paths:
        raise ValueError(f"a folder to check must hold notebooks (.ipynb), got none in {folder}")
    csv = Path(f"{folder.resolve().name or 'copies'}-grades.csv") if csv is None else csv
    if csv.is_dir() or not csv.absolute().parent.is_dir():
        raise ValueError(f"the file of grades must lie in a folder that exists, got {csv}")
    copies = []
    for path in tqdm(paths, unit="copy", disable=None, leave=False):
        name = path.relative_to(folder).as_posix()
        try:
            copies.append(grade_submission(read_submission(path), name, limits=limits))
        except Exception as problem:  # whatever is in one copy, the others are graded
            copies.append(CopyGrades(name=name, problem=str(problem) or type(problem).__name__))
    _write(csv, as_csv(copies))
    return Report(copies=tuple(copies), csv=csv)


def _write(path: Path, text: str) -> None:
    """Write a file aside and put it in its place at the end."""
    handle, aside = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
            stream.write(text)
        os.chmod(aside, 0o644)
        os.replace(aside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(aside)
        raise
