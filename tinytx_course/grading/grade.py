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

import contextlib
import datetime
import html
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from textwrap import shorten

from tqdm import tqdm

from tinytx.settings import require
from tinytx_course.exercises.checking import EXERCISES
from tinytx_course.grading.grades import CopyGrades, as_csv, commonest_mistakes, mistakes_table
from tinytx_course.grading.running import Limits, grade_submission
from tinytx_course.grading.submission import in_utf8, printable, read_submission, spelled_alike
from tinytx_course.lessons import LESSONS
from tinytx_course.site.pages import fill_page
from tinytx_run.files import is_writable, write_file

#: An exercise is worth repeating where a smaller share of the copies passed.
ENOUGH = 0.5
_COPY = re.compile(r"(?i)\.ipynb(\.\w+)?$")  # browsers and editors add an ending
_OF_SYSTEMS = {"__MACOSX", "@eaDir", "#recycle", "$RECYCLE.BIN", "System Volume Information", "__pycache__"}
_SIGNS = {"passed": "✓", "failed": "✗", "not attempted": "–", "missing": "·"}


@dataclass(frozen=True, kw_only=True)
class Report:
    """A class: all copies of a folder, and the file with a row each."""

    copies: tuple[CopyGrades, ...]
    csv: Path
    lesson: int | None = None
    page: Path | None = None
    others: tuple[str, ...] = ()  # files of the folder that are no notebooks

    def to_dict(self) -> dict:
        """Return plain values for ``--json``."""
        return {
            "copies": [copy.to_dict() for copy in self.copies],
            "lesson": self.lesson,
            "csv": in_utf8(str(self.csv)),
            "page": None if self.page is None else in_utf8(str(self.page)),
            "commonest_mistakes": commonest_mistakes(self.copies),
            "not_read": list(map(in_utf8, self.others)),
        }

    def __str__(self) -> str:
        lines = []
        for copy in self.copies:
            score = f"{copy.n_passed} of {len(copy.grades)}" if copy.grades else "not graded"
            failed = [f"{grade.exercise}: {grade.in_a_word}" for grade in copy.grades if not grade.passed]
            line = f"{printable(copy.name):<32}{score:<12}{printable(copy.problem or ', '.join(failed))}"
            lines.append(line.rstrip())
        files = [f"a row a copy: {self.csv}", *([f"the class on one page: {self.page}"] if self.page else [])]
        if self.others:
            files.append(shorten(f"not read, no notebooks: {printable(', '.join(self.others))}", 200))
        return "\n".join([*lines, "", mistakes_table(self.copies), "", *files])


def grade_notebook(path: Path, *, lesson: int | None = None, limits: Limits | None = None) -> CopyGrades:
    """Grade one filled-in notebook; lesson and limits as in `grade_submission`.

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
    handed_in = sorted(path for path in folder.rglob("*") if _is_handed_in(path.relative_to(folder)))
    paths = [path for path in handed_in if _COPY.search(path.name)]
    require(paths, "a folder to check must hold notebooks (.ipynb)", f"none in {folder}")
    report = Path(f"{folder.resolve().name or 'copies'}-grades.csv") if report is None else report
    require(report.suffix in (".csv", ".html"), "the file of grades must end in .csv or .html", report)
    if report.is_dir() or not is_writable(report.absolute().parent):
        raise ValueError(f"the file of grades must lie in a folder that can be written to, got {report}")
    page = report if report.suffix == ".html" else None
    csv = report if page is None else page.with_suffix(".csv")
    if lesson is None:
        named: Counter[int | None] = Counter()
        for path in paths:
            with contextlib.suppress(ValueError, OSError):
                named[read_submission(path).lesson] += 1
        del named[None]
        lesson = named.most_common(1)[0][0] if named else None
    alike = defaultdict(list)
    for path in paths:
        alike[_name_of_copy(path, folder)].append(path.relative_to(folder).as_posix())
    copies = []
    for path in tqdm(paths, unit="copy", disable=None, leave=False):
        name = path.relative_to(folder).as_posix()
        try:
            copies.append(grade_submission(read_submission(path), name, lesson=lesson, limits=limits))
        except Exception as problem:  # whatever is in one copy, the others are graded
            copies.append(CopyGrades(name=name, problem=str(problem) or type(problem).__name__))
        if twins := ", ".join(ascii(one) for one in alike[_name_of_copy(path, folder)] if one != name):
            remarks = filter(None, (copies[-1].problem, f"perhaps the same learner as {twins}"))
            copies[-1] = replace(copies[-1], problem="; ".join(remarks))
        write_file(csv.absolute(), as_csv(copies).encode())  # what is graded stays, whatever happens next
    if page is not None:
        write_file(page.absolute(), class_page(copies, lesson).encode())
    others = [path for path in handed_in if path not in paths and path.is_file()]
    names = tuple(path.relative_to(folder).as_posix() for path in others)
    return Report(copies=tuple(copies), csv=csv, lesson=lesson, page=page, others=names)


def _is_handed_in(path: PurePath) -> bool:
    """Whether a file is somebody's, and not what Jupyter or a system adds to a folder or an archive."""
    return not any(part.startswith(".") or part in _OF_SYSTEMS for part in path.parts)


def _name_of_copy(path: Path, folder: Path) -> str:
    return _COPY.sub("", spelled_alike(path.relative_to(folder).as_posix()))


def class_page(copies: Sequence[CopyGrades], lesson: int | None) -> str:
    """Return the page of copies of a lesson, in one file that needs no server."""
    graded = [copy for copy in copies if copy.grades]
    title = "A class" if lesson is None else f"Lesson {lesson:02d} · {LESSONS[lesson].title}"
    found = {
        name: [one for copy in graded for one in copy.grades if one.exercise == name] for name in EXERCISES
    }
    exercises = {
        name: (sum(one.passed for one in grades) / len(grades), Counter(one.status for one in grades))
        for name, grades in found.items()
        if grades
    }
    hard = sorted((share, name) for name, (share, _) in exercises.items() if share < ENOUGH)
    return fill_page(
        "class.html",
        policy="default-src 'none'; style-src 'unsafe-inline'; img-src data:",
        title=html.escape(title),
        copies=[(copy, {grade.exercise: grade for grade in copy.grades}) for copy in copies],
        graded=graded,
        n_exercises=sum(len(copy.grades) for copy in graded),
        enough=f"{ENOUGH:.0%}",
        hard=[(share, EXERCISES[name]) for share, name in hard],  # the hardest first
        exercises=exercises,
        mistakes=[(row, *_where(row["exercise"], row["mistake"])) for row in commonest_mistakes(copies)],
        signs=_SIGNS,
        printable=printable,
        day=datetime.date.today().strftime("%d %B %Y"),
    )


def _where(name: str, mistake: str) -> tuple[int, str]:
    """Lesson and section where a mistake is explained, or else its exercise."""
    exercise = EXERCISES[name]
    known = next((one for one in exercise.mistakes if one.slug == mistake), None)
    lesson = known.lesson if known is not None and known.lesson is not None else exercise.lesson
    return lesson, known.section if known is not None and known.section else exercise.section
