"""A class on one page: what to repeat, the commonest mistakes by name, and a line a copy."""

from __future__ import annotations

import datetime
import html
from collections import Counter
from collections.abc import Sequence

from tinytx_course.exercises.checking import EXERCISES
from tinytx_course.grading.grades import CopyGrades, commonest_mistakes, printable
from tinytx_course.lessons import LESSONS
from tinytx_course.site.pages import fill_page

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
