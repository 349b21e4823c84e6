"""One command in a child of this process, with limits of its own on processor time and memory."""

from __future__ import annotations

import gc
import os
import re
import resource
import shutil
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

CPU_SECONDS = 90  # evaluating on the world's 4.4 million training tokens takes 35
MEMORY = 6 * 2**30
_LINES = re.compile(r"([\w-]+: downloading [^\n]+\n)?(tinytx[\w-]*: (error|warning): [^\n]+\n?)*")


@dataclass(frozen=True)
class Outcome:
    """What came of a command.

    Attributes
    ----------
    kind : str
        "done", "refused" (status 2 and one line), "traceback", "hang" (the limit on processor time), "killed"
        or "noise" (a refusal of more than one line).
    printed : str
        On standard output.
    said : str
        On standard error.
    """

    kind: str
    printed: str
    said: str


def run_child(
    main: Callable[[Sequence[str]], int], words: Sequence[str], folder: Path, stdin: bytes
) -> Outcome:
    """Fork, run `main` in an empty folder of its own, and say how it ended."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    given, out, err = folder / ".in", folder / ".out", folder / ".err"
    given.write_bytes(stdin)
    sys.stdout.flush()
    sys.stderr.flush()
    gc.freeze()  # or the child would copy every page that its collector looks at
    if not (child := os.fork()):
        _become(main, words, folder, (given, out, err))
    _, status = os.waitpid(child, 0)
    printed, said = (path.read_text(encoding="utf-8", errors="replace") for path in (out, err))
    return Outcome(_kind(os.waitstatus_to_exitcode(status), said), printed, said)


def _become(main: Callable[[Sequence[str]], int], words: Sequence[str], folder: Path, files: tuple) -> None:
    status = 70
    try:
        for number, path in enumerate(files):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT if number else os.O_RDONLY, 0o600), number)
        for name, number in (("stdin", 0), ("stdout", 1), ("stderr", 2)):  # pytest has put others there
            stream = os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False)
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
        os.chdir(folder)
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        status = main(words)
    except SystemExit as end:  # --help
        status = end.code if isinstance(end.code, int) else 70
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _kind(status: int, said: str) -> str:
    if status == -24 or status == -9:  # SIGXCPU, and SIGKILL a second later
        return "hang"
    if status < 0:
        return "killed"
    if status not in (0, 1, 2) or "Traceback (most recent call last)" in said:
        return "traceback"
    if status == 2:
        return "refused" if said and _LINES.fullmatch(said) and said.count(": error: ") == 1 else "noise"
    return "done"
