"""What the exercises of a lesson ask: put by the build in the place of a line ``[exercise: NAME]``."""

from __future__ import annotations

import re
from functools import cache

from tinytx_course.exercises.checking import EXERCISES
from tinytx_course.exercises.statement import Statement
from tinytx_course.museum.faults import ROOMS

_ASKED = re.compile(r"^\[exercise: (.*)\]$", re.M)
_HEADING = re.compile(r"^### Exercise: (.+)$", re.M)


@cache
def statements() -> dict[str, Statement]:
    """Return the statements of all exercises, and of the rooms of the museum, by their names."""
    return {name: exercise.statement for name, exercise in EXERCISES.items()} | ROOMS


def statements_in(text: str, lesson: int) -> list[Statement]:
    """Return the statements of a lesson whose headings are in a text, in their order there.

    Examples
    --------
    >>> [statement.minutes for statement in statements_in("### Exercise: the causal mask", 2)]
    [5]
    """
    own = {one.title: one for one in statements().values() if one.lesson == lesson}
    return [own[title] for title in _HEADING.findall(text) if title in own]


def with_statement(source: str) -> str:
    """Return a text cell in which each line ``[exercise: NAME]`` has become what that exercise asks.

    Raises
    ------
    ValueError
        If there is no such exercise.
    """

    def written(found: re.Match[str]) -> str:
        if found[1] not in statements():
            raise ValueError(f"{found[0]} must name one of {', '.join(statements())}")
        return str(statements()[found[1]])

    return _ASKED.sub(written, source)
