"""What can be taught: the sections and exercises of the published notebooks, with minutes and addresses."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from tinytx_course.building.editions import at_headings, is_further
from tinytx_course.building.elsewhere import is_first_cell
from tinytx_course.building.minutes import last_times, minutes_of, rounded
from tinytx_course.lessons import Lesson, Times, pick_lessons, written_lessons
from tinytx_course.sheets import read_sheet
from tinytx_course.site.cells import markdown_to_html
from tinytx_course.site.finding import headings

EXERCISE = "Exercise: "
COLUMNS = ["lesson", "section", "minutes"]
LONGEST = 600  # minutes of one section: more is a slip of the pen
_CARD = re.compile(r"data-tx-kind=\"(\w+)\" data-tx-explorer='([^']*)'")
_MINUTES = re.compile(r"\d{1,3}(\.\d+)?")
_OUTCOME = re.compile(r"^\d\. (.+?)[.;,]?$", re.M)
_PARSONS = re.compile(r'course\.parsons\("(\w+)"')


@dataclass(frozen=True, kw_only=True)
class Part:
    """A section of a lesson, or an exercise."""

    lesson: Lesson
    title: str  # its heading in the notebook, as ``Padding`` or ``Exercise: the padding mask``
    minutes: int  # at least 1: an estimate, unless measured in class
    measured: bool = False
    cells: Sequence[NotebookNode] = field(repr=False)  # with their outputs

    @property
    def is_exercise(self) -> bool:
        """Whether learners work by themselves."""
        return self.title.startswith(EXERCISE)

    @property
    def is_further(self) -> bool:
        """Whether it is no part of the core."""
        return all(map(is_further, self.cells))

    @property
    def key(self) -> tuple[int, str]:
        """Its name in the course."""
        return self.lesson.number, self.title

    @property
    def anchor(self) -> str:
        """The heading on the page of the lesson."""
        return headings(markdown_to_html(f"## {self.title}"))[0][1]

    @property
    def predictions(self) -> list[dict[str, Any]]:
        """The questions of `course.predict` in it: key, prompt, and choices with a text each."""
        shown = (state for kind, state in cards(self.cells) if kind == "questions")
        return [question for state in shown if state["levels"] for question in state["questions"]]


@dataclass(frozen=True, kw_only=True)
class Outline:
    """One lesson by its parts, in the order of the notebook."""

    lesson: Lesson
    parts: tuple[Part, ...]
    times: Times  # those of its page
    outcomes: tuple[str, ...]  # what one can do after it, in Markdown, as its title says

    def find(self, title: str) -> Part:
        """Return the part with this heading, or the only one that begins with it.

        Raises
        ------
        ValueError
            If there is none, or several.
        """
        found = [part for part in self.parts if part.title == title]
        found = found or [part for part in self.parts if part.title.startswith(title)]
        if len(found) != 1 or not title:
            known = ", ".join(repr(part.title) for part in self.parts)
            name = self.lesson.name
            raise ValueError(f"a section of lesson {name} must be one of {known}, got {title!r}")
        return found[0]

    @property
    def puzzles(self) -> list[str]:
        """The names of its Parsons problems, which work in a page."""
        cells = (cell for part in self.parts for cell in part.cells if cell.cell_type == "code")
        return [name for cell in cells for name in _PARSONS.findall(cell.source)]


def cards(cells: Iterable[NotebookNode]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give kind and state of each explorer and question that some cells have shown."""
    for output in (output for cell in cells for output in cell.get("outputs", ())):
        if card := _CARD.search(output.get("data", {}).get("text/html", "")):
            yield card[1], json.loads(html.unescape(card[2]))["state"]


def parts_named(line: str, outlines: Mapping[int, Outline]) -> list[Part]:
    """Return the part that a line as ``02 Padding`` names, or for ``02 *`` the core of the lesson.

    Raises
    ------
    ValueError
        If there is no such lesson or part.
    """
    number, _, title = line.partition(" ")
    if not number.isdecimal() or int(number) not in outlines:
        raise ValueError(f"a line must begin with the number of a published lesson, got {line!r}")
    outline = outlines[int(number)]
    return [part for part in outline.parts if not part.is_further] if title == "*" else [outline.find(title)]


def read_outlines(root: Path) -> dict[int, Outline]:
    """Return the lessons by their numbers, from the published notebooks."""
    outlines = {}
    for lesson in written_lessons(root):
        path = root / "notebooks" / f"{lesson.name}.ipynb"
        if path.is_file():
            outlines[lesson.number] = outline_of(lesson, nbformat.read(path, 4).cells, root)
    return outlines


def outline_of(lesson: Lesson, cells: Sequence[NotebookNode], root: Path) -> Outline:
    """Return the parts of a notebook; what comes before its first section is left out."""
    parts: dict[str, list[NotebookNode]] = {}
    section: list[NotebookNode] = []  # the one that is open
    here = section  # or an exercise in it
    for cell in cells:
        if is_first_cell(cell):
            continue
        if cell.cell_type != "markdown":
            here.append(cell)
            continue
        for level, title, text in at_headings(cell.source):
            if not (level or text.strip()):
                continue
            if level == "##":
                here = section = parts.setdefault(title, [])
            elif level:
                own = title.startswith((EXERCISE, "Further:"))
                here = parts.setdefault(title, []) if own else here if level == "####" else section
            source = f"{level} {title}\n{text}" if level else text
            here.append(NotebookNode(cell_type="markdown", source=source, metadata=cell.metadata))
    return Outline(
        lesson=lesson,
        parts=tuple(
            Part(lesson=lesson, title=title, minutes=rounded(minutes_of(lesson, inside)), cells=inside)
            for title, inside in parts.items()
        ),
        times=last_times(lesson, cells, root),
        outcomes=tuple(_OUTCOME.findall(cells[0].source)) if cells else (),
    )


def with_measured(outlines: Mapping[int, Outline], file: Path, root: Path) -> dict[int, Outline]:
    """Return outlines with minutes measured in class: a CSV file with the columns lesson, section, minutes.

    Raises
    ------
    ValueError
        If a row of the file names no section or no number of minutes.
    """
    outlines = dict(outlines)
    (_, names), *rows = read_sheet(file) or [(0, [])]
    if names != COLUMNS:
        raise ValueError(f"{file} must begin with the line {','.join(COLUMNS)}, got {names}")
    for number, cells in rows:
        if not cells:
            continue
        which, section, minutes, *_ = map(str.strip, [*cells, "", ""])
        try:
            (lesson,) = pick_lessons([which or "?"], root)
            outline = outlines[lesson.number]
            part = outline.find(section)
            if not _MINUTES.fullmatch(minutes) or float(minutes) > LONGEST:
                raise ValueError(f"minutes must be a number from 0 to {LONGEST}, got {minutes!r}")
        except ValueError as problem:
            raise ValueError(f"{file}, line {number}: {problem}") from None
        new = replace(part, minutes=round(float(minutes)), measured=True)
        parts = tuple(new if one is part else one for one in outline.parts)
        outlines[lesson.number] = replace(outline, parts=parts)
    return outlines
