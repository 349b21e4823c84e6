"""What a command writes of the README and of docs/: the picture, a verdict, and tables of lessons."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from html import escape
from pathlib import Path

from tinytx_course.building.picture import THEMES, alt_text, draw_picture
from tinytx_course.lessons import course_table, lesson_table
from tinytx_course.results import Results, with_table

_WIDTH = 92  # of a line of code that GitHub shows without scrolling
_PICTURE = "figures/mask-off-{theme}.svg"
_SHOWN = """<picture>
  <source media="(prefers-color-scheme: dark)" srcset="{dark}">
  <img src="{light}" width="830" alt="{alt}">
</picture>"""


def readme_files(root: Path) -> dict[str, str]:
    """Return the README, docs/lessons.md and the two pictures as they should be, by their place."""
    record = Results("mask-off", root / "results").data["seed 0"]
    places = {theme: _PICTURE.format(theme=theme) for theme in THEMES}
    readme = (root / "README.md").read_text(encoding="utf-8")
    parts = {
        "picture": _SHOWN.format(**places, alt=escape(alt_text(record))),
        "verdict": f"```\n{verdict_on(program_in(readme), root)}\n```",
        "courses": course_table("notebooks/", root),
    }
    for name, part in parts.items():
        readme = with_table(readme, name, part)
    lessons = (root / "docs" / "lessons.md").read_text(encoding="utf-8")
    lessons = with_table(lessons, "lessons", lesson_table("../notebooks/", root))
    pictures = {place: draw_picture(record, theme) for theme, place in places.items()}
    return {"README.md": readme, "docs/lessons.md": lessons, **pictures}


def program_in(page: str) -> str:
    """The first Python program of a page in Markdown."""
    found = re.search(r"^```python\n(.*?)^```", page, re.M | re.S)
    if found is None:
        raise ValueError("the README must show a program that begins with ```python, got none")
    return found[1]


def verdict_on(program: str, root: Path) -> str:
    """What a program prints, with long lines broken; it changes nobody's progress."""
    environment = {**os.environ, "TINYTX_PROGRESS": "none", "PYTHONPATH": str(root), "PYTHONUTF8": "1"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, encoding="utf-8")
    return "\n".join(
        textwrap.fill(line, _WIDTH) if len(line) > _WIDTH else line for line in done.stdout.splitlines()
    )
