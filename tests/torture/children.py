"""Processes that train until they are killed, and the moments at which that is done."""

from __future__ import annotations

import mmap
import os
import random
import signal
import struct
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import sacrebleu  # noqa: F401  (this, as well as the next but one, so that no child has to)
import torch
import torch._dynamo
from torch.optim.optimizer import register_optimizer_step_post_hook

import tinytx.training.fit  # noqa: F401
from tinytx.cli import main
from tinytx.training.files import NEW, OLD

ROOT = Path(__file__).resolve().parents[2]
FILE_EVENTS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir"}


class Reached:
    """A number that a child writes and its parent reads, also after the child's death: steps made so far."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 8)

    @property
    def step(self) -> int:
        """The latest step."""
        return struct.unpack("q", self._memory[:8])[0]

    @step.setter
    def step(self, value: int) -> None:
        self._memory[:8] = struct.pack("q", value)

    def watch(self, optimizer: torch.optim.Optimizer, *_: object) -> None:
        """Called by torch after every step of every optimizer; it counts from the first step of the run."""
        if isinstance(optimizer, torch.optim.AdamW):
            counts = (state["step"] for state in optimizer.state.values() if "step" in state)
            self.step = int(next(counts).item())


class Child:
    """A process that trains.

    Parameters
    ----------
    arguments : list of str
        Of the command ``tinytx``.
    log : Path
        What it prints is appended there.
    reached : Reached, optional
        Forked off this process where given, which saves the time of importing torch; else a new Python.
    kill_at : int, optional
        Forked only: it kills itself just before this file operation, counted from 0.
    """

    def __init__(
        self, arguments: list[str], log: Path, reached: Reached | None = None, kill_at: int | None = None
    ) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        if reached is None:
            with log.open("ab") as stream:
                command = [sys.executable, "-m", "tinytx.cli", *arguments]
                self.process = subprocess.Popen(command, cwd=ROOT, stdout=stream, stderr=stream)
            self.pid = self.process.pid
        else:
            self.pid = os.fork()
            if self.pid == 0:
                _train_and_exit(arguments, log, reached, kill_at)
        self.status: int | None = None

    def running(self) -> bool:
        """Whether it has not ended."""
        if self.status is None:
            if self.process is not None:
                self.status = self.process.poll()
            else:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                self.status = os.waitstatus_to_exitcode(status) if pid else None
        return self.status is None

    def wait(self, seconds: float = 300.0, until: Callable[[], bool] = lambda: False) -> bool:
        """Wait that long, or until something holds; False where the process ended before."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not until():
            if not self.running():
                return False
            time.sleep(0.0005)
        return self.running()

    def send(self, what: signal.Signals) -> None:
        """Send a signal."""
        os.kill(self.pid, what)

    def kill(self) -> None:
        """End it as abruptly as the system can."""
        self.send(signal.SIGKILL)
        while self.running():
            time.sleep(0.0005)


def _train_and_exit(arguments: list[str], log: Path, reached: Reached, kill_at: int | None) -> None:
    status = 1
    try:
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(out, 1)
        os.dup2(out, 2)
        torch.set_num_threads(1)
        register_optimizer_step_post_hook(reached.watch)
        if kill_at is not None:
            _die_before_file_operation(kill_at)
        status = main(arguments)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _die_before_file_operation(number: int) -> None:
    """Kill this process just before it changes the run folder for the ``number``-th time."""
    left = number

    def listen(event: str, arguments: tuple) -> None:
        nonlocal left
        if event in FILE_EVENTS and not (event == "open" and _only_reads(arguments)):
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(listen)


def _only_reads(arguments: tuple) -> bool:
    _, mode, flags = arguments
    return not flags & (os.O_WRONLY | os.O_RDWR) if isinstance(flags, int) else "r" in (mode or "r")


def leftovers(folder: Path) -> set[str]:
    """Names under which something is being written or removed right now."""
    try:
        return {name for name in os.listdir(folder) if name.endswith((NEW, OLD))}
    except FileNotFoundError:
        return set()


def while_saving(folder: Path, rng: random.Random) -> Callable[[], bool]:
    """Holds a random moment after one of the next checkpoints has begun to be written or removed."""
    saves, seen, last, due = rng.randint(1, 6), 0, set(), None

    def holds() -> bool:
        nonlocal seen, last, due
        now = leftovers(folder)
        if now - last:
            seen += 1
        last = now
        if due is None and seen >= saves:
            due = time.monotonic() + rng.uniform(0, 0.03)
        return due is not None and time.monotonic() >= due

    return holds
