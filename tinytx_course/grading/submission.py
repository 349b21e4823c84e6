"""A filled-in notebook as a file: its code cells, and the lesson it is a copy of."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from tinytx_course.lessons import LESSONS

#: A notebook larger than this is no filled-in copy: the published ones stay below a megabyte.
LARGEST_COPY = 20_000_000
#: And than this none in the letters of its code: the published ones stay below 30,000.
LARGEST_CODE = 300_000
_TITLE = re.compile(r"^# (\d\d) · ", re.M)
_FILE = re.compile(r"^(\d\d)_")


@dataclass(frozen=True, kw_only=True)
class Submission:
    """What a learner handed in: code, a text for each cell, and the lesson its title or file name gives."""

    cells: tuple[str, ...]
    lesson: int | None


def read_submission(path: Path) -> Submission:
    """Read a notebook, or a Python file as a notebook of one cell.

    Raises
    ------
    ValueError
        If the file is neither, or has no code.
    FileNotFoundError
        If there is no such file.
    """
    if not path.is_file():
        raise FileNotFoundError(f"a notebook to check must be a file, got {path}")
    if path.is_symlink():  # to somebody else's copy, for instance
        raise ValueError(f"{path.name} must be a file of its own, got a link")
    if path.stat().st_size > LARGEST_COPY:
        raise ValueError(f"a notebook to check must be smaller than {LARGEST_COPY:,} bytes, got {path}")
    is_python = path.suffix == ".py"
    try:
        text = path.read_text(encoding="utf-8")
        as_cell = {"cells": [{"cell_type": "code", "source": text}]}
        content = as_cell if is_python else json.loads(text)
    except (ValueError, RecursionError) as problem:
        what = "an empty file" if not path.stat().st_size else str(problem)
        raise ValueError(
            f"{path.name} must be {'Python in UTF-8' if is_python else 'a Jupyter notebook'}, got {what}"
        ) from None
    cells = _cells(content)
    if cells is None:
        raise ValueError(f"{path.name} must be a Jupyter notebook, got JSON without cells")
    code = tuple(text for kind, text in cells if kind == "code")
    if not any(text.strip() for text in code):
        raise ValueError(f"{path.name} must hold code to check, got no code cell with anything in it")
    if sum(map(len, code)) > LARGEST_CODE:
        raise ValueError(
            f"{path.name} must hold at most {LARGEST_CODE:,} letters of code, got {sum(map(len, code)):,}"
        )
    prose = "\n".join(text for kind, text in cells if kind == "markdown")
    named = [int(number) for number in (*_TITLE.findall(prose), *_FILE.findall(path.name))]
    lesson = next((number for number in named if number < len(LESSONS)), None)  # no other pair of digits
    return Submission(cells=code, lesson=lesson)


def _cells(content: object) -> list[tuple[str, str]] | None:
    """Return (kind, text) of each cell, in format 4 or the older 3; None for what is no notebook."""
    if not isinstance(content, dict):
        return None
    sheets = content.get("worksheets")
    holders = [content] if "cells" in content else sheets if isinstance(sheets, list) else None
    if holders is None:
        return None
    found = []
    for holder in holders:
        cells = holder.get("cells") if isinstance(holder, dict) else None
        for cell in cells if isinstance(cells, list) else []:
            if isinstance(cell, dict):
                text = cell.get("source", cell.get("input", ""))
                lines = [line for line in text if isinstance(line, str)] if isinstance(text, list) else []
                found.append((str(cell.get("cell_type")), text if isinstance(text, str) else "".join(lines)))
    return found
