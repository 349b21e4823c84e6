"""Solutions as people write them, right and wrong, against which the checkers are tried."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from textwrap import dedent
from typing import Any

Function = Callable[..., Any]
SOLUTIONS: list[Solution] = []


@dataclass(frozen=True)
class Solution:
    """One solution.

    Attributes
    ----------
    exercise, name : str
    function : callable
    slug : str or None
        The mistake it makes; None for a right one.
    """

    exercise: str
    name: str
    function: Function
    slug: str | None


def of(exercise: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Decorators that enter right solutions of an exercise, and wrong ones with the slug of their mistake.

    One expression is handed over, `wrong("not-scaled", lambda q, k: q @ k.mT)`; what differs from another
    solution in a place or two is that one and its changes, `wrong("clip-missing", step, {old: new})`.
    """
    return partial(_enter, exercise, None), partial(_wrong, exercise)


def _wrong(exercise: str, slug: str, *solution: Any) -> Any:
    return _enter(exercise, slug, *solution) if solution else partial(_enter, exercise, slug)


def _enter(exercise: str, slug: str | None, function: Function, changes: Mapping[str, str] = {}) -> Function:
    name = function.__name__
    if changes:
        function = _changed(function, changes)
        name = f"{name} with {' and '.join(new or 'less' for new in changes.values())}"
    elif name == "<lambda>":
        name = f"{Path(inspect.getfile(function)).name}:{function.__code__.co_firstlineno}"
    SOLUTIONS.append(Solution(exercise, name, function, slug))
    return function


def _changed(function: Function, changes: Mapping[str, str]) -> Function:
    source = dedent(inspect.getsource(function))
    source = source[source.index("def ") :]
    for old, new in changes.items():
        if source.count(old) != 1:
            raise ValueError(f"a change must replace what occurs once, got {old!r} in {function.__name__}")
        source = source.replace(old, new)
    space: dict[str, Any] = {}
    exec(compile(source, f"<{function.__name__}>", "exec"), function.__globals__, space)
    return space[function.__name__]
