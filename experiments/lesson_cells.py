"""What the cells of a lesson define, so that an experiment measures with the functions that a reader sees."""

from __future__ import annotations

import ast
import functools
import os
import types
from collections.abc import Iterable, Sequence

import jupytext

from tinytx_course.grading.slicing import Statement, needed, statements
from tinytx_course.lessons import project_root, written_lessons
from tinytx_course.progress.record import NOWHERE
from tinytx_course.progress.record import VARIABLE as PROGRESS


@functools.cache
def code_cells(lesson: str) -> tuple[str, ...]:
    """The code cells of a lesson, named by its two digits, in its order.

    Raises
    ------
    ValueError
        If no lesson has this number.
    """
    numbers = {f"{one.number:02d}": one for one in written_lessons(project_root())}
    if lesson not in numbers:
        raise ValueError(f"lesson must be one of {', '.join(numbers)}, got {lesson!r}")
    path = project_root() / "notebooks" / "src" / f"{numbers[lesson].name}.py"
    cells = jupytext.read(path, fmt="py:percent").cells
    return tuple(cell.source for cell in cells if cell.cell_type == "code")


def run_statements(chosen: Iterable[Statement], space: types.ModuleType) -> None:
    """Run statements in the name space of a module."""
    for one in chosen:
        code = compile(ast.Module([one.node], []), f"<code cell {one.cell}>", "exec")
        exec(code, space.__dict__)


@functools.cache
def from_lesson(lesson: str, *names: str) -> types.ModuleType:
    """A module with some names of a lesson, and with what these need of its cells.

    Examples
    --------
    >>> from_lesson("03", "robot").robot
    ['I', 'am', 'a', 'Robot']
    """
    os.environ[PROGRESS] = NOWHERE  # what a learner wrote has no part in it
    every = statements_of(code_cells(lesson))
    space = types.ModuleType(f"lesson_{lesson}")
    run_statements(needed(every, [], names), space)
    return space


def statements_of(cells: Sequence[str]) -> list[Statement]:
    """All statements of some cells, which are counted from 1."""
    return [one for i, cell in enumerate(cells, start=1) for one in statements(ast.parse(cell), i)]
