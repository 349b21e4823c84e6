"""Start the process that checks a copy, walled in as far as the machine allows, and read its answers."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinytx_course.exercises import EXERCISES
from tinytx_course.grading.grades import CopyGrades, Grade
from tinytx_course.grading.jail import end_with_parent
from tinytx_course.grading.submission import Submission

_WALLS = ("--user", "--map-root-user", "--net", "--mount", "--ipc", "--pid", "--fork", "--kill-child")
_FOLDER_MEBIBYTES = 128
#: For starting Python and importing torch on a busy machine.
_START_SECONDS = 120.0
_LONGEST_TALK = 2**20  # bytes; each answer is cut far below it
_PACKAGE = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What checking one exercise may take.

    Parameters
    ----------
    seconds : float
        Of time on the clock, and of processor time.
    mebibytes : int
        Of memory beyond what torch takes when it is loaded.
    """

    seconds: float = 20.0
    mebibytes: int = 2048

    def __post_init__(self) -> None:
        if not 1 <= self.seconds <= 3600:
            raise ValueError(f"seconds must lie between 1 and 3600, got {self.seconds}")
        if not 64 <= self.mebibytes <= 2**20:
            raise ValueError(f"memory must lie between 64 and {2**20} MiB, got {self.mebibytes}")


@functools.cache
def walls() -> bool:
    """Tell whether this machine lets us make the namespaces that :mod:`enclose` needs."""
    if shutil.which("unshare") is None:
        return False
    with tempfile.TemporaryDirectory(prefix="tinytx-check-") as folder:
        program = "import os; open('x', 'w').close(); os._exit(os.access('..', os.W_OK) or os.getpid() != 1)"
        command = _command(folder, [sys.executable, "-I", "-c", program], enclosed=True)
        try:
            done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            return False
        return done.returncode == 0 and not os.listdir(folder)


def _command(folder: str, program: list[str], *, enclosed: bool) -> list[str]:
    if not enclosed:
        return program
    enclose = str(Path(__file__).with_name("enclose.py"))
    return ["unshare", *_WALLS, sys.executable, "-I", enclose, folder, str(_FOLDER_MEBIBYTES), *program]


def _environment(folder: str) -> dict[str, str]:
    """Return what learners' code may know of the machine: enough to run Python, nothing of ours."""
    kept = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SYSTEMROOT")
    return {name: os.environ[name] for name in kept if name in os.environ} | {
        "PYTHONPATH": str(_PACKAGE),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        "MPLBACKEND": "agg",
        "MPLCONFIGDIR": folder,
        "IPYTHONDIR": folder,
        "HOME": folder,
        "TMPDIR": folder,
        "TEMP": folder,
        "TMP": folder,
        "CUDA_VISIBLE_DEVICES": "",
        "TINYTX_BUDGET": "smoke",
    }


def _ask(job: dict[str, Any], seconds: float, enclosed: bool) -> list[Any]:
    """Run one worker and return the values on its lines, as many as it came to say."""
    with (
        tempfile.TemporaryFile() as said,  # not a pipe: limits on files hold for it
        tempfile.TemporaryDirectory(prefix="tinytx-check-", ignore_cleanup_errors=True) as folder,
    ):
        folder = os.path.realpath(folder)
        program = [sys.executable, "-m", "tinytx_course.grading.worker"]
        process = subprocess.Popen(
            _command(folder, program, enclosed=enclosed),
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=_environment(folder),
            text=True,
            encoding="utf-8",
            start_new_session=True,
            preexec_fn=end_with_parent if sys.platform == "linux" else None,
        )
        try:
            process.communicate(json.dumps({**job, "folder": folder}), timeout=seconds)
        except subprocess.TimeoutExpired:
            _end(process)
        except BaseException:
            _end(process)
            raise
        said.seek(0)
        text = said.read(_LONGEST_TALK)
    lines = []
    for line in text.splitlines():
        try:
            lines.append(json.loads(line))
        except (ValueError, RecursionError):
            break
    return lines


def _end(process: subprocess.Popen) -> None:
    """Kill a worker with what belongs to it, and wait until it is gone."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


def grade_submission(
    submission: Submission,
    name: str,
    *,
    limits: Limits | None = None,
    enclosed: bool | None = None,
    fork: bool = sys.platform == "linux",
) -> CopyGrades:
    """Check every exercise of a copy.

    Parameters
    ----------
    submission : Submission
        What was handed in.
    name : str
        What to call it.
    limits : Limits, optional
        For each exercise.
    enclosed : bool, optional
        Whether to use namespaces; where the machine allows them, unless told otherwise.
    fork : bool
        Whether one process may try all exercises, each in a child; else each gets a process of its own.

    Returns
    -------
    CopyGrades
    """
    limits = Limits() if limits is None else limits
    expected = [key for key, exercise in EXERCISES.items() if exercise.lesson == submission.lesson]
    job = {
        "cells": submission.cells,
        "expected": expected,
        "seconds": limits.seconds,
        "mebibytes": limits.mebibytes,
        "fork": fork,
        "only": None if fork else [],
    }
    enclosed = walls() if enclosed is None else enclosed
    n_limited = 1 + (len(EXERCISES) if fork else 0)  # reading the notebook is one
    lines = _ask(job, _START_SECONDS + n_limited * (limits.seconds + 1), enclosed)
    if not lines:
        told = "the notebook could not be read: its cells end the reader, or take too much time or memory"
        return CopyGrades(name=name, problem=told)
    try:
        plan, n_found = _plan_of(lines[0])
        if not n_found:
            return CopyGrades(name=name, problem='no exercises found: no call of course.check("...", ...)')
        found = _grades_of(lines, plan) if fork else _one_by_one(job, plan, limits, enclosed)
    except (TypeError, ValueError) as problem:
        return CopyGrades(name=name, problem=f"its code wrote into the answers of the checker: {problem}")
    crash = {"status": "failed", "mistake": "crash"}
    return CopyGrades(name=name, grades=tuple(found.get(key) or Grade(exercise=key, **crash) for key in plan))


def _plan_of(line: Any) -> tuple[list[str], int]:
    """Return the exercises of a copy, and how many answers were found."""
    plan = line.get("plan") if isinstance(line, dict) else None
    if not isinstance(plan, list) or not all(name in list(EXERCISES) for name in plan):
        raise ValueError(f"the first line must name exercises, got {line!r:.80}")
    return plan, line.get("found")


def _grades_of(lines: list[Any], wanted: Iterable[str]) -> dict[str, Grade]:
    """Return the grades by exercise.

    Raises
    ------
    TypeError, ValueError
        If a line is no grade, or not of a wanted exercise, or the second of one.
    """
    grades = [Grade(**line) for line in lines[1:] if line != {"done": True}]
    found = {grade.exercise: grade for grade in grades}
    if len(found) < len(grades) or not found.keys() <= set(wanted):
        raise ValueError(
            f"a grade must come for each exercise once, got {len(grades)} for {', '.join(found)}"
        )
    return found


def _one_by_one(job: dict[str, Any], plan: list[str], limits: Limits, enclosed: bool) -> dict[str, Grade]:
    found: dict[str, Grade] = {}
    for key in plan:
        lines = _ask({**job, "only": [key]}, _START_SECONDS + limits.seconds, enclosed)
        found |= _grades_of(lines, [key])
    return found
