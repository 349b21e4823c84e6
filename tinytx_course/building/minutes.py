"""How long a lesson takes: to read, to do its exercises, to run; written into its title by the build."""

from __future__ import annotations

import ast
import io
import math
import re
import tokenize
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tinytx_course.building.editions import cell_of_edition
from tinytx_course.building.elsewhere import is_first_cell
from tinytx_course.building.statements import statements_in
from tinytx_course.lessons import Lesson, Times, stored_times

if TYPE_CHECKING:
    from nbformat import NotebookNode

WORDS_A_MINUTE = 130
CODE_A_MINUTE = 360  # characters; about eight lines

# Code, what is folded, other tags, addresses of links.
_NO_PROSE = re.compile(r"```.*?```|<details>.*?</details>|<[^>]+>|\]\([^)]*\)", re.S)
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_LINE = re.compile(r"\*It takes:\*.*?(?=\n\*|\n\n|\Z)", re.S)


def count_words(text: str) -> int:
    """Count the words of a text cell, without code, what is folded, tags and the addresses of links.

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
    source = cell_of_edition(source, solved=False)
    try:
        ast.parse(source)
    except SyntaxError:
        return len("".join(source.split()))
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return sum(len(token.string.strip()) for token in tokens if token.type != tokenize.COMMENT)


def reading_minutes(texts: Iterable[str], codes: Iterable[str]) -> float:
    """Return how long text cells and code cells take to read, without the line *It takes:*."""
    words = sum(count_words(_LINE.sub("", text)) for text in texts)
    return words / WORDS_A_MINUTE + sum(map(count_code, codes)) / CODE_A_MINUTE


def exercise_minutes(lesson: Lesson, texts: Iterable[str]) -> int:
    """Return the sum of the minutes of those exercises of a lesson whose headings are in its texts."""
    return sum(statement.minutes for statement in statements_in("\n".join(texts), lesson.number))


def times_of(lesson: Lesson, cells: Sequence[NotebookNode], seconds: float) -> Times:
    """Return how long a notebook takes, with the stubs of its exercises.

    Parameters
    ----------
    lesson : Lesson
    cells : sequence of NotebookNode
        130 words or 360 characters of code are read in a minute; the files of exercises state their minutes.
    seconds : float
        To run.

    Returns
    -------
    Times
        Reading and running rounded up to multiples of five, so the same text and machine give the same.
    """
    cells = [cell for cell in cells if not is_first_cell(cell)]
    texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
    codes = [cell.source for cell in cells if cell.cell_type == "code"]
    reading, running = (5 * math.ceil(exact / 5) for exact in (reading_minutes(texts, codes), seconds))
    return Times(reading=reading, exercises=exercise_minutes(lesson, texts), seconds=running)


def last_seconds(lesson: Lesson, root: Path) -> float:
    """Return how long the lesson ran when it was last published; before that, the time it aims at."""
    times = stored_times(root).get(lesson.name)
    return lesson.seconds if times is None else times.seconds


def write_times(lesson: Lesson, cells: Sequence[NotebookNode], seconds: float) -> None:
    """Write the times into the title of a notebook, in place of what follows *It takes:* there."""
    for cell in cells[:2]:
        if cell.cell_type == "markdown" and (old := _LINE.search(cell.source)):
            new = f"*It takes:* {times_of(lesson, cells, seconds)} on two cores."
            cell.source = cell.source.replace(old[0], new, 1)
            return
