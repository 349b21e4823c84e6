"""A class on one page: what to repeat, the commonest mistakes by name, and a line a copy."""

from __future__ import annotations

import datetime
import html
from collections import Counter
from collections.abc import Sequence

from tinytx_course.exercises.checking import EXERCISES
from tinytx_course.grading.grades import CopyGrades, Grade, commonest_mistakes, printable
from tinytx_course.lessons import LESSONS
from tinytx_course.site.pages import fill_page, table

#: An exercise is worth repeating where a smaller share of the copies passed.
ENOUGH = 0.5
_SIGNS = {"passed": "✓", "failed": "✗", "not attempted": "–", "missing": "·"}


def class_page(copies: Sequence[CopyGrades], lesson: int | None) -> str:
    """Return the page, in one file that needs no server.

    Parameters
    ----------
    copies : sequence of CopyGrades
    lesson : int, optional
        Of which they are copies.
    """
    graded = [copy for copy in copies if copy.grades]
    title = "A class" if lesson is None else f"Lesson {lesson:02d} · {LESSONS[lesson].title}"
    names = [
        name for name in EXERCISES if any(one.exercise == name for copy in graded for one in copy.grades)
    ]
    n_passed, n_all = sum(copy.n_passed for copy in graded), sum(len(copy.grades) for copy in graded)
    return fill_page(
        "class.html",
        title=html.escape(title),
        heading=html.escape(title),
        counts=f"{len(copies)} copies, {len(copies) - len(graded)} not graded",
        lead=f"{n_passed} of {n_all} exercises passed in {len(graded)} copies.",
        repeat=_to_repeat(names, graded),
        exercises=_exercises(names, graded),
        mistakes=_mistakes(copies),
        copies=_copies(names, copies),
        made=f"Made on {datetime.date.today().strftime('%d %B %Y')} by tinytx-course check.",
    )


def _grades_of(name: str, copies: Sequence[CopyGrades]) -> list[Grade]:
    return [grade for copy in copies for grade in copy.grades if grade.exercise == name]


def _where(lesson: int, section: str) -> str:
    return html.escape(f"lesson {lesson:02d}, section “{section}”" if section else f"lesson {lesson:02d}")


def _to_repeat(names: Sequence[str], graded: Sequence[CopyGrades]) -> str:
    """The sections of exercises that too few passed, the hardest first."""
    if not graded:
        return "<p>No copy could be graded.</p>"
    shares = {name: _share(_grades_of(name, graded)) for name in names}
    hard = sorted((share, name) for name, share in shares.items() if share < ENOUGH)
    if not hard:
        return (
            f"<p>At least {ENOUGH:.0%} of the copies passed each exercise: nothing for the whole class.</p>"
        )
    rows = [
        f"<li><code>{name}</code>, passed by {share:.0%}: "
        f"{_where(EXERCISES[name].lesson, EXERCISES[name].section)}</li>"
        for share, name in hard
    ]
    return f"<ol>{''.join(rows)}</ol>"


def _share(grades: Sequence[Grade]) -> float:
    return sum(grade.passed for grade in grades) / max(1, len(grades))


def _exercises(names: Sequence[str], graded: Sequence[CopyGrades]) -> str:
    rows = []
    for name in names:
        counts = Counter(grade.status for grade in _grades_of(name, graded))
        share = f'<meter min="0" max="1" value="{_share(_grades_of(name, graded)):.3f}"></meter>'
        cells = [f"<code>{name}</code>", share, *(str(counts[status]) for status in _SIGNS)]
        rows.append(cells)
    return table(["exercise", "share passed", *_SIGNS], rows)


def _mistakes(copies: Sequence[CopyGrades]) -> str:
    rows = []
    for row in commonest_mistakes(copies):
        exercise = EXERCISES[row["exercise"]]
        known = next((one for one in exercise.mistakes if one.slug == row["mistake"]), None)
        lesson = known.lesson if known is not None and known.lesson is not None else exercise.lesson
        section = known.section if known is not None and known.section else exercise.section
        words = html.escape(row["explanation"])
        mistake = html.escape(printable(row["mistake"]))
        where = _where(lesson, section)
        rows.append([str(row["copies"]), f"<code>{exercise.name}</code>", mistake, words, where])
    if not rows:
        return "<p>None.</p>"
    return table(["copies", "exercise", "mistake", "what it is", "where to read"], rows)


def _copies(names: Sequence[str], copies: Sequence[CopyGrades]) -> str:
    rows = []
    for copy in copies:
        grades = {grade.exercise: grade for grade in copy.grades}
        score = f"{copy.n_passed} of {len(copy.grades)}" if copy.grades else "not graded"
        cells = [_cell(grades.get(name)) for name in names]
        remark = html.escape(printable(copy.problem or ""))
        rows.append([html.escape(printable(copy.name)), score, *cells, remark])
    return table(["copy", "passed", *(f"<code>{name}</code>" for name in names), "remark"], rows)


def _cell(grade: Grade | None) -> str:
    if grade is None:
        return ""
    said = html.escape(printable(grade.mistake or ""))
    return f'<span aria-label="{grade.status}">{_SIGNS[grade.status]}</span> {said}'.rstrip()
