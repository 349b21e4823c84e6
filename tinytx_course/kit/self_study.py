"""The syllabus for self-study: weeks, what to skip with which background, and when to go on."""

from __future__ import annotations

import html
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from tinytx_course.kit.outline import EXERCISE, Outline, Part, parts_named
from tinytx_course.kit.pages import line_to_html, link, linked, write_page
from tinytx_course.quizzes.quiz import quiz
from tinytx_course.site.pages import table

_SITE = "site/"


@cache
def syllabus() -> dict[str, Any]:
    """Return the data of the page."""
    return tomllib.loads(files(__package__).joinpath("self_study.toml").read_text(encoding="utf-8"))


def write_self_study(folder: Path, outlines: Mapping[int, Outline]) -> None:
    """Write ``self-study.html``.

    Raises
    ------
    ValueError
        If a section to skip is none.
    """
    weeks = [
        [str(number), *_week([outlines[one] for one in week["lessons"]]), html.escape(week["ready"])]
        for number, week in enumerate(syllabus()["weeks"], 1)
    ]
    head = ["week", "lessons", "to do", "you can go on when"]
    body = [
        "<h1>Learning alone</h1>",
        f"<p>{line_to_html(syllabus()['ready'])}</p>",
        f'<h2>Weeks</h2><div class="wide weeks" tabindex="0">{table(head, weeks)}</div>',
        '<p class="soft">Minutes are estimated from words, code and exercises.</p>',
        "<h2>What you may skip</h2>",
        *(_background(one, outlines) for one in syllabus()["backgrounds"]),
    ]
    write_page(folder / "self-study.html", "Learning alone", "".join(body), up="index.html")


def _week(week: list[Outline]) -> list[str]:
    parts = [part for outline in week for part in outline.parts]
    lessons = [
        link(f"{_SITE}{one.lesson.name}.html", f"{one.lesson.number:02d} {one.lesson.title}") for one in week
    ]
    exercises = [part.title.removeprefix(EXERCISE) for part in parts if part.is_exercise]
    n_questions = sum(len(quiz(outline.lesson.slug).questions) for outline in week)
    to_do = [
        f"{sum(part.minutes for part in parts)} minutes; {sum(len(part.predictions) for part in parts)} "
        f"predictions, {n_questions} questions, {len(exercises)} exercises",
        "; ".join(map(html.escape, exercises)),
    ]
    return ["<br>".join(lessons), ": ".join(to_do)]


def _background(one: Mapping[str, Any], outlines: Mapping[int, Outline]) -> str:
    named = [parts_named(line, outlines) for line in one["skip"]]
    saved = sum(part.minutes for parts in named for part in parts)
    skip = "; ".join(map(_skipped, named))
    return (
        f"<h3>{html.escape(one['who'])}</h3><p>{html.escape(one['words'])}</p>"
        f"<p>Skip, which saves {saved} minutes: {skip}.</p>"
    )


def _skipped(parts: list[Part]) -> str:
    lesson = parts[0].lesson
    if len(parts) > 1:
        return link(f"{_SITE}{lesson.name}.html", f"{lesson.number:02d} {lesson.title}")
    return f"{lesson.number:02d} {linked(parts[0], _SITE)}"
