"""Exercises that need no Python, as masks to fill or lines to order, and a list of those in the lessons."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from tinytx_course.lessons import LESSONS, Lesson
from tinytx_course.site.templates import render
from tinytx_course.widgets.by_hand import by_hand, tasks
from tinytx_course.widgets.parsons import parsons, problem_names, read_problem

_ORDER = "Order the lines"
_IN_PYTHON = re.compile(
    r'<h3 id="([^"]+)">Exercise: ([^<]+)<a.*?</h3>\s*'
    r'<p class="level"><span>(Level \d/5)</span><span>(\d+ minutes)</span>',
    re.S,
)


def _cards() -> Iterator[tuple[str, str, str, str, Lesson]]:
    """Yield part, name, explorer's title, explorer, and its lesson."""
    for part, some in groupby(tasks().items(), key=lambda item: item[1].part):
        for name, task in some:
            yield part, name, task.title, by_hand(name).to_html(), LESSONS[task.exercises[0].lesson]
        if part == "Fill a mask":
            for problem in sorted(map(read_problem, problem_names()), key=lambda one: one.lesson):
                card = parsons(problem.name)
                yield _ORDER, f"order-{problem.name}", card.title, card.to_html(), LESSONS[problem.lesson]


def exercises_body(folder: Path, shown: Sequence[Lesson]) -> str:
    """Return all of them in parts, each with the lesson behind it, then a table of those in the lessons.

    Lessons that are `shown` are linked; the table holds the exercises of those that have a page in `folder`.
    """
    parts = [(part, list(some)) for part, some in groupby(_cards(), key=lambda card: card[0])]
    rows = []
    for lesson in shown:
        page = folder / f"{lesson.name}.html"
        text = page.read_text(encoding="utf-8") if page.is_file() else ""
        rows += [(lesson, *found) for found in _IN_PYTHON.findall(text)]
    return render("site/tasks.html", parts=parts, shown=shown, rows=rows)
