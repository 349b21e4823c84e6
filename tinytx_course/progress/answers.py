"""The learner's functions that passed, each a small module ``answers/NAME.py`` next to the progress file.

It holds the source of the function, and before it the imports, plain values and helpers that it uses.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import linecache
import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from tinytx_course.grading.slicing import statements
from tinytx_course.progress.record import record
from tinytx_run.files import make_folder, write_file

#: Modules to look in for what does not name its own, such as the functions that torch compiled.
_HOMES = ("torch", "torch.nn.functional", "math", "operator")


def answer_file(name: str) -> Path | None:
    """Return where the learner's function for an exercise is stored; None without a progress file."""
    file = record().file
    return None if file is None else file.parent / "answers" / f"{name}.py"


def store_answer(name: str, function: Callable[..., Any]) -> None:
    """Store a function that passed; where that fails, say so in one line on stderr."""
    file = answer_file(name)
    if file is None:
        return
    try:
        content = source_of(name, function).encode()
        make_folder(file.parent)
        write_file(file, content)
    except (OSError, ValueError) as problem:
        print(f"No lesson can use your {name}: {problem}.", file=sys.stderr)


def source_of(name: str, function: Callable[..., Any]) -> str:
    """Return a module that gives `name` the value of a function, with all that this uses.

    Raises
    ------
    ValueError
        If it has no source of its own, uses a value that no line of source makes, such as a tensor, or if one
        name would mean two things.
    """
    if not isinstance(function, FunctionType):
        raise ValueError(f"a function to be stored must be written with `def`, got {function!r:.80}")
    pieces: dict[str, str] = {}
    _collect(name, function, function.__module__, pieces, {})
    return "from __future__ import annotations\n\n" + "\n\n".join(pieces.values())


def _collect(name: str, value: Any, home: str, pieces: dict[str, str], seen: dict[str, Any]) -> None:
    """Add the statements that give `name` its value, those that they need first."""
    if name in seen:
        if seen[name] is not value:  # as of a helper that has the name of the exercise
            raise ValueError(f"a name must mean one thing, got two things called {name}: rename one")
        return
    seen[name] = value
    if isinstance(value, FunctionType | type) and value.__module__ in (home, "__main__"):
        source, needs = _definition(value)
        scope = _scope(value)
        for other in sorted(needs & scope.keys()):
            _collect(other, scope[other], home, pieces, seen)
        pieces[name] = source if value.__name__ == name else f"{source}\n\n{name} = {value.__name__}\n"
    else:
        pieces[name] = _statement(name, value)


def _definition(value: FunctionType | type) -> tuple[str, frozenset[str]]:
    """Return the source of a function or class, and the names that it reads."""
    try:
        source = (
            _class_source(value) if isinstance(value, type) else textwrap.dedent(inspect.getsource(value))
        )
        (statement,) = statements(ast.parse(source), 0)
    except (OSError, TypeError, SyntaxError, ValueError, StopIteration):
        raise ValueError(f"what is stored must have a source, got none of {value.__name__}") from None
    if value.__name__ not in statement.sets:
        raise ValueError(f"a function to be stored must be written with `def`, got {value.__name__}")
    return source, statement.reads | statement.calls


def _class_source(value: type) -> str:
    """Return the source of a class, found in the cell of one of its methods: `inspect` asks for a file."""
    method = next(each for each in vars(value).values() if isinstance(each, FunctionType))
    text = "".join(linecache.getlines(method.__code__.co_filename))
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)]
    return ast.unparse(next(node for node in nodes if node.name == value.__name__))


def _scope(value: FunctionType | type) -> Mapping[str, Any]:
    """Return what names mean where a function or class was written."""
    if isinstance(value, type):
        return vars(sys.modules[value.__module__])
    cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
    return {**value.__globals__, **{name: cell.cell_contents for name, cell in cells}}


def _statement(name: str, value: Any) -> str:
    """Return one line that gives `name` a value: an import, or a plain value written out."""
    if isinstance(value, ModuleType):
        return f"import {value.__name__} as {name}\n"
    own = getattr(value, "__name__", name)
    for home in (getattr(value, "__module__", None), *_HOMES):
        if home and getattr(sys.modules.get(home), own, None) is value:
            return f"from {home} import {own} as {name}\n"
    if isinstance(value, float):  # infinity has no literal
        return f"{name} = float({str(value)!r})\n"
    with contextlib.suppress(ValueError, SyntaxError, TypeError):
        if ast.literal_eval(repr(value)) == value:
            return f"{name} = {value!r}\n"
    kind = type(value).__name__
    raise ValueError(f"what it uses must be modules, functions and plain values, got {name}, a {kind}")
