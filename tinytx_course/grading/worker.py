"""The process in which learners' code runs: reads one job, says that it has started, answers in JSON.

A job without an exercise asks for the plan of a notebook. A job with one asks for an attempt: the record of
what the function did, or the error of a cell that it needs. Nothing is judged here, so nothing said here can
forge a pass.
"""

from __future__ import annotations

import ast
import contextlib
import json
import linecache
import os
import sys
import types
from typing import Any

from tinytx_course.exercises.limits import TimeUp, call_within

_MEBIBYTE = 2**20
LARGEST_FILE = 64 * _MEBIBYTE
MOST_OPEN_FILES = 256
MOST_THREADS = 512
#: Statements before an exercise, each by itself, may take this share of its time.
SHARE_OF_A_STATEMENT = 0.25


def limit(seconds: int, mebibytes: int) -> None:
    """Limit this process for good; a limit that the system does not have is left out.

    Parameters
    ----------
    seconds : int
        Of processor time from now.
    mebibytes : int
        Of memory beyond what is mapped now.
    """
    try:
        import resource
    except ImportError:  # Windows
        return
    spent = resource.getrusage(resource.RUSAGE_SELF)
    wanted = {
        "RLIMIT_CPU": int(spent.ru_utime + spent.ru_stime) + seconds + 1,
        "RLIMIT_FSIZE": LARGEST_FILE,
        "RLIMIT_NOFILE": MOST_OPEN_FILES,
        "RLIMIT_NPROC": MOST_THREADS,
        "RLIMIT_CORE": 0,
    }
    # torch maps far more than it uses; only Linux says how much.
    with contextlib.suppress(OSError), open("/proc/self/statm", encoding="ascii") as numbers:
        mapped = int(numbers.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        wanted["RLIMIT_AS"] = mapped + mebibytes * _MEBIBYTE
    for name, value in wanted.items():
        with contextlib.suppress(AttributeError, ValueError, OSError):  # not every system has every limit
            kind = getattr(resource, name)
            _, hard = resource.getrlimit(kind)
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (value, value))


def observe_attempt(job: dict[str, Any]) -> dict[str, Any]:
    """Run what an attempt needs, and observe its function."""
    from tinytx_course.exercises.calling import is_of_the_package, observe
    from tinytx_course.exercises.checking import EXERCISES, TIME_LIMIT
    from tinytx_course.exercises.observation import Failure, Record

    seconds = job["seconds"] * SHARE_OF_A_STATEMENT
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    space = main.__dict__
    space["display"] = lambda *_: None
    blame, trees = "", {}
    for cell, index in job["needs"]:
        name, source = f"<code cell {cell}>", job["sources"][str(cell)]
        if cell not in trees:
            trees[cell] = ast.parse(source)
            # Tracebacks find its lines.
            linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        node = trees[cell].body[index]
        code = compile(ast.Module([node], []), name, "exec")
        _, error = call_within(seconds, exec, code, space)
        if error is not None:
            blame = f"code cell {cell}, line {node.lineno}: {_words_of(error)}"
    function, error = call_within(seconds, eval, compile(job["function"], "<check>", "eval"), space)
    if error is not None:
        return {"error": blame or job["broken"] or _words_of(error)}
    if is_of_the_package(function):
        words = "This is a function of the package itself: write your own, from what the lesson shows."
        return {"record": Record(refusal=Failure("calls-the-answer", words)).to_dict()}
    return {"record": observe(EXERCISES[job["exercise"]], function, 0, TIME_LIMIT).to_dict()}


def _words_of(error: BaseException) -> str:
    if isinstance(error, TimeUp):
        return "still running after its share of the time, and stopped"
    try:
        return f"{type(error).__name__}: {error}"[:500].encode(errors="replace").decode()
    except BaseException:  # noqa: B036  (what an exception says is the learner's code too)
        return type(error).__name__


def main() -> None:
    """Take the job from standard input, and silence all streams for learners' code."""
    job = json.load(sys.stdin)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    if "exercise" in job:  # what takes long is imported before the limits and before the clock runs
        import torch

        import tinytx_course.exercises.checking  # noqa: F401

        torch.set_num_threads(1)
    else:
        from tinytx_course.grading.planning import make_plan
    limit(int(job["seconds"]), job["mebibytes"])
    print(json.dumps("started"), file=answers, flush=True)
    if "exercise" in job:
        answer = observe_attempt(job)
    else:
        answer = make_plan(job["cells"], job["exercises"], job["expected"])
    print(json.dumps(answer), file=answers, flush=True)
    os._exit(0)  # threads of the learner's code keep nothing waiting


if __name__ == "__main__":
    main()
