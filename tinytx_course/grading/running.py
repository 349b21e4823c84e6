"""Run learners' code in processes of its own, enclosed where the machine allows it, and judge what it did."""

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
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tinytx_course.exercises.checking import EXERCISES
from tinytx_course.exercises.judging import judge
from tinytx_course.exercises.observation import Record
from tinytx_course.grading.grades import STATUSES, CopyGrades, Grade
from tinytx_course.grading.jail import end_with_parent
from tinytx_course.grading.submission import Submission

_WALLS = ("--user", "--map-root-user", "--net", "--mount", "--ipc", "--pid", "--fork", "--kill-child")
_FOLDER_MEBIBYTES = 128
_START_SECONDS = 120.0  # for starting Python and importing torch on a busy machine
_LONGEST_ANSWER = 2**24  # bytes
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
    """Whether this machine allows the namespaces that :mod:`enclose` needs."""
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
    """What learners' code may know of the machine: enough to run Python, nothing of the teacher's."""
    shared = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SYSTEMROOT")
    places = ("MPLCONFIGDIR", "IPYTHONDIR", "HOME", "TMPDIR", "TEMP", "TMP")
    return {
        **{name: os.environ[name] for name in shared if name in os.environ},
        **dict.fromkeys(places, folder),
        "PYTHONPATH": str(_PACKAGE),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        "MPLBACKEND": "agg",
        "CUDA_VISIBLE_DEVICES": "",
        "TINYTX_BUDGET": "smoke",
        "TINYTX_PROGRESS": "none",
    }


def _run(job: dict[str, Any], enclosed: bool) -> Any:
    """Run a job in a process of its own; return its answer, or None if it came to none.

    Raises
    ------
    TimeoutError
        If its time was up.
    """
    with (
        tempfile.TemporaryFile() as answers,  # not a pipe: limits on files hold for it
        tempfile.TemporaryDirectory(prefix="tinytx-check-", ignore_cleanup_errors=True) as folder,
    ):
        folder = os.path.realpath(folder)
        program = [sys.executable, "-m", "tinytx_course.grading.worker"]
        process = subprocess.Popen(
            _command(folder, program, enclosed=enclosed),
            stdin=subprocess.PIPE,
            stdout=answers,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=_environment(folder),
            start_new_session=True,
            preexec_fn=end_with_parent if sys.platform == "linux" else None,
        )
        try:
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError), process.stdin:
                process.stdin.write(json.dumps({**job, "folder": folder}).encode())
            _wait(process, answers, job["seconds"])
        finally:
            _end(process)
        answers.seek(0)
        lines = answers.read(_LONGEST_ANSWER).splitlines()
    try:
        return json.loads(lines[1])
    except (ValueError, IndexError, RecursionError):
        return None


def _wait(process: subprocess.Popen, answers: IO[bytes], seconds: float) -> None:
    """Wait for the end of a process; its time runs from the first line that it writes."""
    started, deadline = False, time.monotonic() + _START_SECONDS
    while process.poll() is None:
        if not started and os.fstat(answers.fileno()).st_size:
            started, deadline = True, time.monotonic() + seconds
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.01)


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
    lesson: int | None = None,
    limits: Limits | None = None,
    enclosed: bool | None = None,
) -> CopyGrades:
    """Check every exercise of a copy.

    Parameters
    ----------
    submission : Submission
    name : str
        What to call it.
    lesson : int, optional
        Of which it is graded as a copy, whatever it says itself: exactly its exercises count. By default the
        one that it names.
    limits : Limits, optional
        For each exercise.
    enclosed : bool, optional
        Whether to use namespaces; by default, where the machine allows them.
    """
    limits = Limits() if limits is None else limits
    enclosed = walls() if enclosed is None else enclosed
    lesson = submission.lesson if lesson is None else lesson
    job = {"seconds": limits.seconds, "mebibytes": limits.mebibytes}
    lessons_own = [key for key, exercise in EXERCISES.items() if exercise.lesson == lesson]
    notebook = {"cells": submission.cells, "exercises": list(EXERCISES), "expected": lessons_own}
    try:
        plan = _run(job | notebook, enclosed)
    except TimeoutError:
        plan = None
    if plan is None:
        words = "the notebook could not be read: its cells end the reader, or take too much time or memory"
        return CopyGrades(name=name, problem=words)
    job["sources"] = plan["sources"]
    found = {key: plan["exercises"][key] for key in EXERCISES if key in plan["exercises"]}
    others = [key for key in found if lessons_own and key not in lessons_own]
    found = {key: one for key, one in found.items() if key not in others}
    if not any(one["attempts"] or one["broken"] for one in found.values()):
        return CopyGrades(name=name, problem='no exercises found: no call of course.check("...", ...)')
    grades = tuple(
        _grade(key, job | {"broken": one["broken"]}, one["attempts"], enclosed) for key, one in found.items()
    )
    return CopyGrades(name=name, grades=grades, problem=_remark(submission, lesson, others))


def _remark(submission: Submission, lesson: int | None, others: Iterable[str]) -> str | None:
    """Say where a copy names another lesson than it is graded as, and which exercises do not count."""
    remarks = []
    if submission.lesson not in (None, lesson):
        remarks.append(f"names lesson {submission.lesson:02d}, graded as a copy of lesson {lesson:02d}")
    if listed := ", ".join(f"{key} (lesson {EXERCISES[key].lesson:02d})" for key in others):
        remarks.append(f"not counted, as of other lessons: {listed}")
    return "; ".join(remarks) or None


def _grade(exercise: str, job: dict[str, Any], attempts: Sequence[dict], enclosed: bool) -> Grade:
    """The best grade of all attempts at an exercise, each in a process of its own."""
    if not attempts and job["broken"]:
        return Grade(exercise=exercise, status="failed", mistake="cell-error", message=job["broken"])
    if not attempts:
        words = f"no function {exercise} and no call of its check"
        return Grade(exercise=exercise, status="missing", message=words)
    grades: list[Grade] = []
    for attempt in reversed(attempts):  # of equal ones, the last that was written counts
        grades.append(_grade_attempt(exercise, {**job, **attempt, "exercise": exercise}, enclosed))
        if grades[-1].passed:
            break
    return min(grades, key=lambda grade: STATUSES.index(grade.status))


def _grade_attempt(exercise: str, job: dict[str, Any], enclosed: bool) -> Grade:
    try:
        answer = _run(job, enclosed)
    except TimeoutError:
        words = f"still running after {job['seconds']:.0f} s, and ended"
        return Grade(exercise=exercise, status="failed", mistake="time-limit", message=words)
    try:
        if "error" in answer:
            blame = str(answer["error"]).encode(errors="replace").decode()
            return Grade(exercise=exercise, status="failed", mistake="cell-error", message=blame)
        verdict = judge(EXERCISES[exercise], Record.from_dict(answer["record"]))
    except Exception:  # no answer, or whatever else learners' code wrote in its place
        words = "the process ended in the middle: out of memory or time, or by a call that ends Python"
        return Grade(exercise=exercise, status="failed", mistake="crash", message=words)
    if verdict.passed:
        return Grade(exercise=exercise, status="passed")
    if not verdict.attempted:
        return Grade(exercise=exercise, status="not attempted")
    return Grade(
        exercise=exercise,
        status="failed",
        mistake=verdict.mistake,
        message=verdict.message,
        finding=verdict.finding,
    )
