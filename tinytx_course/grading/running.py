"""Start the process that checks a copy, walled in as far as the machine allows, and read its answers."""

from __future__ import annotations

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
from tinytx_course.grading.submission import Submission

_WALLS = ("--user", "--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child")
_FOLDER_MEBIBYTES = 128
#: For starting Python and importing torch on a busy machine.
_START_SECONDS = 120.0
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


def _ask(job: dict[str, Any], seconds: float, enclosed: bool) -> list[dict[str, Any]]:
    """Run one worker and return its lines, as many as it came to say."""
    with tempfile.TemporaryDirectory(prefix="tinytx-check-", ignore_cleanup_errors=True) as folder:
        folder = os.path.realpath(folder)
        program = [sys.executable, "-m", "tinytx_course.grading.worker"]
        process = subprocess.Popen(
            _command(folder, program, enclosed=enclosed),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=_environment(folder),
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        try:
            said, _ = process.communicate(json.dumps({**job, "folder": folder}), timeout=seconds)
        except subprocess.TimeoutExpired:
            _end(process)
            said, _ = process.communicate()
        except BaseException:
            _end(process)
            raise
    lines = []
    for line in said.splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:
            break
    return lines


def _end(process: subprocess.Popen) -> None:
    if hasattr(os, "killpg"):
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


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
    patience = _START_SECONDS + len(EXERCISES) * (limits.seconds + 1)
    lines = _ask(job, patience, enclosed)
    if not lines or "plan" not in lines[0]:
        return CopyGrades(name=name, problem="the notebook could not be read: its cells end the reader")
    if not lines[0]["found"]:
        return CopyGrades(name=name, problem='no exercises found: no call of course.check("...", ...)')
    if not fork:
        lines += _one_by_one(job, lines[0]["plan"], limits, enclosed)
    found = {line["exercise"]: line for line in lines if "exercise" in line}
    grades = tuple(
        Grade(**found[key]) if key in found else Grade(exercise=key, status="failed", mistake="crash")
        for key in lines[0]["plan"]
    )
    return CopyGrades(name=name, grades=grades)


def _one_by_one(
    job: dict[str, Any], plan: Iterable[str], limits: Limits, enclosed: bool
) -> list[dict[str, Any]]:
    lines = []
    for key in plan:
        answers = _ask({**job, "only": [key]}, _START_SECONDS + limits.seconds, enclosed)
        lines += [line for line in answers if "exercise" in line]
    return lines
