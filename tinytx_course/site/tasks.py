"""Exercises that need no Python, as masks to fill or lines to order, and a list of those in the lessons."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from tinytx_course.lessons import LESSONS, Lesson
from tinytx_course.widgets.by_hand import by_hand, tasks
from tinytx_course.widgets.parsons import parsons, problem_names, read_problem

_ORDER = "Order the lines"
_IN_PYTHON = re.compile(
    r'<h3 id="([^"]+)">Exercise: ([^<]+)<a.*?</h3>\s*'
    r'<p class="level"><span>(Level \d/5)</span><span>(\d+ minutes)</span>',
    re.S,
)


def _cards() -> Iterator[tuple[str, str, str, str, int]]:
    """Yield part, name, explorer's title, explorer, and the number of its lesson."""
    for part, some in groupby(tasks().items(), key=lambda item: item[1].part):
        for name, task in some:
            yield part, name, task.title, by_hand(name).to_html(), task.exercises[0].lesson
        if part == "Fill a mask":
            for problem in sorted(map(read_problem, problem_names()), key=lambda one: one.lesson):
                explorer = parsons(problem.name)
                yield _ORDER, f"order-{problem.name}", explorer.title, explorer.to_html(), problem.lesson


def tasks_body(shown: Sequence[Lesson]) -> str:
    """Return all of them in parts, each with the lesson behind it; lessons that are `shown` are linked."""
    parts = []
    for part, cards in groupby(_cards(), key=lambda card: card[0]):
        anchor = part.replace(" ", "-")
        parts.append(f'<h2 id="{anchor}">{part}</h2>')
        for _, name, title, explorer, number in cards:
            lesson = LESSONS[number]
            about = f"Lesson {number:02d}, {html.escape(lesson.title)}"
            link = f'<a href="{lesson.name}.html">{about}</a>' if lesson in shown else about
            short = title.removeprefix(f"{_ORDER}: ")
            heading = html.escape(short[0].upper() + short[1:])
            parts.append(
                f'<section data-task="{html.escape(title)}" data-behind="{about}">'
                f'<h3 id="{name}">{heading}</h3>'
                f'{explorer}<p class="behind"><span class="done" hidden>✓ Solved. </span>{link}</p></section>'
            )
    return "\n".join(parts)


def in_python(folder: Path, shown: Sequence[Lesson]) -> str:
    """Return the exercises of the lessons that have a page in `folder` as a table; "" without any."""
    rows = []
    for lesson in shown:
        page = folder / f"{lesson.name}.html"
        text = page.read_text(encoding="utf-8") if page.is_file() else ""
        for anchor, title, level, minutes in _IN_PYTHON.findall(text):
            link = f'<a href="{lesson.name}.html#{anchor}">{title[0].upper()}{title[1:]}</a>'
            about = f"{lesson.number:02d} {html.escape(lesson.title)}"
            rows.append(f"<tr><td>{about}</td><td>{link}</td><td>{level}</td><td>{minutes}</td></tr>")
    if not rows:
        return ""
    names = "".join(f'<th scope="col">{name}</th>' for name in ("Lesson", "Exercise", "Level", "Time"))
    return (
        f'<h2 id="In-Python">In Python, in the lessons</h2>\n<p>These {len(rows)} are done in your own copy '
        "of the course; each has a check that names the mistake.</p>\n"
        f"<table><thead><tr>{names}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )
