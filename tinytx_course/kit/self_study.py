"""The syllabus for self-study: the three short courses by weeks, what to skip, and when to go on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tinytx_course.kit.outline import EXERCISE, Outline, parts_named
from tinytx_course.kit.pages import write_page
from tinytx_course.lessons import by_course
from tinytx_course.quizzes.bank import questions
from tinytx_course.results import tables_of
from tinytx_course.site.templates import render

WEEK = 200  # minutes, at most, unless one lesson takes longer


def weeks(outlines: Mapping[int, Outline]) -> Iterator[list[Outline]]:
    """Yield the lessons of each week: as many as it has time for, all of one course."""
    week: list[Outline] = []
    for outline in outlines.values():
        begins = any(outline.lesson == lessons[0] for *_, lessons in by_course())
        if week and (begins or count([*week, outline])["minutes"] > WEEK):
            yield week
            week = []
        week.append(outline)
    yield week


def count(week: Sequence[Outline]) -> dict[str, Any]:
    """Return minutes, predictions and questions of some lessons, and the names of their exercises."""
    parts = [part for outline in week for part in outline.parts]
    return {
        "minutes": sum(part.minutes for part in parts),
        "core": sum(part.minutes for part in parts if not part.is_further),
        "predictions": sum(len(part.predictions) for part in parts),
        "questions": sum(len(questions(outline.lesson)) for outline in week),
        "exercises": [part.title.removeprefix(EXERCISE) for part in parts if part.is_exercise],
    }


def write_self_study(folder: Path, outlines: Mapping[int, Outline]) -> None:
    """Write ``self-study.html``.

    Raises
    ------
    ValueError
        If a section to skip is none.
    """
    in_order = list(enumerate(weeks(outlines), 1))
    courses = [
        (name, has, [(n, week) for n, week in in_order if week[0].lesson in lessons])
        for name, has, lessons in by_course()
    ]
    data = tables_of("kit/self_study.toml")
    backgrounds = [
        (one, [parts_named(line, outlines) for line in one["skip"]]) for one in data["backgrounds"]
    ]
    body = render("kit/self_study.html", courses=courses, backgrounds=backgrounds, count=count)
    write_page(folder / "self-study.html", "Learning alone", body, up="index.html")
