"""tinytx: a small transformer to learn from, in PyTorch.

>>> import tinytx as tx
>>> model = tx.LanguageModel(tx.PRESETS["tiny"])

The public names are those of `__init__.pyi`, which type checkers read too. Each is imported when first used,
so that ``import tinytx`` alone costs next to nothing.
"""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

__version__ = "0.1.0"

_STUB = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_HOME = {name: module for module, name in re.findall(r"^from (\S+) import (\w+)", _STUB, re.MULTILINE)}

__all__ = sorted(_HOME)


class _Package(ModuleType):
    """Python sets each imported file in its package; here `tx.attention` stays the function of that name."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    """Import a public name on first use (PEP 562) and remember it."""
    if name not in _HOME:
        import difflib

        near = difflib.get_close_matches(name, _HOME, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise AttributeError(f"module 'tinytx' has no attribute {name!r}{hint}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
