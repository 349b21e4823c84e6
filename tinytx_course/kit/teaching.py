"""The teacher's notes of a lesson, ``notebooks/teaching/NN_slug.md``, by section, and their pages."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tinytx_course.kit.outline import Outline
from tinytx_course.kit.pages import write_page
from tinytx_course.kit.scissors import LESSON, PAGE
from tinytx_course.lessons import Lesson
from tinytx_course.quizzes.bank import votes
from tinytx_course.quizzes.card import plain
from tinytx_course.site.templates import render, table, titled

_ABOUT_ALL = "Teaching"
_LINE = re.compile(r"^(?:- )?\*\*([\w ]+):\*\* (.+)", re.M)
_POINT = re.compile(r"^- (.+)", re.M)
#: What the folder holds for one lesson: page of the kit, and how it is called.
_MATERIAL = (
    ("slides/{}.html", "slides"),
    ("handouts/{}.html", "handout"),
    ("votes/{}.html", "vote cards"),
    ("site/{}.html", "the lesson with its results and folded solutions"),
    ("site/notebooks/{}.ipynb", "the notebook"),
)
_FIRST, *_REST = "The question that wakes the room", "Wrong ideas", "Where people get stuck", "When late"


@dataclass(frozen=True, kw_only=True)
class Section:
    """What to draw on the board, what groups do, exercise, what then, and the talking points of a section."""

    board: str
    groups: str
    exercise: str
    then: str
    points: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Teaching:
    """The notes of one lesson."""

    lesson: Lesson
    aim: str  # one sentence, as the next
    run_before: str
    sections: Mapping[str, Section]  # by heading of the notebook, in its order
    about_all: Mapping[str, str]  # what is about the whole lesson by its heading, as "Wrong ideas"


def exercise_steps(lesson: Lesson, title: str) -> str:
    """Return how everybody gets from an empty screen into an exercise, as Markdown."""
    return (
        "1. In the folder of the course, with its environment active: `tinytx-course lab`\n"
        f"2. Open `{lesson.name}.ipynb` and run its first cells, up to the end of *Set-up*.\n"
        f"3. Go to *Exercise: {title}*. Fill in the `...`, run the cell, then the check below it.\n\n"
        f"Without Python: a puzzle of lesson {lesson.number:02d} on the page `site/exercises.html`."
    )


def read_teaching(lesson: Lesson, root: Path) -> Teaching:
    """Read the notes of a lesson.

    Raises
    ------
    ValueError
        If they lack one of their parts; the file is named.
    """
    path = root / "notebooks" / "teaching" / f"{lesson.name}.md"
    head, parts = _split(path.read_text(encoding="utf-8"), 2)
    _, about_all = _split(parts.pop(_ABOUT_ALL, ""), 3)
    about = dict(_LINE.findall(head))
    try:
        return Teaching(
            lesson=lesson,
            aim=about["Aim"],
            run_before=about["Run before"],
            sections={name: _section(text) for name, text in parts.items()},
            about_all=about_all,
        )
    except KeyError as missing:
        place = f"notebooks/teaching/{path.name}"
        raise ValueError(f"{place}: notes must have a line **{missing.args[0]}:**, got none") from None


def _split(text: str, level: int) -> tuple[str, dict[str, str]]:
    """Return what comes before the first heading of this level, and the text below each."""
    head, *parts = re.split(rf"^{'#' * level} (.+)\n", text, flags=re.M)
    return head, {name: body.strip() for name, body in zip(parts[::2], parts[1::2], strict=True)}


def _section(text: str) -> Section:
    lines = dict(_LINE.findall(text))
    others = {name: lines.get(name.capitalize(), "") for name in ("groups", "exercise", "then")}
    return Section(board=lines["Board"], points=tuple(_POINT.findall(text)), **others)


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
            plain=plain,
        )
        write_page(folder / "notes" / page, f"Notes: {title}", body, up="index.html")
        name = f'<a href="{page}">{titled(lesson, " · ")}</a>'
        minutes = [str(n) for n in (outline.times.reading, outline.times.doing, outline.times.everything)]
        lines.append([name, html.escape(lesson.question), *minutes])
    head = ["lesson", "the question", "minutes to read", "to do", "with everything"]
    body = f"<h1>Teacher's notes</h1>{table(head, lines)}"
    write_page(folder / "notes" / "index.html", "Teacher's notes", body)
