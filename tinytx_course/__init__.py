"""The course around `tinytx`: exercises that name the mistake, quizzes, explorers and figures.

>>> import tinytx_course as course
>>> course.Verdict.__name__
'Verdict'

The public names are those of `__init__.pyi`, which type checkers read too. Each is imported when first used.
"""

from __future__ import annotations

import importlib
import re
import threading
from pathlib import Path
from typing import Any

PACKAGES = ("tinytx", "tinyworld", "tinytx_run", "tinytx_course")  # all that the distribution installs

_STUB = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_HOME = {name: module for module, name in re.findall(r"^from (\S+) import (\w+)", _STUB, re.MULTILINE)}

__all__ = sorted(name for name, home in _HOME.items() if home != __name__)  # functions, not modules

# Of two threads, one in a package and one in a module of it, Python hands one a half-imported module.
_ONE_AT_A_TIME = threading.RLock()


def __getattr__(name: str) -> Any:
    """Import a public name on first use (PEP 562) and remember it."""
    if name not in _HOME:
        raise AttributeError(f"module 'tinytx_course' has no attribute {name!r}")
    with _ONE_AT_A_TIME:
        if _HOME[name] == __name__:
            globals()[name] = importlib.import_module(f"{__name__}.{name}")
        else:
            globals()[name] = getattr(importlib.import_module(_HOME[name]), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
