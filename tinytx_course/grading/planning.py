"""What to run for each exercise of a notebook, found by calls of its check or by the name of a function."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tinytx_course.building.editions import check_calls
from tinytx_course.grading.slicing import Statement, names_read, needed, statements

_TIMED = re.compile(r"\A\s*%%(time|timeit|capture|prun|debug)\b.*\n?")
_FOREIGN = re.compile(r"\A\s*%%")
_CALL = re.compile(r"""\bcheck\(\s*["'](\w+)["']""")
#: So many calls of one check are tried, the last ones: a copy may hold thousands.
MOST_CALLS = 4


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One answer to an exercise: what evaluates to the learner's function, and what has to be run before."""

    function: ast.expr
    needs: tuple[Statement, ...]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The attempts by exercise, and the cells that do not even parse."""

    attempts: dict[str, tuple[Attempt, ...]]
    broken: dict[int, tuple[str, str]]  # from the number of a cell to its text and what is wrong
    sources: dict[int, str]  # from the number of a cell to its text as it is run

    def to_dict(self) -> dict:
        """Return what JSON can hold: attempts as an expression, and the cell and place of each statement."""
        exercises = {
            name: {
                "attempts": [
                    {"function": ast.unparse(one.function), "needs": [[s.cell, s.index] for s in one.needs]}
                    for one in attempts
                ],
                "broken": self.broken_cell_of(name),
            }
            for name, attempts in self.attempts.items()
        }
        return {"sources": self.sources, "exercises": exercises}

    def broken_cell_of(self, exercise: str) -> str | None:
        """Say which cell with the function or the check of an exercise does not parse, if one is to blame."""
        word = re.compile(rf"\bdef\s+{exercise}\b|[\"']{exercise}[\"']")
        for cell, (text, problem) in self.broken.items():
            if word.search(text):
                return f"code cell {cell} does not run: {problem}"
        return None


def make_plan(cells: Sequence[str], exercises: Collection[str], expected: Collection[str]) -> Plan:
    """Find the exercises of a notebook.

    Parameters
    ----------
    cells : sequence of str
        The code of a notebook.
    exercises : collection of str
        Names of all exercises; other names in calls of ``check`` are left out.
    expected : collection of str
        Those which a copy of the lesson should have; they are also found by the name of the function alone.
    """
    every: list[Statement] = []
    calls: list[tuple[str, ast.expr, int]] = []
    broken, sources, seen = {}, {}, set()
    for number, text in enumerate(cells, 1):
        sources[number] = plain_python(text)
        try:
            here = statements(ast.parse(sources[number]), number)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
            broken[number] = (text, f"{type(problem).__name__}: {problem}")
            seen |= set(_CALL.findall(text)) & set(exercises)
            continue
        for statement in here:
            found = (call for call in check_calls(statement.node) if call.name in exercises)
            calls += [(call.name, call.function, len(every)) for call in found]
            every.append(statement)
    seen |= {name for name, _, _ in calls}
    defined = {name for statement in every for name in statement.sets}
    attempts = {}
    for name in exercises:
        if name in seen or name in expected:
            places = [(function, at) for called, function, at in calls if called == name][-MOST_CALLS:]
            if name in defined:  # also where the check was deleted, or asks for another name
                places.append((ast.parse(name, mode="eval").body, len(every)))
            attempts[name] = _attempts(every, places)
    return Plan(attempts=attempts, broken=broken, sources=sources)


def _attempts(every: Sequence[Statement], places: Sequence[tuple[ast.expr, int]]) -> tuple[Attempt, ...]:
    """Return each different answer once."""
    found: dict[tuple, Attempt] = {}
    for function, at in places:
        try:
            names = names_read(function)
        except SyntaxError:  # such as `await`, which is at home in its statement only
            continue
        needs = tuple(needed(every[:at], every[at:], names))
        key = (ast.dump(function), tuple(id(statement) for statement in needs))
        found.setdefault(key, Attempt(function=function, needs=needs))
    return tuple(found.values())


def plain_python(text: str) -> str:
    """Return the code of a cell as Python: magics become calls, which no function needs, or are removed.

    Examples
    --------
    >>> plain_python("%%time\\nx = 1")
    'pass\\nx = 1\\n'
    >>> plain_python("%%html\\n<p>")
    ''
    """
    timed = _TIMED.match(text)
    if timed:
        text = "pass\n" + text[timed.end() :]  # a line for a line, so that they keep their numbers
    elif _FOREIGN.match(text):
        return ""
    try:
        from IPython.core.inputtransformer2 import TransformerManager
    except ImportError:
        return "".join(line for line in text.splitlines(keepends=True) if not re.match(r"\s*[%!?]", line))
    return TransformerManager().transform_cell(text)
