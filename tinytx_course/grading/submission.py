"""A filled-in notebook as a file: its code cells, and the lesson it is a copy of."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinytx_course.lessons import LESSONS

#: A notebook with its outputs; larger ones would take gigabytes of memory to read.
LARGEST_COPY = 64_000_000
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
        words = f"a notebook to check must be smaller than {LARGEST_COPY:,} bytes, got {path.name}"
        raise ValueError(f"{words}: only code is read, so clear its outputs and save it")
    kind = "Python in UTF-8" if path.suffix == ".py" else "a Jupyter notebook"
    try:
        text = path.read_text(encoding="utf-8-sig")
        as_cell: dict[str, Any] = {"cells": [{"cell_type": "code", "source": text}]}
        content = as_cell if path.suffix == ".py" else json.loads(text)
    except (ValueError, RecursionError) as problem:
        what = f"another file ({problem})" if path.stat().st_size else "an empty file"
        raise ValueError(f"{path.name} must be {kind}, got {what}") from None
    if not isinstance(content, dict) or "cells" not in content:
        raise ValueError(f"{path.name} must be a Jupyter notebook, got JSON without cells")
    listed = content["cells"] if isinstance(content["cells"], list) else []
    cells = [cell for cell in listed if isinstance(cell, dict)]
    code = tuple(_text(cell) for cell in cells if cell.get("cell_type") == "code")
    if not any(text.strip() for text in code):
        raise ValueError(f"{path.name} must hold code to check, got no code cell with anything in it")
    if (n_letters := sum(map(len, code))) > LARGEST_CODE:
        raise ValueError(f"{path.name} must hold at most {LARGEST_CODE:,} letters of code, got {n_letters:,}")
    prose = "\n".join(_text(cell) for cell in cells if cell.get("cell_type") == "markdown")
    named = [int(number) for number in (*_TITLE.findall(prose), *_FILE.findall(path.name))]
    lesson = next((number for number in named if number < len(LESSONS)), None)  # no other pair of digits
    return Submission(cells=code, lesson=lesson)


def _text(cell: dict[str, object]) -> str:
    text = cell.get("source", "")
    lines = text if isinstance(text, list) else [text]
    return "".join(line for line in lines if isinstance(line, str))


def in_utf8(text: str) -> str:
    """Return a text that any output can hold: a byte of a file name that is no UTF-8 becomes `?`."""
    return text.encode(errors="replace").decode()


def printable(text: str) -> str:
    """Return a text on one line, without what could steer a terminal."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in in_utf8(text)).split())


def spelled_alike(name: str) -> str:
    """What names have in common that differ in case, white space or the way accents are encoded."""
    return unicodedata.normalize("NFC", printable(name)).casefold()
