"""Lesson 07, your own GPT: the files next to the notebooks that hold a whole GPT."""

from __future__ import annotations

from pathlib import Path

from tinytx_course.lessons import course_file


def gpt_file(name: str) -> Path:
    """Return the path of ``notebooks/NAME.py``, such as that of ``gpt_one_page``."""
    return course_file(f"notebooks/{name}.py")
