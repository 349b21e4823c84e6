"""Grade filled-in notebooks: learners' code runs in processes of its own, with limits and without a network.

Only what an exercise needs is run: the learner's function, and the imports, definitions and values that it
reads. Training cells are not run. Each attempt at an exercise has a process of its own, with limits on time,
processor, memory, files and threads, in an empty folder. It sends back observations as JSON, and the
teacher's process judges them, so a copy cannot write its own verdict. A function of the package
itself, or one that only passes on to a ready-made answer, is refused (``calls-the-answer``); whoever hides
that better, or copies a solution, passes.

On Linux ``bwrap`` (package bubblewrap) leaves learners' code Python, its libraries and that folder: no
network, no other file or socket, no capability, and not the rights of root. **Elsewhere only the limits are
left, which are no protection against hostile code**: there, grade copies of people you do not trust in a
virtual machine.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from tinytx_course.grading.grades import (
    CopyGrades,
    as_csv,
    commonest_mistakes,
    in_utf8,
    mistakes_table,
    printable,
)
from tinytx_course.grading.page import class_page
from tinytx_course.grading.running import Limits, grade_submission
from tinytx_course.grading.submission import Submission, read_submission
from tinytx_run.files import is_writable, write_file


@dataclass(frozen=True, kw_only=True)
class Report:
    """A class: all copies of a folder, and the file with a row each."""

    copies: tuple[CopyGrades, ...]
    csv: Path
    lesson: int | None = None
    page: Path | None = None

    def to_dict(self) -> dict:
        """Return plain values for ``--json``."""
        return {
            "copies": [copy.to_dict() for copy in self.copies],
            "lesson": self.lesson,
            "csv": in_utf8(str(self.csv)),
            "page": None if self.page is None else in_utf8(str(self.page)),
            "commonest_mistakes": commonest_mistakes(self.copies),
        }

    def __str__(self) -> str:
        lines = []
        for copy in self.copies:
            score = f"{copy.n_passed} of {len(copy.grades)}" if copy.grades else "not graded"
            failed = [f"{grade.exercise}: {grade.in_a_word}" for grade in copy.grades if not grade.passed]
            line = f"{printable(copy.name):<32}{score:<12}{printable(copy.problem or ', '.join(failed))}"
            lines.append(line.rstrip())
        files = [f"a row a copy: {self.csv}", *([f"the class on one page: {self.page}"] if self.page else [])]
        return "\n".join([*lines, "", mistakes_table(self.copies), "", *files])


def grade_notebook(path: Path, *, lesson: int | None = None, limits: Limits | None = None) -> CopyGrades:
    """Grade one filled-in notebook.

    Parameters
    ----------
    path : Path
    lesson : int, optional
        Of which it is graded as a copy; by default the one that it names.
    limits : Limits, optional
        For each exercise.

    Raises
    ------
    ValueError
        If it is no notebook, or has no exercises.
    FileNotFoundError
        If there is no such file.
    """
    copy = grade_submission(read_submission(path), path.name, lesson=lesson, limits=limits)
    if not copy.grades:
        raise ValueError(f"{path.name}: {copy.problem}")
    return copy


def grade_folder(
    folder: Path, *, report: Path | None = None, lesson: int | None = None, limits: Limits | None = None
) -> Report:
    """Grade all notebooks below a folder, and write a file with a row each, and a page if it is asked for.

    Parameters
    ----------
    folder : Path
        Copies, also in folders of their own.
    report : Path, optional
        ``NAME.csv``, by default ``FOLDER-grades.csv`` in the current folder, or ``NAME.html``, a page with
        ``NAME.csv`` next to it. Older ones are replaced.
    lesson : int, optional
        Of which all are graded as copies; by default the one that most of them name.
    limits : Limits, optional
        For each exercise.

    Raises
    ------
    ValueError
        If there is no notebook in it, or `report` is no such name. A file that cannot be graded is a row that
        says why.
    """
    paths = sorted(path for path in folder.rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts)
    if not paths:
        raise ValueError(f"a folder to check must hold notebooks (.ipynb), got none in {folder}")
    report = Path(f"{folder.resolve().name or 'copies'}-grades.csv") if report is None else report
    _check_place(report)
    page = report if report.suffix == ".html" else None
    csv = report if page is None else page.with_suffix(".csv")
    submissions = {path: _read(path) for path in paths}
    if lesson is None:
        named = Counter(one.lesson for one in submissions.values() if isinstance(one, Submission))
        del named[None]
        lesson = named.most_common(1)[0][0] if named else None
    copies = []
    for path, submission in tqdm(submissions.items(), unit="copy", disable=None, leave=False):
        name = path.relative_to(folder).as_posix()
        try:
            if isinstance(submission, Exception):
                raise submission
            copies.append(grade_submission(submission, name, lesson=lesson, limits=limits))
        except Exception as problem:  # whatever is in one copy, the others are graded
            copies.append(CopyGrades(name=name, problem=str(problem) or type(problem).__name__))
        write_file(csv.absolute(), as_csv(copies).encode())  # what is graded stays, whatever happens next
    if page is not None:
        write_file(page.absolute(), class_page(copies, lesson).encode())
    return Report(copies=tuple(copies), csv=csv, lesson=lesson, page=page)


def _check_place(report: Path) -> None:
    """Refuse a file that cannot be written, before anything is graded."""
    if report.suffix not in (".csv", ".html"):
        raise ValueError(f"the file of grades must end in .csv or .html, got {report}")
    if report.is_dir() or not is_writable(report.absolute().parent):
        words = "the file of grades must lie in a folder that can be written to"
        raise ValueError(f"{words}, got {report}")


def _read(path: Path) -> Submission | Exception:
    try:
        return read_submission(path)
    except (ValueError, OSError) as problem:
        return problem
