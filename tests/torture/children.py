"""Processes that train until they are killed, and the moments at which that is done."""

from __future__ import annotations

import errno
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable
from ctypes import c_int64
from multiprocessing.process import BaseProcess
from pathlib import Path

import sacrebleu  # noqa: F401  (this, as well as the next but one, so that no child has to)
import torch
import torch._dynamo
from torch.optim.optimizer import register_optimizer_step_post_hook

import tinytx_run.finetune
import tinytx_run.pretrain  # noqa: F401
from tests.tinytx_run.interrupted import folder_bytes
from tinytx_run.cli import main
from tinytx_run.files import NEW, OLD

ROOT = Path(__file__).resolve().parents[2]
FILE_EVENTS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.fsync"}
TICK = 0.0005  # seconds between two looks at a process


def start(arguments: list[str], log: Path, *first: Callable[[], object]) -> BaseProcess:
    """Train in a process that is forked off this one, which saves the time of importing torch.

    Before that it calls `first`; what it prints is appended to a file.
    """
    process = multiprocessing.get_context("fork").Process(target=_train, args=(arguments, log, first))
    process.start()
    return process


def _train(arguments: list[str], log: Path, first: tuple[Callable[[], object], ...]) -> None:
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(out, 1)
    os.dup2(out, 2)
    torch.set_num_threads(1)
    for call in first:
        call()
    sys.exit(main(arguments))


def wait(process: BaseProcess, seconds: float = 300.0, until: Callable[[], bool] = lambda: False) -> bool:
    """Wait that long, or until something holds; False where the process ended before."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not until():
        if not process.is_alive():
            return False
        time.sleep(TICK)
    return process.is_alive()


def kill(process: BaseProcess) -> None:
    """End it as abruptly as the system can."""
    process.kill()
    process.join()


def become_a_new_python(arguments: list[str]) -> None:
    """Train in this process, but from the import of torch on."""
    os.chdir(ROOT)
    os.execv(sys.executable, [sys.executable, "-m", "tinytx_run.cli", *arguments])


def count_steps(reached: c_int64) -> None:
    """Write into shared memory how many steps this process has made, counted from the first of the run."""

    def count(optimizer: torch.optim.Optimizer, *_: object) -> None:
        if isinstance(optimizer, torch.optim.AdamW):
            counts = (state["step"] for state in optimizer.state.values() if "step" in state)
            reached.value = int(next(counts).item())

    register_optimizer_step_post_hook(count)


def at_file_operation(number: int, act: Callable[[], object], met: c_int64) -> None:
    """Let this process act just before it changes the run folder for the ``number``-th time, and note it."""
    left = number

    def listen(event: str, arguments: tuple) -> None:
        nonlocal left
        if event in FILE_EVENTS and not (event == "open" and _only_reads(arguments)):
            left -= 1
            if left == -1:
                met.value = 1
                act()

    sys.addaudithook(listen)
    flush = os.fsync  # of which Python tells no hook
    os.fsync = lambda handle: sys.audit("os.fsync") or flush(handle)


def die() -> None:
    """Kill this process."""
    os.kill(os.getpid(), signal.SIGKILL)


def stop() -> None:
    """Stop this process until it is killed."""
    os.kill(os.getpid(), signal.SIGSTOP)


def refuse() -> None:
    """What a system says whose disk is full."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def limit_files(size: int) -> None:
    """Let a longer file be written in part, and then give an error."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # as Python does by itself: the call gives EFBIG
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def limit_memory(more: int) -> None:
    """Let this process have so many more bytes than it has."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + more, used + more))


def _only_reads(arguments: tuple) -> bool:
    _, mode, flags = arguments
    return not flags & (os.O_WRONLY | os.O_RDWR) if isinstance(flags, int) else "r" in (mode or "r")


class Lost(Exception):
    """A run that did not come to the same bytes, or did not say in one clear line why it ended."""


def compare(out: Path, whole: dict[str, bytes], what: str) -> None:
    """Remove a run that has the bytes of one that was never interrupted; raise Lost for another."""
    found = folder_bytes(out)
    if other := sorted(name for name in {*found, *whole} if found.get(name) != whole.get(name)):
        raise Lost(f"{what}: other bytes in {', '.join(other)}")
    shutil.rmtree(out)


def leftovers(folder: Path) -> set[str]:
    """Names under which something is being written or removed right now."""
    try:
        return {name for name in os.listdir(folder) if name.endswith((NEW, OLD))}
    except FileNotFoundError:
        return set()
