"""The process in which learners' code runs: reads one job, says that it has started, answers in JSON.

A job without an exercise asks for the plan of a notebook. A job with one asks for an attempt: the record of
what the function did, or the error of a cell that it needs. Nothing is judged here, so nothing said here can
forge a pass.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import ctypes
import errno
import inspect
import json
import linecache
import os
import platform
import struct
import sys
import types
from typing import Any

from tinytx_course.exercises.limits import TimeUp, call_within
from tinytx_course.grading.slicing import AWAIT

_MEBIBYTE = 2**20
LARGEST_FILE = 64 * _MEBIBYTE
MOST_OPEN_FILES = 256
MOST_THREADS = 512
#: Statements before an exercise, each by itself, may take this share of its time.
SHARE_OF_A_STATEMENT = 0.25

# Calls of Linux that reach keys of the session, or memory that no limit counts and that may outlive the
# process: the number of `seccomp`, what Linux calls the processor, and add_key, request_key, keyctl,
# memfd_create, memfd_secret, shmget, msgget, semget, mq_open, io_uring_setup.
_REFUSED = {
    "x86_64": (317, 0xC000003E, (248, 249, 250, 319, 447, 29, 68, 64, 240, 425)),
    "aarch64": (277, 0xC00000B7, (217, 218, 219, 279, 447, 194, 186, 190, 180, 425)),
}


def refuse_calls() -> None:
    """Have Linux refuse this process, and what it starts, calls that reach beyond it.

    Raises
    ------
    OSError
        Where the system has no such filter.
    """
    if sys.platform != "linux" or platform.machine() not in _REFUSED:
        raise OSError(errno.ENOSYS, "only Linux on x86_64 and aarch64 refuses calls")
    number, processor, calls = _REFUSED[platform.machine()]
    load, equal, at_least, answer = 0x20, 0x15, 0x35, 0x06
    tests = [(at_least, 2**30), *((equal, call) for call in calls)]  # from 2**30 on: those of x32
    steps = [(load, 0, 0, 4), (equal, 1, 0, processor), (answer, 0, 0, 2**31), (load, 0, 0, 0)]
    steps += [(test, len(tests) - place, 0, call) for place, (test, call) in enumerate(tests)]
    steps += [(answer, 0, 0, 0x7FFF0000), (answer, 0, 0, 0x50000 | errno.ENOSYS)]  # allow; refuse
    program = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    filters = ctypes.create_string_buffer(struct.pack("@HP", len(steps), ctypes.addressof(program)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.syscall(number, 1, 1, filters):  # no new rights; all threads
        raise OSError(ctypes.get_errno(), "the kernel refuses no calls")


def limit(seconds: int, mebibytes: int) -> None:
    """Limit this process for good, in processor time from now and in memory beyond what is mapped now.

    A limit that the system does not have is left out.
    """
    with contextlib.suppress(OSError):
        refuse_calls()
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
    blame, trees, loop = "", {}, asyncio.new_event_loop()

    async def run(code: types.CodeType) -> Any:
        value = eval(code, space)
        return await value if code.co_flags & inspect.CO_COROUTINE else value

    def within_loop(code: types.CodeType) -> Any:  # as in a notebook
        return loop.run_until_complete(run(code))

    for cell, index in job["needs"]:
        name, source = f"<code cell {cell}>", job["sources"][str(cell)]
        if cell not in trees:
            trees[cell] = ast.parse(source)
            # Tracebacks find its lines.
            linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        node = trees[cell].body[index]
        code = compile(ast.Module([node], []), name, "exec", AWAIT)
        _, error = call_within(seconds, within_loop, code)
        if error is not None and not blame:  # what comes later may follow from it
            blame = f"code cell {cell}, line {node.lineno}: {_words_of(error)}"
    function, error = call_within(seconds, within_loop, compile(job["function"], "<check>", "eval", AWAIT))
    if error is not None:
        return {"error": blame or job["broken"] or _words_of(error)}
    if is_of_the_package(function):
        words = "This is a function of the package itself: write your own, from what the lesson shows."
        return {"record": Record(refusal=Failure("calls-the-answer", words)).to_dict()}
    record = observe(EXERCISES[job["exercise"]], function, 0, TIME_LIMIT)
    return {"record": record.to_dict(), "blame": blame}


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
