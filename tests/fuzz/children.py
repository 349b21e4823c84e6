"""One command in a child of this process, with limits of its own on processor time and memory."""

from __future__ import annotations

import gc
import multiprocessing
import os
import re
import resource
import shutil
import sys
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
    given, *outputs = files = [folder / name for name in (".in", ".out", ".err")]
    given.write_bytes(stdin)
    gc.freeze()  # or the child would copy every page that its collector looks at
    process = multiprocessing.get_context("fork").Process(target=_become, args=(main, words, folder, files))
    process.start()
    process.join()
    printed, said = (path.read_text(encoding="utf-8", errors="replace") for path in outputs)
    return Outcome(_kind(process.exitcode or 0, said), printed, said)


def _become(main: Callable[[Sequence[str]], int], words: Sequence[str], folder: Path, files: list) -> None:
    for number, (name, path) in enumerate(zip(("stdin", "stdout", "stderr"), files, strict=True)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT if number else os.O_RDONLY, 0o600), number)
        # pytest has put others there
        stream = os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    os.chdir(folder)
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    sys.exit(main(words))


def _kind(status: int, said: str) -> str:
    if status == -24 or status == -9:  # SIGXCPU, and SIGKILL a second later
        return "hang"
    if status < 0:
        return "killed"
    if status not in (0, 1, 2) or "Traceback (most recent call last)" in said:
        return "traceback"
    if status == 1:  # only what `data verify` prints says that there is a fault
        return "noise" if said else "done"
    if status == 2:
        return "refused" if said and _LINES.fullmatch(said) and said.count(": error: ") == 1 else "noise"
    return "done"
