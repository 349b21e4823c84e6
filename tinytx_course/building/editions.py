"""Two editions from one source: the learner's, with stubs and folded solutions, and the solved one.

Solutions stand between the markers of nbgrader, so that a school that uses it can take sources as they are.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell


@dataclass(frozen=True)
class CheckCall:
    """One call of a checker.

    Parameters
    ----------
    name : str
        Of the exercise.
    function : ast.expr
        What is handed over to be checked.
    """

    name: str
    function: ast.expr


def check_calls(tree: ast.AST) -> list[CheckCall]:
    """Return the calls of ``check`` with a name written out, wherever they stand, in order of the text.

    Examples
    --------
    >>> [call.name for call in check_calls(ast.parse('v = course.check("attention", mine)'))]
    ['attention']
    """
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _called(node) == "check"]
    found.sort(key=lambda node: (node.lineno, node.col_offset))
    return [call for node in found if (call := _read(node)) is not None]


def _called(node: ast.Call) -> str:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _read(node: ast.Call) -> CheckCall | None:
    given = dict(zip(("name", "function"), node.args, strict=False))
    given |= {word.arg: word.value for word in node.keywords if word.arg in ("name", "function")}
    name = given.get("name")
    if not (isinstance(name, ast.Constant) and isinstance(name.value, str) and "function" in given):
        return None
    return CheckCall(name.value, given["function"])


BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
_ALMOST = re.compile(r"(BEGIN|END)\s+SOLUTION", re.IGNORECASE)


def has_solution(source: str) -> bool:
    """Tell whether a cell holds a solution, or a marker that was meant to begin or end one."""
    return _ALMOST.search(source) is not None


def learners_cell(source: str) -> str:
    """Return a cell with ``...`` in place of each solution.

    Raises
    ------
    ValueError
        If the markers do not come in pairs.

    Examples
    --------
    >>> print(learners_cell("def f(x):\\n    ### BEGIN SOLUTION\\n    return x\\n    ### END SOLUTION"))
    def f(x):
        ...
    """
    return _through(source, lambda begin, _: [begin[: len(begin) - len(begin.lstrip())] + "..."])


def solved_cell(source: str) -> str:
    """Return a cell with its solutions and without the markers.

    Raises
    ------
    ValueError
        If the markers do not come in pairs.
    """
    return _through(source, lambda _, lines: lines)


def _through(source: str, replace: Callable[[str, list[str]], list[str]]) -> str:
    kept: list[str] = []
    inside: list[str] | None = None
    begin = ""
    for line in source.splitlines():
        marker = line.strip()
        if marker == BEGIN and inside is None:
            begin, inside = line, []
        elif marker == END and inside is not None:
            if not any(text.strip() for text in inside):
                raise ValueError("a solution must hold a line, got an empty one")
            kept += replace(begin, inside)
            inside = None
        elif _ALMOST.search(line):
            raise ValueError(f"{BEGIN} and {END} must come in pairs, each alone on its line, got {marker!r}")
        else:
            (kept if inside is None else inside).append(line)
    if inside is not None:
        raise ValueError(f"{BEGIN} must be followed by {END} in the same cell, got none")
    return "\n".join(kept)


def checks_in(source: str) -> list[str]:
    """Return the names of the exercises that a cell checks."""
    return [call.name for call in check_calls(ast.parse(source))]


def make_edition(notebook: NotebookNode, *, solved: bool) -> None:
    """Turn the cells of a source into those of an edition, in place.

    In the learner's edition a folded Solution, made from the lines between the markers, follows the cell that
    calls the check.

    Raises
    ------
    ValueError
        If markers do not come in pairs, the code cell after a solution calls no check, or a check names an
        exercise that there is not.
    """
    cells: list[NotebookNode] = []
    waiting: str | None = None  # a solution whose check has not come yet
    for cell in notebook.cells:
        cells.append(cell)
        if cell.cell_type != "code":
            continue
        names = _known(checks_in(cell.source)) if "check" in cell.source else []
        if waiting is not None:
            if not names:
                raise ValueError(f"the code cell after a solution must call its check, got {cell.source!r}")
            if not solved:
                cells.append(new_markdown_cell(folded(waiting), id=f"{cell.id}-solution"))
            waiting = None
        if has_solution(cell.source):
            waiting = solved_cell(cell.source)
            cell.source = waiting if solved else learners_cell(cell.source)
    if waiting is not None:
        raise ValueError(f"the code cell after a solution must call its check, got no cell after {waiting!r}")
    notebook.cells = cells


def _known(names: list[str]) -> list[str]:
    from tinytx_course.exercises.checking import EXERCISES

    for name in names:
        if name not in EXERCISES:
            raise ValueError(f"a check must name an exercise, one of {', '.join(EXERCISES)}, got {name!r}")
    return names


def folded(solution: str) -> str:
    """Return a solution as a text cell that opens on a click."""
    return f"<details><summary>Solution</summary>\n\n```python\n{solution.strip()}\n```\n\n</details>"
