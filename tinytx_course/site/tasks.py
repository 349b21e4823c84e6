"""Exercises that need no installation: masks, lines to order, blanks; and a list of those in the lessons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from tinytx_course.building.statements import statements
from tinytx_course.exercises.checking import EXERCISES
from tinytx_course.exercises.practice import fill
from tinytx_course.exercises.rungs import labelled, rungs_of
from tinytx_course.lessons import LESSONS, Lesson
from tinytx_course.site.cells import markdown_to_html
from tinytx_course.site.finding import headings
from tinytx_course.site.templates import render
from tinytx_course.widgets.base import Explorer
from tinytx_course.widgets.by_hand import by_hand, tasks
from tinytx_course.widgets.parsons import parsons, problem_names, read_problem


def _cards() -> Iterator[tuple[str, str, Explorer, Lesson, str]]:
    """Yield part, name, explorer, its lesson, and the name of the exercise that it is a rung of."""
    for part, some in groupby(tasks().items(), key=lambda item: item[1].part):
        for name, task in some:
            yield part, name, by_hand(name), LESSONS[task.exercises[0].lesson], ""
        if part == "Fill a mask":
            for problem in sorted(map(read_problem, problem_names()), key=lambda one: one.lesson):
                name = problem.name
                yield "Order the lines", f"order-{name}", parsons(name), LESSONS[problem.lesson], name
            for name, exercise in EXERCISES.items():
                if "fill" in rungs_of(exercise):
                    yield "Fill the blanks", f"fill-{name}", fill(exercise), LESSONS[exercise.lesson], name


def exercises_body(folder: Path, shown: Sequence[Lesson]) -> str:
    """Return all of them in parts, each with the lesson behind it, then a table of those in the lessons.

    Lessons that are `shown` are linked; the table holds the exercises of those that have a page in `folder`.
    """
    parts = [(part, list(some)) for part, some in groupby(_cards(), key=lambda card: card[0])]
    rows = []
    for lesson in shown:
        page = folder / f"{lesson.name}.html"
        text = page.read_text(encoding="utf-8") if page.is_file() else ""
        own = [one for one in statements().values() if one.lesson == lesson.number]
        anchors = {anchor: one for one in own for _, anchor, *_ in headings(markdown_to_html(one.heading))}
        there = [anchor for anchor in anchors if f'id="{anchor}"' in text]
        rows += [(lesson, anchor, anchors[anchor]) for anchor in sorted(there, key=text.index)]
    watched = {name: labelled(one) for name, one in EXERCISES.items() if "watch" in rungs_of(one)}
    names = {"parts": parts, "shown": shown, "rows": rows, "watched": watched, "statements": statements()}
    return render("site/tasks.html", **names)
