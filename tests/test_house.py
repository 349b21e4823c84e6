"""Imports go one way, those inside functions included; none goes round."""

import ast
from functools import cache
from pathlib import Path

import pytest

from tinytx_course import PACKAGES

ROOT = Path(__file__).resolve().parents[1]
MAY_USE = {  # a folder -> the folders of the project that its files may import
    "tinytx": (),
    "tinyworld": (),
    "tinytx_run": ("tinytx", "tinyworld"),
    "tinytx_course": ("tinytx", "tinyworld", "tinytx_run"),
    "experiments": PACKAGES,
    "benchmarks": PACKAGES,
}


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


FILES = {name_of(path): path for room in MAY_USE for path in (ROOT / room).rglob("*.py")}


def at_module_level(body: list[ast.stmt]):
    """Import statements that run when a module is imported; type-checking blocks do not."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.Try) or (
            isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test)
        ):
            yield from at_module_level(node.body)


def names_in(nodes) -> set[str]:
    """Dotted names that import statements ask for."""
    names = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


@cache
def imports_of(module: str) -> set[str]:
    """All that a module imports, wherever in its text, but for names that only type checkers read."""
    tree = ast.parse(FILES[module].read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = []
    return names_in(ast.walk(tree))


def file_behind(name: str) -> str | None:
    """The file of the project that an imported name lies in."""
    while name and name not in FILES:
        name = name.rpartition(".")[0]
    return name or None


GRAPH = {module: {file_behind(name) for name in imports_of(module)} - {None, module} for module in FILES}


def circles() -> list[list[str]]:
    """Groups of files that import each other, directly or through others."""

    def behind(module: str) -> set[str]:
        seen, todo = set(), [module]
        while todo:
            new = GRAPH[todo.pop()] - seen
            seen |= new
            todo += new
        return seen

    reach = {module: behind(module) for module in GRAPH}
    groups = {frozenset(other for other in reach[m] if m in reach[other]) for m in GRAPH if m in reach[m]}
    return sorted(map(sorted, groups))


@pytest.mark.parametrize("room", MAY_USE)
def test_a_package_uses_only_the_packages_below_it(room):
    allowed = {room, *MAY_USE[room]}
    ours = {*MAY_USE, "tests"}
    used = {
        (module, name)
        for module in FILES
        if module.partition(".")[0] == room
        for name in imports_of(module)
        if name.partition(".")[0] in ours - allowed
    }
    assert used == set()


def test_no_file_imports_itself_through_others():
    assert circles() == []
