"""Where a notebook calls its checkers: ``tx.check("causal_mask", causal_mask)``."""

import ast
from dataclasses import dataclass


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
    >>> [call.name for call in check_calls(ast.parse('v = tx.check("attention", mine)'))]
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
