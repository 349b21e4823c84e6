"""Exercises that need no Python: masks to fill, lines to order, numbers to predict, parameters to count."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from itertools import groupby

from tinytx_course.lessons import LESSONS, Lesson
from tinytx_course.widgets.by_hand import by_hand, tasks
from tinytx_course.widgets.parsons import parsons, problem_names, read_problem

_ORDER = "Order the lines"


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
