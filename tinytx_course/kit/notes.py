"""The teacher's notes as pages: each section with its minutes, and a link to it on the page of the lesson."""

from __future__ import annotations

import html
from collections.abc import Mapping
from pathlib import Path

from tinytx_course.kit.outline import Outline
from tinytx_course.kit.pages import write_page
from tinytx_course.kit.scissors import LESSON, PAGE
from tinytx_course.kit.teaching import exercise_steps, read_teaching
from tinytx_course.quizzes.bank import votes
from tinytx_course.site.templates import render, table, titled

#: What the folder holds for one lesson: page of the kit, and how it is called.
_MATERIAL = (
    ("slides/{}.html", "slides"),
    ("handouts/{}.html", "handout"),
    ("votes/{}.html", "vote cards"),
    ("site/{}.html", "the lesson with its results and folded solutions"),
    ("site/notebooks/{}.ipynb", "the notebook"),
)
_FIRST, *_REST = "The question that wakes the room", "Wrong ideas", "Where people get stuck", "When late"


def write_notes(folder: Path, outlines: Mapping[int, Outline], root: Path) -> None:
    """Write a page a lesson and their list into ``notes`` of the kit; what else is in the kit is linked."""
    lines = []
    for outline in outlines.values():
        lesson = outline.lesson
        title, page = f"{lesson.number:02d} · {lesson.title}", f"{lesson.name}.html"
        material = [(place.format(lesson.name), words) for place, words in _MATERIAL]
        material = [(place, words) for place, words in material if (folder / place).is_file()]
        if lesson.number == LESSON:
            material.append((f"handouts/{PAGE}", "attention with paper and scissors"))
        body = render(
            "kit/notes.html",
            outline=outline,
            teaching=read_teaching(lesson, root),
            votes=votes(lesson),
            material=material,
            first=_FIRST,
            rest=_REST,
            steps=exercise_steps,
        )
        write_page(folder / "notes" / page, f"Notes: {title}", body, up="index.html")
        name = f'<a href="{page}">{titled(lesson, " · ")}</a>'
        minutes = [str(outline.times.reading), str(outline.times.exercises)]
        lines.append([name, html.escape(lesson.question), *minutes])
    head = ["lesson", "the question", "minutes to read", "of exercises"]
    body = f"<h1>Teacher's notes</h1>{table(head, lines)}"
    write_page(folder / "notes" / "index.html", "Teacher's notes", body)
