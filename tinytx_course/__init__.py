"""The course around `tinytx`: exercises that name the mistake, quizzes, explorers and figures.

>>> import tinytx_course as course
>>> course.Verdict.__name__
'Verdict'

Names are imported when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinytx_course import plots, widgets  # noqa: F401  (modules, so not among the names of a star import)
    from tinytx_course.exercises.checking import check
    from tinytx_course.exercises.verdict import Verdict
    from tinytx_course.quizzes.quiz import quiz

_HOME = {
    "Verdict": "tinytx_course.exercises.verdict",
    "check": "tinytx_course.exercises.checking",
    "quiz": "tinytx_course.quizzes.quiz",
}
_MODULES = ("plots", "widgets")

__all__ = ["Verdict", "check", "quiz"]


def __getattr__(name: str) -> Any:
    """Import a public name on first use (PEP 562) and remember it."""
    value: Any
    if name in _MODULES:
        value = importlib.import_module(f"tinytx_course.{name}")
    elif name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
    else:
        raise AttributeError(f"module 'tinytx_course' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *_MODULES})
