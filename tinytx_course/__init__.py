"""The course around `tinytx`: exercises that name the mistake, quizzes, explorers and figures.

>>> import tinytx_course as course
>>> course.Verdict.__name__
'Verdict'

Names are imported when first used.
"""

from __future__ import annotations

import importlib
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinytx_course import plots, widgets  # noqa: F401  (modules, so not among the names of a star import)
    from tinytx_course.exercises.checking import check
    from tinytx_course.exercises.practice import practise
    from tinytx_course.exercises.using import use
    from tinytx_course.exercises.verdict import Verdict
    from tinytx_course.museum.diagnosing import diagnose
    from tinytx_course.progress.predictions import predict, resolve
    from tinytx_course.progress.recalling import recall
    from tinytx_course.progress.status import reset, status
    from tinytx_course.quizzes.quiz import quiz
    from tinytx_course.terms import glossary
    from tinytx_course.widgets.parsons import parsons

PACKAGES = ("tinytx", "tinyworld", "tinytx_run", "tinytx_course")  # all that the distribution installs

_HOME = {
    "Verdict": "exercises.verdict",
    "check": "exercises.checking",
    "diagnose": "museum.diagnosing",
    "glossary": "terms",
    "parsons": "widgets.parsons",
    "plots": "plots",
    "practise": "exercises.practice",
    "predict": "progress.predictions",
    "quiz": "quizzes.quiz",
    "recall": "progress.recalling",
    "reset": "progress.status",
    "resolve": "progress.predictions",
    "status": "progress.status",
    "use": "exercises.using",
    "widgets": "widgets",
}

__all__ = [
    "Verdict",
    "check",
    "diagnose",
    "glossary",
    "parsons",
    "practise",
    "predict",
    "quiz",
    "recall",
    "reset",
    "resolve",
    "status",
    "use",
]

# Of two threads, one in a package and one in a module of it, Python hands one a half-imported module.
_ONE_AT_A_TIME = threading.RLock()


def __getattr__(name: str) -> Any:
    """Import a public name on first use (PEP 562) and remember it."""
    if name not in _HOME:
        raise AttributeError(f"module 'tinytx_course' has no attribute {name!r}")
    with _ONE_AT_A_TIME:
        module = importlib.import_module(f"tinytx_course.{_HOME[name]}")
        globals()[name] = module if name == _HOME[name] else getattr(module, name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
