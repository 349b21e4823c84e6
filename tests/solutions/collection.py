"""Solutions as people write them, right and wrong, against which the checkers are tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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


def right(exercise: str) -> Callable[[Function], Function]:
    """Enter a right solution."""
    return _entering(exercise, None)


def wrong(exercise: str, slug: str) -> Callable[[Function], Function]:
    """Enter a wrong solution with the slug that its mistake should be given."""
    return _entering(exercise, slug)


def _entering(exercise: str, slug: str | None) -> Callable[[Function], Function]:
    def enter(function: Function) -> Function:
        SOLUTIONS.append(Solution(exercise, function.__name__, function, slug))
        return function

    return enter
