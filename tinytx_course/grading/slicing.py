"""Which statements of a notebook a function needs, so that the rest, training above all, is never run.

A name is followed backwards through the notebook: the statement that gave it its value, the names which that
statement reads, and so on. Names within functions are looked up when they are called, so they count as at the
place of the check.
"""

from __future__ import annotations

import ast
import dis
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import CodeType

_COMPOUND = (ast.If, ast.For, ast.While, ast.Try, ast.With, ast.AsyncFor, ast.AsyncWith)
AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT  # cells may await, as in a notebook
_READS = ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_GLOBALS")


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One statement at the top level of a cell, and the names that it uses."""

    cell: int  # number of the code cell, from 1
    index: int  # in the cell, from 0
    node: ast.stmt
    sets: frozenset[str]  # names whose value comes from it afterwards, whatever they had before
    changes: frozenset[str]  # names whose value it may change
    reads: frozenset[str]  # names it reads while it runs
    calls: frozenset[str]  # names which functions defined in it read later


def statements(tree: ast.Module, cell: int) -> list[Statement]:
    """Return the statements of a cell with what they read and write.

    Raises
    ------
    SyntaxError
        If a statement can be parsed and yet not be run, such as `return` outside a function.
    """
    return [_statement(node, cell, index) for index, node in enumerate(tree.body)]


def names_read(expression: ast.expr) -> frozenset[str]:
    """Return the names an expression needs, those within lambdas included."""
    reads, _, calls = _names(compile(ast.Expression(expression), "<check>", "eval", AWAIT))
    return frozenset(reads | calls)


def _statement(node: ast.stmt, cell: int, index: int) -> Statement:
    reads, writes, calls = _names(compile(ast.Module([node], []), "<cell>", "exec", AWAIT))
    changed = names_changed(node)
    if isinstance(node, _COMPOUND):  # perhaps it writes, perhaps not
        changed, writes = changed | writes, set()
    return Statement(
        cell=cell,
        index=index,
        node=node,
        sets=frozenset(writes),
        changes=frozenset(changed),
        reads=frozenset(reads),
        calls=frozenset(calls),
    )


def _names(code: CodeType) -> tuple[set[str], set[str], set[str]]:
    """Return the names that code reads and writes itself, and those which functions within it read."""
    reads, writes, calls = set(), set(), set()
    for step in dis.get_instructions(code):
        if step.opname in _READS:
            reads.add(str(step.argval))
        elif step.opname in ("STORE_NAME", "STORE_GLOBAL", "DELETE_NAME"):
            writes.add(str(step.argval))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner_reads, _, inner_calls = _names(constant)
            calls |= inner_reads | inner_calls
    return reads, writes, calls


def names_changed(node: ast.stmt) -> set[str]:
    """Return the names of objects that a statement changes in place: ``x[0] = 1``, ``x.append(1)``."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return set()
    found = set()
    for part in ast.walk(node):
        if isinstance(part, (ast.Subscript, ast.Attribute)) and not isinstance(part.ctx, ast.Load):
            found.add(root_name(part))
        called = part.value if isinstance(part, ast.Expr) else None
        if isinstance(called, ast.Call) and isinstance(called.func, ast.Attribute):
            found.add(root_name(called.func))
    return found - {""}


def root_name(node: ast.AST) -> str:
    while isinstance(node, (ast.Subscript, ast.Attribute, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def needed(before: Sequence[Statement], after: Sequence[Statement], names: Iterable[str]) -> list[Statement]:
    """Return the statements that give some names their values, in the order in which they are to be run.

    They come before the line that reads the names; what comes after it is used only for names that are set
    nowhere before, as cells may have been moved.
    """
    chosen, unset = _backwards(before, set(names))
    behind = {name for statement in after for name in statement.sets}
    if unset & behind:
        chosen, _ = _backwards([*after, *before], set(names))
    return chosen


def _backwards(before: Sequence[Statement], wanted: set[str]) -> tuple[list[Statement], set[str]]:
    imports = (s for s in before if isinstance(s.node, (ast.Import, ast.ImportFrom)))
    imported = {name for statement in imports for name in statement.sets}
    touching: dict[str, list[int]] = defaultdict(list)  # where a name is set or changed
    chosen = set()
    for at, statement in enumerate(before):
        for name in statement.sets | (statement.changes - imported):
            touching[name].append(at)
        if isinstance(statement.node, ast.ImportFrom) and statement.node.names[0].name == "*":
            chosen.add(at)
    unset, seen = set(), set()
    sought = [(name, len(before)) for name in wanted]  # names, and before which statement
    while sought:
        name, end = sought.pop()
        nearest = bisect_left(touching[name], end) - 1
        if nearest < 0:
            unset.add(name)
            continue
        at = touching[name][nearest]
        if (name, at) in seen:
            continue
        seen.add((name, at))
        if name not in before[at].sets:
            sought.append((name, at))
        if at not in chosen:
            chosen.add(at)
            sought += [(other, at) for other in before[at].reads | before[at].calls]
            sought += [(other, len(before)) for other in before[at].calls]
    return [before[at] for at in sorted(chosen)], unset
