"""What to run for each exercise of a notebook, found by calls of its check or by the name of a function."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Sequence
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager

from tinytx_course.building.editions import check_calls
from tinytx_course.grading.slicing import Statement, names_read, needed, statements

_TIMED = re.compile(r"\A\s*%%(time|timeit|capture|prun|debug)\b.*\n?")
_WRITTEN = re.compile(r"\A\s*%%(?:writefile|file)[ \t]+(-a[ \t]+)?(\S.*?)[ \t]*(?:\n|\Z)")
_FOREIGN = re.compile(r"\A\s*%%")
_RUN = re.compile(r"(?m)^%run(?: -\w+)* +([\w./-]+\.py)[ \t]*$")
_CALL = re.compile(r"""\bcheck\(\s*["'](\w+)["']""")
#: So many calls of one check are tried, the last ones: a copy may hold thousands.
MOST_CALLS = 4


def make_plan(cells: Sequence[str], exercises: Collection[str], expected: Collection[str]) -> dict[str, Any]:
    """Find exercises in the code cells of a notebook; other names in calls of ``check`` are left out.

    Those `expected` in a copy of the lesson are also found by the name of the function alone.

    Returns
    -------
    dict
        What JSON can hold: ``sources``, the cells as they are run, by number; ``order``, cell and place of
        every statement; and ``exercises`` by name: ``attempts``, each with an expression for the
        ``function``, the statements that it ``needs`` and ``at``, how many of all come before it; and
        ``broken``, which says what cell does not parse, if one is to blame.
    """
    every: list[Statement] = []
    calls: list[tuple[str, ast.expr, int]] = []
    broken, sources, seen = [], {}, set()
    for number, text in enumerate(cells, 1):
        sources[number] = plain_python(text)
        try:
            here = statements(ast.parse(sources[number]), number)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
            said = f"code cell {number} does not run: {type(problem).__name__}: {problem}"
            broken.append((text, said))
            seen |= set(_CALL.findall(text)) & set(exercises)
            continue
        for statement in here:
            found = (call for call in check_calls(statement.node) if call.name in exercises)
            calls += [(call.name, call.function, len(every)) for call in found]
            every.append(statement)
    seen |= {name for name, _, _ in calls}
    defined = {name for statement in every for name in statement.sets}
    plans = {}
    for name in (name for name in exercises if name in seen or name in expected):
        places = [(function, at) for called, function, at in calls if called == name][-MOST_CALLS:]
        if name in defined:  # also where the check was deleted, or asks for another name
            places.append((ast.parse(name, mode="eval").body, len(every)))
        word = re.compile(rf"\bdef\s+{name}\b|[\"']{name}[\"']")
        blame = next((said for text, said in broken if word.search(text)), None)
        plans[name] = {"attempts": _attempts(every, places), "broken": blame}
    order = [[one.cell, one.index] for one in every]
    return {"sources": sources, "order": order, "exercises": plans}


def _attempts(every: Sequence[Statement], places: Sequence[tuple[ast.expr, int]]) -> list[dict[str, Any]]:
    """Return each different answer once."""
    found: list[dict[str, Any]] = []
    for function, at in places:
        needs = [[one.cell, one.index] for one in needed(every[:at], every[at:], names_read(function))]
        alike = {"function": ast.unparse(function), "needs": needs}
        if not any(one.items() >= alike.items() for one in found):
            found.append(alike | {"at": at})
    return found


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
    elif written := _WRITTEN.match(text):
        name, how = written[2].strip("\"'"), "a" if written[1] else "w"
        folder = f"__import__('pathlib').Path({name!r}).parent.mkdir(parents=True, exist_ok=True)"
        return f"{folder}\nopen({name!r}, {how!r}, encoding='utf-8').write({text[written.end() :]!r})"
    elif _FOREIGN.match(text):
        return ""
    text = re.sub(r"(?m)^([ \t]*)%time[ \t]+(?=\S)", r"\1", text)  # of a statement, which is run all the same
    text = _RUN.sub(r"exec(open(r'\1', encoding='utf-8').read(), globals())", text)
    text = re.sub(r"(?m)^(?=(pip|conda) install )", "%", text)  # Jupyter takes it for a magic, too
    return TransformerManager().transform_cell(text)
