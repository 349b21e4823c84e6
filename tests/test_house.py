"""Imports go one way, those inside functions included; none goes round. Every file is checked and tested."""

import ast
import doctest
import importlib
import tomllib
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from mypy.config_parser import parse_config_file
from mypy.find_sources import create_source_list
from mypy.options import Options

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
# Examples in docstrings that are run, at least: where no longer collected, they drop without a word.
N_EXAMPLES = {"tinytx": 110, "tinyworld": 30, "tinytx_run": 70, "tinytx_course": 150, "experiments": 11}


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


FILES = {name_of(path): path for room in MAY_USE for path in (ROOT / room).rglob("*.py")}


@cache
def imports_of(module: str, *, inside: bool = True) -> frozenset[str]:
    """Dotted names that a module imports, `inside` functions too, but for what only type checkers read."""
    names: set[str] = set()
    todo: list[ast.AST] = [ast.parse(FILES[module].read_text(encoding="utf-8"))]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} must name packages in full"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            todo += node.orelse
        elif inside or not isinstance(node, ast.FunctionDef):
            todo += ast.iter_child_nodes(node)
    return frozenset(names)


def file_behind(name: str) -> str | None:
    """The file of the project that an imported name lies in."""
    while name and name not in FILES:
        name = name.rpartition(".")[0]
    return name or None


GRAPH = {module: {file_behind(name) for name in imports_of(module)} - {None, module} for module in FILES}


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
    TopologicalSorter(GRAPH).prepare()  # a CycleError names the files of a circle


def test_all_that_names_the_packages_names_the_same():
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    assert list(MAY_USE) == [*PACKAGES, "experiments", "benchmarks"] == tools["mypy"]["files"]
    assert tools["setuptools"]["packages"]["find"]["include"] == [f"{name}*" for name in PACKAGES]
    data = tools["setuptools"]["package-data"]
    assert tuple(data) == PACKAGES and all("py.typed" in patterns for patterns in data.values())
    assert all((ROOT / name / "py.typed").is_file() for name in PACKAGES)
    options = tools["pytest"]["ini_options"]
    assert options["testpaths"] == [*MAY_USE, "tests"] and "--doctest-modules" in options["addopts"]


def test_types_are_checked_in_every_file(monkeypatch):
    monkeypatch.chdir(ROOT)
    options = Options()
    parse_config_file(options, lambda: None, "pyproject.toml")
    read = {Path(source.path) for source in create_source_list(options.files, options)}
    shadowed = {path.with_suffix(".py") for path in read if path.suffix == ".pyi"}  # by its stub
    assert {path.relative_to(ROOT) for path in FILES.values()} <= read | shadowed


def test_no_example_was_lost():
    counts = Counter()
    for module in FILES:
        for test in doctest.DocTestFinder().find(importlib.import_module(module)):
            counts[module.partition(".")[0]] += len(test.examples)
    assert counts >= Counter(N_EXAMPLES), f"lower the number only where a subject went: {counts}"
