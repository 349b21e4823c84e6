"""What came of checking copies: grades, the line and the row they make, and the mistakes of a whole class."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from textwrap import shorten

from tinytx_course.exercises.checking import EXERCISES
from tinytx_course.exercises.verdict import Verdict
from tinytx_course.grading.submission import in_utf8, printable

STATUSES = ("passed", "failed", "not attempted", "missing")
_LONGEST = 200  # letters of what is said about an exercise on its line


@dataclass(frozen=True, kw_only=True)
class Grade:
    """One exercise of one copy."""

    exercise: str
    #: ``passed``, ``failed``, ``not attempted`` (dots are still there) or ``missing`` (no such function).
    status: str
    #: The slug of the checker, or one of ours: ``cell-error`` (what the function needs does not run),
    #: ``time-limit``, ``crash``.
    mistake: str | None = None
    message: str = ""  # what to tell the learner
    finding: str = ""  # of this, the words that name the mistake, if there are any
    #: Of the checker, where the function could be called.
    verdict: Verdict | None = field(default=None, repr=False, compare=False)

    @property
    def passed(self) -> bool:
        """True when the check passed."""
        return self.status == "passed"

    @property
    def in_a_word(self) -> str:
        """The mistake, or else the status."""
        return self.mistake or self.status

    @property
    def said(self) -> str:
        """What names the mistake, or else what was said first, on one line."""
        first, *_ = (self.finding or self.message).strip().splitlines() or [""]
        return shorten(printable(first), _LONGEST, placeholder=" …")

    def __str__(self) -> str:
        what = f": {self.said}" if self.said and not self.passed else ""
        slug = f" ({self.mistake})" if self.mistake else ""
        return f"{self.exercise:<24}{self.status}{slug}{what}"

    def to_dict(self) -> dict:
        """Return plain values for ``--json``."""
        names = ("exercise", "passed", "status", "mistake", "message")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, kw_only=True)
class CopyGrades:
    """All exercises of one copy."""

    name: str  # the file, below the folder that was given
    grades: tuple[Grade, ...] = ()
    problem: str | None = None  # why there are no grades, or not all

    @property
    def n_passed(self) -> int:
        """How many exercises passed."""
        return sum(grade.passed for grade in self.grades)

    def __str__(self) -> str:
        lines = [str(grade) for grade in self.grades]
        lines.append(f"{self.n_passed} of {len(self.grades)} passed")
        if self.problem:
            lines.append(printable(self.problem))
        return "\n".join(lines)

    def to_dict(self) -> dict:
        """Return plain values for ``--json``."""
        return {
            "copy": in_utf8(self.name),
            "passed": self.n_passed,
            "of": len(self.grades),
            "problem": None if self.problem is None else in_utf8(self.problem),
            "exercises": [grade.to_dict() for grade in self.grades],
        }


def commonest_mistakes(copies: Sequence[CopyGrades]) -> list[dict]:
    """Return exercise, mistake, number of copies and explanation, the commonest first.

    Where the checker has no general words for a mistake, the explanation is what it said of the first copy.
    """
    counted: Counter[tuple[str, str]] = Counter()
    words = {
        (name, mistake.slug): mistake.words
        for name, exercise in EXERCISES.items()
        for mistake in exercise.mistakes
    }
    for grade in (grade for copy in copies for grade in copy.grades if grade.status == "failed"):
        key = grade.exercise, grade.mistake or "not recognised"
        counted[key] += 1
        words.setdefault(key, grade.said if grade.mistake else "")
    return [
        {"exercise": name, "mistake": slug, "copies": count, "explanation": words[name, slug]}
        for (name, slug), count in sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    ]


def mistakes_table(copies: Sequence[CopyGrades]) -> str:
    """Return the commonest mistakes as text."""
    rows = commonest_mistakes(copies)
    if not any(copy.grades for copy in copies):
        return "no copy could be graded"
    if not rows:
        return "no wrong answers"
    head = f"{'copies':>6}  {'exercise':<24}{'mistake':<28}what it is"
    lines = [
        f"{row['copies']:>6}  {row['exercise']:<24}{row['mistake']:<28}{row['explanation']}".rstrip()
        for row in rows
    ]
    return "\n".join([head, *lines])


def as_csv(copies: Sequence[CopyGrades]) -> str:
    """Return a row a copy: file, passed, of, problem, and a column an exercise with a word each."""
    names = list(dict.fromkeys(grade.exercise for copy in copies for grade in copy.grades))
    names.sort(key=list(EXERCISES).index)
    stream = io.StringIO()
    table = csv.writer(stream, lineterminator="\n")
    table.writerow(["copy", "passed", "of", "problem", *names])
    for copy in copies:
        words = {grade.exercise: grade.in_a_word for grade in copy.grades}
        cells = [copy.name, copy.n_passed, len(copy.grades), copy.problem or ""]
        table.writerow([_safe(cell) for cell in [*cells, *(words.get(name, "") for name in names)]])
    return stream.getvalue()


def _safe(cell: object) -> object:
    """Keep a spreadsheet from taking a text, such as a file name, for a formula."""
    if not isinstance(cell, str):
        return cell
    text = printable(cell)
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text
