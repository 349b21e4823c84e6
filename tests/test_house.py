"""Imports go one way: model and world, then text, then training and hf, then the course; none goes round."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("tinytx", "tinytx_course", "experiments", "benchmarks")
MAY_USE = {  # a room -> the rooms of the project that its modules may import at module level
    "tinytx.model": (),
    "tinytx.world": (),
    "tinytx.text": ("tinytx.world",),
    "tinytx.hf": ("tinytx.model", "tinytx.text"),
    "tinytx.training": ("tinytx.model", "tinytx.text", "tinytx.world"),
    "tinytx": ("tinytx",),
    "tinytx_course": ("tinytx",),
    "experiments": ("tinytx", "tinytx_course"),
    "benchmarks": ("tinytx", "tinytx_course"),
}


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


FILES = {name_of(path): path for room in ROOMS for path in (ROOT / room).rglob("*.py")}


def at_module_level(body: list[ast.stmt]):
    """Import statements that run when a module is imported; type-checking blocks do not."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.Try) or (
            isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test)
        ):
            yield from at_module_level(node.body)


def imports_of(module: str) -> set[str]:
    """Modules of the project that a module imports."""
    names = set()
    for node in at_module_level(ast.parse(FILES[module].read_text(encoding="utf-8")).body):
        if isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
        else:
            names |= {alias.name for alias in node.names}
    found = {name if name in FILES else name.rpartition(".")[0] for name in names}
    return {name for name in found if name in FILES and name not in ROOMS} - {module}


GRAPH = {module: imports_of(module) for module in FILES}


def behind(module: str) -> set[str]:
    """All modules that importing one brings with it."""
    seen, todo = set(), [module]
    while todo:
        new = GRAPH[todo.pop()] - seen
        seen |= new
        todo += new
    return seen


@pytest.mark.parametrize("room", MAY_USE)
def test_a_room_uses_only_the_rooms_below_it(room):
    allowed = (room, *MAY_USE[room])
    inside = [module for module in FILES if module.startswith(f"{room}.")]
    used = {name for module in inside for name in GRAPH[module]}
    assert inside
    assert {name for name in used if not f"{name}.".startswith(tuple(f"{r}." for r in allowed))} == set()


def test_no_module_imports_itself_through_others():
    assert [module for module in FILES if module in behind(module)] == []


def test_few_modules_lie_behind_the_training_loop():
    assert len(behind("tinytx.training.loop")) <= 20
