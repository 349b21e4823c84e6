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
    "Verdict": "exercises.verdict",
    "check": "exercises.checking",
    "plots": "plots",
    "quiz": "quizzes.quiz",
    "widgets": "widgets",
}

__all__ = ["Verdict", "check", "quiz"]


def __getattr__(name: str) -> Any:
    """Import a public name on first use (PEP 562) and remember it."""
    if name not in _HOME:
        raise AttributeError(f"module 'tinytx_course' has no attribute {name!r}")
    module = importlib.import_module(f"tinytx_course.{_HOME[name]}")
    globals()[name] = module if name == _HOME[name] else getattr(module, name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
