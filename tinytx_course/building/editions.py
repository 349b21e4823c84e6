"""Two editions from one source: the learner's, with stubs and folded solutions, and the solved one.

A stub is a code cell with a function of ``...`` and nothing else. The solved edition has in its place the
right program of the exercise, between the markers of nbgrader, and says in its metadata which cells are
graded: it is what nbgrader calls the instructor version of an assignment. In both the cells of a section
whose heading begins with *Further:* have a tag: they are no part of the core.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from tinytx_course.lessons import FURTHER

if TYPE_CHECKING:  # grading reads calls of checks, and shall not wait for nbformat
    from nbformat import NotebookNode

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
_STUB = re.compile(r"def (\w+)\(.*\):\n    \.\.\.")
_HEADING = re.compile(r"^(#{2,4}) (.+)\n?", re.M)


class CheckCall(NamedTuple):
    """One call of a checker: the name of the exercise, and the expression handed over to be checked."""

    name: str
    function: ast.expr


def check_calls(tree: ast.AST) -> list[CheckCall]:
    """Return the calls of ``check`` whose first argument is a literal name, in the order of the text.

    Examples
    --------
    >>> [call.name for call in check_calls(ast.parse('v = course.check("attention", mine)'))]
    ['attention']
    """
    calls = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == "check":
            given = dict(zip(("name", "function"), node.args, strict=False))
            given |= {word.arg: word.value for word in node.keywords if word.arg in ("name", "function")}
            name, function = given.get("name"), given.get("function")
            if isinstance(name, ast.Constant) and isinstance(name.value, str) and function is not None:
                calls[node.lineno, node.col_offset] = CheckCall(name.value, function)
    return [calls[place] for place in sorted(calls)]


def at_headings(source: str) -> list[tuple[str, str, str]]:
    """Cut a text cell at its headings: level, title and text of each; what comes first has no title.

    Examples
    --------
    >>> at_headings("first\\n## Padding\\ntext")
    [('', '', 'first\\n'), ('##', 'Padding', 'text')]
    """
    first, *rest = _HEADING.split(source)
    return [("", "", first), *zip(rest[::3], map(str.strip, rest[1::3]), rest[2::3], strict=True)]


def is_further(cell: NotebookNode) -> bool:
    """Whether a cell belongs to a section whose heading begins with *Further:*."""
    return FURTHER in cell.metadata.get("tags", [])


def mark_further(cells: Iterable[NotebookNode]) -> list[NotebookNode]:
    """Return the cells of a source, those from a heading *Further:* to the next as high with their tag.

    A text cell in which such a section begins or ends becomes two.
    """
    from nbformat.v4 import new_markdown_cell

    marked: list[NotebookNode] = []
    depth = 0  # of the heading of the section that is open, 0 for none
    for cell in cells:
        parts = [[depth, cell.source]] if cell.cell_type == "code" else []
        for level, title, text in at_headings(cell.source) if cell.cell_type == "markdown" else ():
            if title.startswith("Further:"):
                depth = min(depth, len(level)) or len(level)
            elif level and len(level) <= depth:
                depth = 0
            text = f"{level} {title}\n{text}" if level else text
            if parts and bool(parts[-1][0]) == bool(depth):
                parts[-1][1] += text
            elif text:
                parts.append([depth, text])
        same = len(parts) == 1
        for within, text in parts:
            part = cell if same else new_markdown_cell(text.strip(), metadata=dict(cell.metadata))
            if within:
                part.metadata["tags"] = [*part.metadata.get("tags", []), FURTHER]
            marked.append(part)
    return marked


def program_of(source: str) -> str:
    """Return the right program of the exercise whose stub a code cell is, and "" for any other cell.

    Raises
    ------
    ValueError
        If there is no such exercise, or its right program is more than one function.

    Examples
    --------
    >>> print(program_of("def padding_mask(token_ids, pad_id):\\n    ..."))
    def padding_mask(token_ids, pad_id):
        return token_ids != pad_id  # (B, S)
    """
    from tinytx_course.exercises.checking import EXERCISES

    stub = _STUB.fullmatch(source)
    if stub is None:
        return ""
    text = EXERCISES[stub[1]].solve.text.strip() if stub[1] in EXERCISES else ""
    if not text.startswith(f"def {stub[1]}("):
        raise ValueError(f"the right program of {stub[1]} must be one function, got {text!r}")
    return text


def make_edition(notebook: NotebookNode, *, solved: bool) -> None:
    """Turn the cells of a source into those of an edition, in place.

    In the learner's edition a folded Solution follows the cell that calls the check. In the solved one the
    cells are marked for nbgrader, and a check that fails raises.

    Raises
    ------
    ValueError
        If the code cell after a stub calls no check, or a stub or a check names no exercise.
    """
    from nbformat.v4 import new_markdown_cell

    from tinytx_course.exercises.checking import EXERCISES

    cells: list[NotebookNode] = []
    pending: tuple[NotebookNode, str] | None = None  # a stub and its solution, whose check has not come yet
    for cell in notebook.cells:
        cells.append(cell)
        if cell.cell_type != "code":
            continue
        names = [call.name for call in check_calls(ast.parse(cell.source))] if "check" in cell.source else []
        if unknown := set(names) - set(EXERCISES):
            raise ValueError(
                f"a check must name an exercise, one of {', '.join(EXERCISES)}, got {', '.join(unknown)}"
            )
        if pending is not None:
            if not names:
                raise ValueError(f"the code cell after a solution must call its check, got {cell.source!r}")
            if solved:
                _for_nbgrader(pending[0], cell, names[0])
            else:
                code = f"```python\n{pending[1]}\n```"
                folded = f"<details><summary>Solution</summary>\n\n{code}\n\n</details>"
                tags = {"tags": [FURTHER]} if is_further(cell) else {}
                cells.append(new_markdown_cell(folded, id=f"{cell.id}-solution", metadata=tags))
            pending = None
        if program := program_of(cell.source):
            pending = cell, program
            if solved:
                head, _, body = program.partition("\n")
                cell.source = f"{head}\n    {BEGIN}\n{body}\n    {END}"
    if pending is not None:
        raise ValueError(
            f"the code cell after a solution must call its check, got no cell after {pending[1]!r}"
        )
    notebook.cells = cells


def _for_nbgrader(written: NotebookNode, check: NotebookNode, name: str) -> None:
    """Mark the cell of a solution and that of its check: a point an exercise, lost where the check raises."""
    for cell, grade in ((written, False), (check, True)):
        cell.metadata["nbgrader"] = {
            "grade_id": f"{name}-check" if grade else name,
            "grade": grade,
            "solution": not grade,
            "locked": grade,
            "task": False,
            "schema_version": 3,
        } | ({"points": 1} if grade else {})
    named = "" if check.source.startswith("verdict = ") else "verdict = "
    test = "### BEGIN HIDDEN TESTS\nassert verdict.passed\n### END HIDDEN TESTS"
    check.source = f"{named}{check.source}\n{test}"
