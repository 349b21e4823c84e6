"""Lesson 07, your own GPT: the two files next to the notebooks that hold a whole GPT."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

from tinytx_course.lessons import course_file


def gpt_file(name: str) -> Path:
    """Return the path of ``notebooks/NAME.py``, such as that of ``gpt_one_page``."""
    return course_file(f"notebooks/{name}.py")


def gpt_module(name: str) -> ModuleType:
    """Import ``notebooks/NAME.py``; what it does on the command line is not done."""
    spec = importlib.util.spec_from_file_location(name, gpt_file(name))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
