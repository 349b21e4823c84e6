"""The bug museum: models with one line wrong, the tests that find it, and the diagnosis.

``program.py`` is what all of them run, ``faults.toml`` has the edits, ``patients.py`` trains,
``examining.py`` has the tests, ``evidence.py`` draws, ``diagnosing.py`` judges, ``printed.py`` prints.

>>> from tinytx_course import museum
>>> museum.patient(3)
patient 3 (translator, seed 0)
"""

from __future__ import annotations

import importlib
from typing import Any

_NAMES = {
    "diagnosing": "diagnose order price_list separation shown spent stored_results told_apart",
    "evidence": "as_text collect draw room",
    "examining": "TESTS examine",
    "faults": "FAULTS PATIENTS",
    "patients": "healthy patient",
    "printed": "checklist",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    """Import a name on first use (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module 'tinytx_course.museum' has no attribute {name!r}")
    return getattr(importlib.import_module(f"tinytx_course.museum.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
