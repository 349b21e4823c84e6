"""The process in which learners' code runs: reads one job, answers in lines of JSON.

What it imports and decides itself stays on this side of a fork: each exercise is tried in a child with
limits, which hands back one line through a pipe of its own. What a child prints, breaks, leaves running
or forgets to end is gone with it. Where there is no fork, the one who gives the jobs gives one exercise
each.
"""

from __future__ import annotations

import ast
import contextlib
import json
import linecache
import os
import select
import signal
import sys
import time
import types
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any, TextIO

from tinytx_course.exercises import EXERCISES
from tinytx_course.exercises.checking import check
from tinytx_course.exercises.limits import TimeUp, call_within
from tinytx_course.grading.grades import STATUSES, Grade
from tinytx_course.grading.jail import drop_privileges, end_with_parent, guard, keep_out_of_reach, limit
from tinytx_course.grading.planning import Attempt, Plan, make_plan

#: Statements before an exercise, each by itself, may take this share of its time.
SHARE_OF_A_STATEMENT = 0.25
LONGEST_ANSWER = 20_000  # bytes

Answer = dict[str, Any]


def answer(
    exercise: str, status: str, mistake: str | None = None, message: str = "", finding: str = ""
) -> Answer:
    """Return what is said about one exercise; a ValueError if it is no grade."""
    grade = Grade(exercise=exercise, status=status, mistake=mistake, message=message, finding=finding)
    return asdict(grade)


def try_exercise(exercise: str, plan: Plan, job: Answer) -> Answer:
    """Return the best of the answers to an exercise; each is tried by itself."""
    attempts = plan.attempts[exercise]
    if not attempts:
        broken = plan.broken_cell_of(exercise)
        if broken:
            return answer(exercise, "failed", "cell-error", broken)
        return answer(exercise, "missing", None, f"no function {exercise} and no call of its check")
    best = None
    for attempt in reversed(attempts):  # of equal ones, the last that was written counts
        found = isolated(exercise, attempt, plan, job) if job["fork"] else _try(exercise, attempt, plan, job)
        if best is None or STATUSES.index(found["status"]) < STATUSES.index(best["status"]):
            best = found
        if best["status"] == "passed":
            break
    assert best is not None
    return best


def _try(exercise: str, attempt: Attempt, plan: Plan, job: Answer) -> Answer:
    """Run in this very process what an answer needs, and check it."""
    seconds = job["seconds"] * SHARE_OF_A_STATEMENT
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    space = main.__dict__
    space["display"] = lambda *_: None
    trouble = ""
    for statement in attempt.needs:
        name = _cell_name(statement.cell, plan)
        code = compile(ast.Module([statement.node], []), name, "exec")
        _, error = call_within(seconds, exec, code, space)
        if error is not None:
            trouble = f"code cell {statement.cell}, line {statement.node.lineno}: {_told(error)}"
    code = compile(ast.Expression(attempt.function), "<check>", "eval")
    function, error = call_within(seconds, eval, code, space)
    if error is not None:
        blame = trouble or plan.broken_cell_of(exercise) or _told(error)
        return answer(exercise, "failed", "cell-error", blame)
    verdict = check(exercise, function, display=False)
    if verdict.passed:
        return answer(exercise, "passed")
    if not verdict.attempted:
        return answer(exercise, "not attempted")
    message, finding = (text.encode(errors="replace").decode() for text in (verdict.message, verdict.finding))
    return answer(exercise, "failed", verdict.mistake, message, finding)


def _cell_name(cell: int, plan: Plan) -> str:
    """Name a cell for tracebacks, and let them find its lines."""
    name = f"<code cell {cell}>"
    lines = plan.sources[cell].splitlines(keepends=True)
    linecache.cache[name] = (sum(map(len, lines)), None, lines, name)
    return name


def _told(error: BaseException) -> str:
    if isinstance(error, TimeUp):
        return "still running after its share of the time, and stopped"
    try:
        return f"{type(error).__name__}: {error}"[:500].encode(errors="replace").decode()
    except BaseException:  # noqa: B036  (what an exception says is the learner's code too)
        return type(error).__name__


def in_child(task: Callable[[], object], job: Answer) -> bytes | None:
    """Run a task in a child of this process, within limits, and end whatever it started.

    Returns
    -------
    bytes or None
        The line of JSON with what the task returned; without its end if the child came to none, None if its
        time was up.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            os.closerange(3, writing)  # nothing of ours is within reach, the channel least of all
            os.closerange(writing + 1, 256)
            drop_privileges()
            end_with_parent()
            close_in(job)
            os.write(writing, f"{json.dumps(task())[:LONGEST_ANSWER]}\n".encode())
        finally:
            os._exit(0)
    os.close(writing)
    line = _line_from(reading, time.monotonic() + job["seconds"])
    os.close(reading)
    _end(child)
    return line


def isolated(exercise: str, attempt: Attempt, plan: Plan, job: Answer) -> Answer:
    """Try an answer in a child of this process."""
    line = in_child(lambda: _try(exercise, attempt, plan, job), job)
    if line is None:
        told = f"still running after {job['seconds']:.0f} s, and ended"
        return answer(exercise, "failed", "time-limit", told)
    try:
        found = json.loads(line)
        return answer(exercise, found["status"], found["mistake"], found["message"], found["finding"])
    except (ValueError, TypeError, KeyError, RecursionError):  # also where learners' code wrote the line
        told = "the process ended in the middle: out of memory or time, or by a call that ends Python"
        return answer(exercise, "failed", "crash", told)


def close_in(job: Answer) -> None:
    """Put limits and guard around this process."""
    limit(int(job["seconds"]), job["mebibytes"])
    guard(job["folder"])


def _line_from(pipe: int, deadline: float) -> bytes | None:
    """Return the first line, or what there is at the end of the pipe; None when the time is up."""
    text = b""
    while b"\n" not in text and len(text) < 2 * LONGEST_ANSWER:
        ready, _, _ = select.select([pipe], [], [], max(deadline - time.monotonic(), 0))
        if not ready:
            return None
        more = os.read(pipe, 65_536)
        if not more:
            break
        text += more
    return text


def _end(child: int) -> None:
    """Kill a child with its group; as the first process of a namespace, with all there is."""
    for kill in (lambda: os.killpg(child, signal.SIGKILL), lambda: os.kill(child, signal.SIGKILL)):
        try:
            kill()
        except OSError:
            continue
    if os.getpid() == 1:
        with contextlib.suppress(OSError):
            os.kill(-1, signal.SIGKILL)
    os.waitpid(child, 0)
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def work(job: Answer, channel: TextIO) -> None:
    """Answer a job: first the names of the exercises, then one line each, then the end."""

    def say(**words: Any) -> None:
        print(json.dumps(words), file=channel, flush=True)

    def read() -> Plan:
        return make_plan(job["cells"], list(EXERCISES), job["expected"])

    if not job["fork"]:
        close_in(job)
    elif in_child(lambda: bool(read()), job) != b"true\n":
        return  # who reads within the limits once will do so again
    plan = read()
    say(plan=list(plan.attempts), found=sum(map(bool, plan.attempts.values())) + len(plan.broken))
    wanted: Iterable[str] = plan.attempts if job["only"] is None else job["only"]
    for exercise in wanted:
        say(**try_exercise(exercise, plan, job))
    say(done=True)


def main() -> None:
    """Take the job from standard input, and keep both streams from learners' code."""
    keep_out_of_reach()
    job = json.load(sys.stdin)
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    import torch

    torch.set_num_threads(1)
    os.chdir(job["folder"])
    work(job, channel)


if __name__ == "__main__":
    main()
