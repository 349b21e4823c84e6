"""The teacher's notes of a lesson, ``notebooks/teaching/NN_slug.md``, by section."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tinytx_course.lessons import Lesson

_ABOUT_ALL = "Teaching"


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
    """The notes of one lesson.

    Attributes
    ----------
    aim, run_before : str
        One sentence each.
    sections : mapping of str to Section
        By heading of the notebook, in its order.
    about_all : mapping of str to str
        What is about the whole lesson by its heading, as "Wrong ideas".
    """

    lesson: Lesson
    aim: str
    run_before: str
    sections: Mapping[str, Section]
    about_all: Mapping[str, str]


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
    try:
        return Teaching(
            lesson=lesson,
            aim=_after("- **Aim:**", head),
            run_before=_after("- **Run before:**", head),
            sections={name: _section(text) for name, text in parts.items()},
            about_all=about_all,
        )
    except ValueError as problem:
        raise ValueError(f"notebooks/teaching/{path.name}: {problem}") from None


def _split(text: str, level: int) -> tuple[str, dict[str, str]]:
    """Return what comes before the first heading of this level, and the text below each."""
    head, *parts = re.split(rf"^{'#' * level} (.+)\n", text, flags=re.M)
    return head, {name: body.strip() for name, body in zip(parts[::2], parts[1::2], strict=True)}


def _after(mark: str, text: str) -> str:
    line = re.search(rf"^{re.escape(mark)} (.+)", text, flags=re.M)
    if line is None:
        raise ValueError(f"notes must have a line {mark!r}, got none")
    return line[1]


def _section(text: str) -> Section:
    points = re.findall(r"^- (.+)", text, flags=re.M)
    lines = dict(re.findall(r"^\*\*(\w+):\*\* (.+)", text, flags=re.M))
    return Section(
        board=_after("**Board:**", text),
        groups=lines.get("Groups", ""),
        exercise=lines.get("Exercise", ""),
        then=lines.get("Then", ""),
        points=tuple(points),
    )
