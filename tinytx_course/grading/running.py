"""Run learners' code in processes of its own, enclosed where the machine allows it, and judge what it did."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tinytx_course import PACKAGES
from tinytx_course.exercises.checking import EXERCISES
from tinytx_course.exercises.judging import judge
from tinytx_course.exercises.limits import TimeUp, call_within
from tinytx_course.exercises.observation import Record
from tinytx_course.exercises.verdict import Verdict
from tinytx_course.grading.grades import STATUSES, CopyGrades, Grade
from tinytx_course.grading.submission import Submission

_NOBODY = 65534
_ENCLOSE = "bwrap --unshare-net --unshare-ipc --unshare-pid --unshare-uts --die-with-parent --cap-drop ALL"
_NO_NAMESPACES = "--unshare-user --disable-userns"  # that the program makes itself
# Root encloses, becomes nobody inside, and only then gives up namespaces: a new one knows a single user.
_TO_BECOME_NOBODY = "--cap-add CAP_SETUID --cap-add CAP_SETGID --cap-add CAP_SETPCAP"
_BECOME_NOBODY = f"""
setpriv --reuid {_NOBODY} --regid {_NOBODY} --clear-groups --inh-caps -all --bounding-set -all
bwrap {_NO_NAMESPACES} --die-with-parent --dev-bind / /
"""
# Programs and libraries of the system, and what these read; Python's own folders are added.
_SYSTEM = """
/usr /bin /sbin /lib /lib32 /lib64 /nix /gnu /etc/alternatives /etc/fonts /etc/ld.so.cache /etc/localtime
/sys/devices/system/cpu
"""
_FOLDER_BYTES = 2**27
_FINAL = ("time-limit", "crash", "calls-the-answer")  # mistakes that more statements do not mend
_START_SECONDS = 120.0  # for starting Python and importing torch on a busy machine
_LONGEST_ANSWER = 2**24  # bytes
_PACKAGE = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What checking one exercise may take."""

    seconds: float = 20.0  # of time on the clock, and of processor time
    mebibytes: int = 2048  # of memory beyond what torch takes when it is loaded

    def __post_init__(self) -> None:
        if not 1 <= self.seconds <= 3600:
            raise ValueError(f"seconds must lie between 1 and 3600, got {self.seconds}")
        if not 64 <= self.mebibytes <= 2**20:
            raise ValueError(f"memory must lie between 64 and {2**20} MiB, got {self.mebibytes}")


@dataclass(frozen=True, kw_only=True)
class Walls:
    """What divides learners' code from this machine."""

    enclosed: bool = False  # whether ``bwrap`` shows it nothing but Python and an empty folder, no network
    user: int = 0  # to whom the process belongs; 0 for whoever starts it

    @property
    def gap(self) -> str | None:
        """Say what is not enforced, if anything."""
        root = "learners' code runs as root" if _is_root() and not self.user else ""
        if self.enclosed:
            return root or None
        limits = "limits of time and memory alone: nothing keeps learners' code from files, other copies and "
        limits += "the network"
        return "; ".join(filter(None, (limits, "on Linux, bubblewrap (bwrap) does", root)))


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


@functools.cache
def walls() -> Walls:
    """The best that this machine allows; what is not enforced is warned of, once."""
    users = (_NOBODY, 0) if _is_root() else (0,)
    found = [Walls(enclosed=True, user=user) for user in users] if shutil.which("bwrap") else []
    best = next(filter(_hold, [*found, *(Walls(user=user) for user in users if user)]), Walls())
    if best.gap is not None:
        warnings.warn(best.gap, stacklevel=2)
    return best


_TRY = """
import os
from importlib.util import find_spec
open("x", "w").close()
for name in ("torch", "tinytx_course"):
    open(find_spec(name).origin).close()
if ENCLOSED:
    from tinytx_course.grading.worker import refuse_calls
    refuse_calls()
os._exit(ENCLOSED and (os.access("..", os.W_OK) or os.getpid() > 9))
"""


def _hold(walls: Walls) -> bool:
    """Whether a program can run within walls, and reaches what it needs and nothing else."""
    with tempfile.TemporaryDirectory(prefix="tinytx-check-") as folder:
        words = [sys.executable, "-c", _TRY.replace("ENCLOSED", str(walls.enclosed))]
        try:
            done = subprocess.run(**_start(folder, words, walls), capture_output=True, timeout=60)
        except (OSError, subprocess.SubprocessError):
            return False
        return done.returncode == 0 and walls.enclosed != bool(os.listdir(folder))


def _start(folder: str, words: list[str], walls: Walls) -> dict[str, Any]:
    """What to give to ``subprocess``, so that a program starts in its folder, within walls."""
    how: dict[str, Any] = {"cwd": folder, "env": _environment(folder), "start_new_session": True}
    if sys.platform == "linux":
        how["preexec_fn"] = _end_with_parent
    if walls.enclosed:
        seen = _what_is_seen(folder)
        if walls.user:
            words = [*f"{_ENCLOSE} {_TO_BECOME_NOBODY}".split(), *seen, *_BECOME_NOBODY.split(), *words]
        else:
            words = [*f"{_ENCLOSE} {_NO_NAMESPACES}".split(), *seen, "--remount-ro", "/proc", *words]
    elif walls.user:
        os.chown(folder, walls.user, walls.user)
        how |= {"user": walls.user, "group": walls.user, "extra_groups": ()}
    return {"args": words, **how}


# Loaded at once: between fork and exec it may not be.
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def _end_with_parent() -> None:
    """Have Linux kill this process when the thread that started it ends, for whatever reason."""
    if _LIBC is not None:
        _LIBC.prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG


def _what_is_seen(folder: str) -> list[str]:
    """Words for bwrap: the system and Python, read-only, and an empty folder in memory."""
    paths = [path for path in (*_SYSTEM.split(), *_libraries()) if os.path.exists(path)]
    above = {str(outer) for path in (*paths, folder) for outer in Path(path).parents} - {"/", *paths}
    return [
        *(word for path in sorted(above) for word in ("--perms", "0755", "--dir", path)),
        *(word for path in paths for word in ("--ro-bind", path, path)),
        *("--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev"),
        *("--perms", "0777", "--size", str(_FOLDER_BYTES), "--tmpfs", folder, "--remount-ro", "/"),
        *("--chdir", folder),
    ]


def _libraries() -> list[str]:
    """The folders of Python, of what is installed, and of the packages themselves; outer ones first."""
    installed = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    ours = [str(_PACKAGE / name) for name in PACKAGES]
    paths = [sys.prefix, sys.base_prefix, *installed, *ours]
    return sorted({*map(os.path.abspath, paths), *map(os.path.realpath, paths)}, key=len)


def _environment(folder: str) -> dict[str, str]:
    """What learners' code may know of the machine: enough to run Python, nothing of the teacher's."""
    shared = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SYSTEMROOT")
    places = ("MPLCONFIGDIR", "IPYTHONDIR", "HOME", "TMPDIR", "TEMP", "TMP")
    return {
        **{name: os.environ[name] for name in shared if name in os.environ},
        **dict.fromkeys(places, folder),
        "USER": "nobody",  # asked for by name where there is no list of users
        "PYTHONPATH": str(_PACKAGE),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        "MPLBACKEND": "agg",
        "CUDA_VISIBLE_DEVICES": "",
        "TINYTX_BUDGET": "smoke",
        "TINYTX_PROGRESS": "none",
    }


def _run(job: dict[str, Any], walls: Walls) -> Any:
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
        words = [sys.executable, "-m", "tinytx_course.grading.worker"]
        process = subprocess.Popen(
            **_start(folder, words, walls), stdin=subprocess.PIPE, stdout=answers, stderr=subprocess.DEVNULL
        )
        try:
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError), process.stdin:
                process.stdin.write(json.dumps(job).encode())
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
    within: Walls | None = None,
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
    within : Walls, optional
        By default the best that the machine allows.
    """
    limits = Limits() if limits is None else limits
    within = walls() if within is None else within
    lesson = submission.lesson if lesson is None else lesson
    lessons_own = [key for key, exercise in EXERCISES.items() if exercise.lesson == lesson]
    try:
        job, plan = _plan(submission, list(EXERCISES), lessons_own, limits, within)
    except ValueError as problem:
        return CopyGrades(name=name, problem=str(problem))
    found = {key: plan["exercises"][key] for key in EXERCISES if key in plan["exercises"]}
    others = [key for key in found if lessons_own and key not in lessons_own]
    found = {key: one for key, one in found.items() if key not in others}
    if not any(one["attempts"] or one["broken"] for one in found.values()):
        return CopyGrades(name=name, problem='no exercises found: no call of course.check("...", ...)')
    grades = tuple(_grade(key, job, one, within) for key, one in found.items())
    return CopyGrades(name=name, grades=grades, problem=_remark(submission, lesson, others))


def grade_exercise(submission: Submission, exercise: str) -> Grade:
    """Check one exercise of a copy, whatever its lesson, with the usual limits.

    Raises
    ------
    ValueError
        If the copy cannot be read.
    """
    within = walls()
    job, plan = _plan(submission, [exercise], [exercise], Limits(), within)
    return _grade(exercise, job, plan["exercises"][exercise], within)


def _plan(
    submission: Submission, exercises: list[str], expected: list[str], limits: Limits, within: Walls
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What all attempts at exercises of a copy share, and the plan of these."""
    job = {"seconds": limits.seconds, "mebibytes": limits.mebibytes}
    notebook = {"cells": submission.cells, "exercises": exercises, "expected": expected}
    try:
        plan = _run(job | notebook, within)
    except TimeoutError:
        plan = None
    if plan is None:
        words = "the notebook could not be read: its cells end the reader, or take too much time or memory"
        raise ValueError(words)
    return job | {"sources": plan["sources"], "order": plan["order"]}, plan


def _remark(submission: Submission, lesson: int | None, others: Iterable[str]) -> str | None:
    """Say where a copy names another lesson than it is graded as, and which exercises do not count."""
    remarks = []
    if submission.lesson not in (None, lesson):
        remarks.append(f"names lesson {submission.lesson:02d}, graded as a copy of lesson {lesson:02d}")
    if listed := ", ".join(f"{key} (lesson {EXERCISES[key].lesson:02d})" for key in others):
        remarks.append(f"not counted, as of other lessons: {listed}")
    return "; ".join(remarks) or None


def _failed(exercise: str, mistake: str, message: str) -> Grade:
    return Grade(exercise=exercise, status="failed", mistake=mistake, message=message)


def _grade(exercise: str, job: dict[str, Any], plan: dict[str, Any], within: Walls) -> Grade:
    """The best grade of all attempts at an exercise, each in a process of its own."""
    attempts, broken = plan["attempts"], plan["broken"]
    if not attempts and broken:
        return _failed(exercise, "cell-error", broken)
    if not attempts:
        words = f"no function {exercise} and no call of its check"
        return Grade(exercise=exercise, status="missing", message=words)
    job = {**job, "broken": broken, "exercise": exercise}
    grades: list[Grade] = []
    for attempt in reversed(attempts):  # of equal ones, the last that was written counts
        grades.append(_grade_attempt(exercise, {**job, **attempt}, within))
        if grades[-1].passed:
            break
    best = min(grades, key=lambda grade: STATUSES.index(grade.status))
    if best.status != "failed" or best.mistake in _FINAL:
        return best
    # A call or `exec` may have changed what the function reads, so now every statement before it is run.
    last = attempts[-1]
    before = job["order"][: last["at"]]
    needs = [*(place for place in last["needs"] if place not in before), *before]
    again = _grade_attempt(exercise, {**job, **last, "needs": needs}, within)
    return again if again.passed else best


def _grade_attempt(exercise: str, job: dict[str, Any], within: Walls) -> Grade:
    try:
        answer = _run(job, within)
    except TimeoutError:
        return _failed(exercise, "time-limit", f"still running after {job['seconds']:.0f} s, and ended")
    if answer is None:
        words = "the process ended in the middle: out of memory or time, or by a call that ends Python"
        return _failed(exercise, "crash", words)
    # What learners' code wrote in place of a record is not trusted, neither its kind nor its size.
    grade, error = call_within(job["seconds"], _judged, exercise, answer)
    if isinstance(error, TimeUp):
        words = f"the result is so large that it could not be judged in {job['seconds']:.0f} s"
        return _failed(exercise, "time-limit", words)
    if isinstance(error, Exception):
        return _failed(exercise, "crash", "the process sent no record of calls, or one that is too large")
    if error is not None:  # the teacher stops it
        raise error
    return grade


def _judged(exercise: str, answer: dict[str, Any]) -> Grade:
    """The grade for what a process of learners' code sent."""
    blame = str(answer.get("error") or answer.get("blame") or "").encode(errors="replace").decode()
    if "error" in answer:
        return _failed(exercise, "cell-error", blame)
    verdict: Verdict = judge(EXERCISES[exercise], Record.from_dict(answer["record"]))
    if verdict.passed:
        return Grade(exercise=exercise, status="passed")
    if not verdict.attempted:
        return Grade(exercise=exercise, status="not attempted", verdict=verdict)
    if blame and verdict.mistake in (None, "error"):  # the first cause
        return _failed(exercise, "cell-error", f"{blame}. Then: {verdict.finding or verdict.message}")
    return Grade(
        exercise=exercise,
        status="failed",
        mistake=verdict.mistake,
        message=f"{blame}\n{verdict.message}".lstrip(),
        finding=". And: ".join(filter(None, (blame, verdict.finding))),
        verdict=verdict,
    )
