"""The file ``progress.json``: read, changed in one atomic step, and never a reason for a lesson to stop.

It is in ``work/`` next to the learner's copies. The environment variable ``TINYTX_PROGRESS`` names another
file; with ``TINYTX_PROGRESS=none`` nothing is read or written, and what a process records ends with it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from tinytx_course.lessons import project_root
from tinytx_run.files import json_bytes, locked, make_folder, read_json, temporary, write_file

VARIABLE = "TINYTX_PROGRESS"
NOWHERE = "none"
#: Its parts: by the name of an exercise, the number of a prediction, and ``slug/key`` of a question.
PARTS = ("exercises", "predictions", "questions")

Entry = dict[str, Any]


class Record:
    """What was done, by part and name; in memory alone where no file is named, or it cannot be used."""

    def __init__(self, file: Path | None = None) -> None:
        self.file = file
        self._content: dict[str, dict[str, Entry]] = {part: {} for part in PARTS}

    def part(self, part: str) -> dict[str, Entry]:
        """Return the entries of one part by name."""
        self._safely(self._load)
        return dict(self._content[part])

    def entry(self, part: str, name: str) -> Entry:
        """Return one entry, or an empty one."""
        return dict(self.part(part).get(name, {}))

    def change(self, part: str, name: str, entry: Entry | None) -> None:
        """Store an entry, or remove it; other processes may change other entries meanwhile."""
        self._safely(lambda: self._write(part, name, entry))
        if self.file is None:
            self._set(part, name, entry)

    def _set(self, part: str, name: str, entry: Entry | None) -> None:
        self._content[part].pop(name, None)
        if entry is not None:
            self._content[part][name] = entry

    def _write(self, part: str, name: str, entry: Entry | None) -> None:
        assert self.file is not None
        make_folder(self.file.parent)
        with locked(temporary(self.file, ".lock"), 5.0, f"{self.file} is in use by another process"):
            self._load()
            self._set(part, name, entry)
            write_file(self.file, json_bytes(self._content))

    def _load(self) -> None:
        assert self.file is not None
        content = read_json(self.file) if self.file.exists() else {}
        parts = {part: content.get(part, {}) for part in PARTS}
        for part, entries in parts.items():
            if not isinstance(entries, dict) or not all(isinstance(e, dict) for e in entries.values()):
                raise ValueError(f"{self.file} must hold objects in {part!r}, got something else")
        self._content = parts

    def _safely(self, step: Callable[[], None]) -> None:
        """Do a step with the file; where it fails, say so in one line and go on in memory."""
        if self.file is None:
            return
        try:
            step()
        except (OSError, ValueError) as problem:
            line = f"No progress is stored: {problem}. Mend or delete the file and restart the kernel."
            print(line.replace("\n", " "), file=sys.stderr)
            self.file = None


@cache
def _record(place: str | None) -> Record:
    if place == NOWHERE:
        return Record()
    if place:
        return Record(Path(place).expanduser().absolute())
    try:
        return Record(project_root() / "work" / "progress.json")
    except ValueError:  # installed without the notebooks
        return Record(Path.cwd() / "progress.json")


def record() -> Record:
    """Return the record of this learner, as ``TINYTX_PROGRESS`` says."""
    return _record(os.environ.get(VARIABLE) or None)
