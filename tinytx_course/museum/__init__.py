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

_HOME = {
    "FAULTS": "faults",
    "PATIENTS": "faults",
    "TESTS": "examining",
    "as_text": "evidence",
    "checklist": "printed",
    "collect": "evidence",
    "diagnose": "diagnosing",
    "draw": "evidence",
    "examine": "examining",
    "healthy": "patients",
    "order": "diagnosing",
    "patient": "patients",
    "price_list": "diagnosing",
    "room": "evidence",
    "separation": "diagnosing",
    "shown": "diagnosing",
    "spent": "diagnosing",
    "stored_results": "diagnosing",
    "told_apart": "diagnosing",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    """Import a name on first use (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module 'tinytx_course.museum' has no attribute {name!r}")
    return getattr(importlib.import_module(f"tinytx_course.museum.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
