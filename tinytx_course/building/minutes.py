"""How long a lesson takes, its core and everything: counted when it is published, written into its title."""

from __future__ import annotations

import ast
import io
import math
import re
import tokenize
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tinytx_course.building.editions import at_headings, is_further
from tinytx_course.building.elsewhere import is_first_cell, is_still
from tinytx_course.building.statements import statements_in
from tinytx_course.lessons import Lesson, Times, stored_times

if TYPE_CHECKING:
    from nbformat import NotebookNode

WORDS_A_MINUTE = 130
CODE_A_MINUTE = 360  # characters; about eight lines; printed output likewise
A_FIGURE = 1.5
#: Minutes of each prediction, explorer and so on, by the name of what a cell calls.
TO_DO = {"predict": 1, "widgets": 6, "quiz": 5, "recall": 2, "parsons": 4}
A_TRY = 4

# Code, tags, addresses of links.
_NO_PROSE = re.compile(r"```.*?```|<[^>]+>|\]\([^)]*\)", re.S)
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_LINE = re.compile(r"\*It takes:\*.*?(?=\n\*|\n\n|\Z)", re.S)
_CALL = re.compile(rf"\bcourse\.({'|'.join(TO_DO)})\b")
_TRY = re.compile(r"^\*\*\d+\.\*\*", re.M)
_PICTURE = re.compile(r"<figure\b|class=\"txd\b")


def count_words(text: str) -> int:
    """Count the words of a text cell, without code, tags and the addresses of links.

    Examples
    --------
    >>> count_words("A [causal mask](02.ipynb#part) isn't *hard*: $T^2$.")
    7
    """
    return len(_WORD.findall(_NO_PROSE.sub(" ", text)))


def count_code(source: str) -> int:
    """Count the characters of code in a learner's cell, without comments and spaces.

    Examples
    --------
    >>> count_code("x = 1  # one\\n\\n# two\\ny = (x +\\n     2)")
    10
    """
    try:
        ast.parse(source)
    except SyntaxError:
        return len("".join(source.split()))
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return sum(len(token.string.strip()) for token in tokens if token.type != tokenize.COMMENT)


def count_output(cell: NotebookNode) -> tuple[int, int]:
    """Count the figures that a cell shows, and the characters that it prints, without spaces and cards."""
    figures = characters = 0
    for output in cell.get("outputs", []):
        data = {} if is_still(output) else output.get("data", {})
        if any(kind.startswith("image/") for kind in data) or _PICTURE.search(data.get("text/html", "")):
            figures += 1
        elif "data-tx-kind" not in data.get("text/html", ""):
            text = output.get("text") or data.get("text/markdown") or data.get("text/plain", "")
            characters += len("".join(text.split()))
    return figures, characters


def minutes_of(lesson: Lesson, cells: Iterable[NotebookNode]) -> tuple[float, float]:
    """Return how long some cells take to read, and to do.

    An exercise takes what its file states, its text, stub and solution included. What is folded counts.
    """
    words = characters = figures = doing = 0
    title = ""  # of the section that is open
    for cell in cells:
        if cell.cell_type == "markdown":
            for _, heading, text in at_headings(cell.source):
                title = heading or title
                if not title.startswith("Exercise: "):
                    words += count_words(f"{heading} {_LINE.sub('', text)}")
                    if title == "Try it yourself":  # several are numbered
                        doing += A_TRY * (len(_TRY.findall(text)) or heading == title)
            doing += sum(one.minutes for one in statements_in(cell.source, lesson.number))
        elif cell.cell_type == "code" and not is_first_cell(cell):
            doing += sum(TO_DO[name] for name in _CALL.findall(cell.source))
            if not title.startswith("Exercise: "):
                shown, printed = count_output(cell)
                figures += shown
                characters += count_code(cell.source) + printed
    return words / WORDS_A_MINUTE + characters / CODE_A_MINUTE + A_FIGURE * figures, doing


def rounded(minutes: Iterable[float]) -> int:
    """Return the sum of some minutes, at least 1."""
    return max(1, round(sum(minutes)))


def times_of(lesson: Lesson, cells: Sequence[NotebookNode], seconds: float) -> Times:
    """Return how long a notebook takes, with its outputs, the stubs of its exercises and its time to run.

    Minutes are rounded up, seconds to multiples of five, so the same text and machine give the same.
    """
    reading, doing = minutes_of(lesson, [cell for cell in cells if not is_further(cell)])
    return Times(
        reading=math.ceil(reading),
        doing=math.ceil(doing),
        everything=math.ceil(sum(minutes_of(lesson, cells))),
        seconds=5 * math.ceil(seconds / 5),
    )


def last_times(lesson: Lesson, cells: Sequence[NotebookNode], root: Path) -> Times:
    """Return the times stored when the lesson was last published; before that, those of its cells."""
    return stored_times(root).get(lesson.name) or times_of(lesson, cells, lesson.seconds)


def write_times(cells: Sequence[NotebookNode], times: Times) -> None:
    """Write the times into the title of a notebook, in place of what follows *It takes:* there."""
    for cell in cells[:2]:
        if cell.cell_type == "markdown" and (old := _LINE.search(cell.source)):
            cell.source = cell.source.replace(old[0], f"*It takes:* {times} on two cores.", 1)
            return
