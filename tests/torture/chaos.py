"""Faults that a system can have, one a run: nothing lost, no half file taken for a whole one, one clear line.

``python -m tests.torture.chaos`` lets one system call of a training run fail (by strace, so that it is the
kernel's answer that the program gets), limits sizes of files and memory, sends signals, turns the clock back
and starts two writers in one folder. After each fault the run is resumed without one, and its bytes are
compared with those of a run that never met a fault.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import NamedTuple

from tests.tinytx_run.interrupted import folder_bytes
from tests.torture.children import Lost, compare, kill, start, wait  # they import what no child has to
from tests.torture.jobs import make_jobs
from tinytx_course.results import Results

#: What fails, and how: each number of the call in turn.
CALLS = {
    "write": ("ENOSPC", "EIO", "EDQUOT"),
    "fsync": ("EIO", "ENOSPC"),
    "rename": ("EIO", "EACCES", "ENOSPC"),
    "mkdir": ("ENOSPC", "EACCES"),
    "unlink": ("EIO", "EACCES"),
}
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
WAIT = 900.0  # seconds after which a run counts as hanging, however busy the machine is


class Trial(NamedTuple):
    """One run with one fault: the status of its process, and what it printed."""

    status: int
    said: str


def _nothing(*_: object) -> None:
    pass


class Chaos:
    """A job, its bytes when nothing happens, and runs to which something does."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.out, self.log = folder, folder / "run", folder / "log"
        self.arrived = folder / "arrived"
        self.job = make_jobs(folder, n_steps=12)[0]
        before = _seconds_of_children()
        self.run()
        self.seconds = _seconds_of_children() - before
        self.whole = folder_bytes(self.out)

    def run(
        self, prepare: Callable[[], None] = _nothing, meanwhile: Callable[[int], None] = _nothing
    ) -> Trial:
        """Train in a child; `prepare` is called in it, `meanwhile` with its number before it begins."""
        here, there = os.pipe()
        self.log.write_bytes(b"")
        child = start(self.job.command(self.out), self.log, lambda: os.read(here, 2), prepare)
        meanwhile(child.pid)
        os.write(there, b"go")
        if wait(child, WAIT):
            kill(child)
            raise Lost(f"hangs: {self.log.read_text()[-500:]}")
        for end in (here, there):
            os.close(end)
        return Trial(child.exitcode, self.log.read_text(errors="replace"))

    def resumed(self, what: str, trial: Trial) -> None:
        """Check what the run said, resume it without a fault, compare every byte.

        Raises
        ------
        Lost
            If it does not come to the same bytes, or did not end in one clear line.
        """
        errors = [line for line in trial.said.splitlines() if line.startswith("tinytx: error: ")]
        expected = trial.status in (0, 2, 130) or trial.status < 0
        if "Traceback" in trial.said or not expected or len(errors) > 1:
            raise Lost(f"{what}: ended with {trial.status}, said {trial.said[-700:]!r}")
        again = self.run()
        if again.status:
            raise Lost(f"{what}: is not resumed, {again.said[-700:]!r}")
        compare(self.out, self.whole, what)

    def failing_call(self, call: str, error: str, number: int) -> Trial | None:
        """The ``number``-th such system call gives an error; None where the run ended before it."""
        traced = self.folder / "strace"
        spec = f"{call}:error={error}:when={number}"
        command = ["strace", "-f", "-qq", "-o", traced, "-e", f"trace={call}", "-e", f"inject={spec}", "-p"]
        watch: list[subprocess.Popen] = []

        def attach(pid: int) -> None:
            watch.append(subprocess.Popen([*map(str, command), str(pid)], stderr=subprocess.DEVNULL))
            while not _traced(pid):
                time.sleep(0.002)

        traced.write_bytes(b"")
        trial = self.run(meanwhile=attach)
        watch[0].wait()
        return trial if "(INJECTED)" in traced.read_text(errors="replace") else None

    def failing_calls(self, every: int) -> Iterator[tuple[str, str, Trial]]:
        """Each ``every``-th call of each kind with each of its errors, until a run has no more calls."""
        for call, errors in CALLS.items():
            for error in errors:
                number = 1
                while trial := self.failing_call(call, error, number):
                    yield f"{call}: {error}", f"{call} {number} gives {error}", trial
                    number += every
                shutil.rmtree(self.out, ignore_errors=True)

    def limits(self, n: int, rng: random.Random) -> Iterator[tuple[str, str, Trial]]:
        """Files that may not grow beyond a size: a short write, then an error; and too little memory."""
        largest = max(map(len, self.whole.values()))
        for size in (rng.randrange(1, largest) for _ in range(n)):
            prepare = partial(_limit_files, size)
            yield "short write", f"files of at most {size} bytes", self.run(prepare)
        for megabytes in (rng.randrange(1, 60) for _ in range(n)):
            yield "memory limit", f"{megabytes} MB more", self.run(partial(_limit_memory, megabytes * 2**20))

    def signals(self, n: int, rng: random.Random) -> Iterator[tuple[str, str, Trial]]:
        """A signal at a moment of the child's own processor time; n that arrived before the run had ended."""
        arrived = 0
        while arrived < n:
            number, seconds = SIGNALS[arrived % len(SIGNALS)], rng.uniform(0.001, self.seconds)
            self.arrived.unlink(missing_ok=True)
            trial = self.run(partial(_signal_after, number, seconds, self.arrived))
            if not self.arrived.exists():  # the run had ended: nothing was tried
                shutil.rmtree(self.out)
                continue
            arrived += 1
            yield f"{number.name}", f"{number.name} after {seconds:.2f} s", trial

    def clock(self) -> Iterator[tuple[str, str, Trial]]:
        """A clock that runs backwards."""
        yield "clock backwards", "the clock runs backwards", self.run(_turn_the_clock_back)

    def two_writers(self) -> Iterator[tuple[str, str, Trial]]:
        """A second writer in the folder of the first."""
        other = self.folder / "other.log"
        writers: list[BaseProcess] = []
        trial = self.run(meanwhile=lambda _: writers.append(start(self.job.command(self.out), other)))
        (second,) = writers
        wait(second, WAIT)
        said = trial.said + other.read_text()
        if sorted((trial.status, second.exitcode)) not in ([0, 0], [0, 2]):
            raise Lost(f"two writers ended with {trial.status} and {second.exitcode}: {said[-700:]}")
        yield "two writers", "two writers", trial


def _traced(pid: int) -> bool:
    with suppress(FileNotFoundError):
        return "TracerPid:\t0\n" not in Path(f"/proc/{pid}/status").read_text()
    return True


def _limit_files(size: int) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # as Python does by itself: the call gives EFBIG
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def _limit_memory(more: int) -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + more, used + more))


def _seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _signal_after(number: signal.Signals, seconds: float, arrived: Path) -> None:
    def send(*_: object) -> None:
        arrived.touch()
        os.kill(os.getpid(), number)

    signal.signal(signal.SIGVTALRM, send)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)


def _turn_the_clock_back() -> None:
    now, begin = time.time, time.time()
    time.time = lambda: begin - 3600 - (now() - begin)


def chaos(folder: Path, every: int, n: int, seed: int) -> dict[str, dict]:
    """Inject faults; rows by kind: injected, survived, ended in one line, lost."""
    todo, rng = Chaos(folder), random.Random(seed)
    rows: dict[str, dict] = {}
    faults = (todo.failing_calls(every), todo.limits(n, rng), todo.signals(n, rng))
    for kind, what, trial in chain(*faults, todo.clock(), todo.two_writers()):
        row = rows.setdefault(kind, {"injected": 0, "went_on": 0, "stopped": 0, "lost": 0})
        row["injected"] += 1
        row["went_on" if trial.status == 0 else "stopped"] += 1
        try:
            todo.resumed(what, trial)
        except Lost as problem:
            row["lost"] += 1
            print(f"lost: {problem}", file=sys.stderr, flush=True)
            shutil.rmtree(todo.out, ignore_errors=True)
    return rows


def main() -> int:
    """Read the options, inject, print the table, store it."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture.chaos", description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="of the system calls of a kind")
    parser.add_argument("--n", type=int, default=40, help="limits of each kind, and signals")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path, help="folder to store the table in, such as results")
    args = parser.parse_args()
    if not shutil.which("strace"):
        print("chaos: strace must be installed, as it lets system calls fail, got none", file=sys.stderr)
        return 2
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    rows = chaos(folder, args.every, args.n, args.seed)
    for kind, row in rows.items():
        print(f"{kind:<20}{', '.join(f'{n} {name}' for name, n in row.items())}")
        if args.results:
            Results("chaos", args.results).put(kind, {"seed": args.seed, "every": args.every, **row})
    n_lost = sum(row["lost"] for row in rows.values())
    if not n_lost:
        shutil.rmtree(folder)
    return 1 if n_lost else 0


if __name__ == "__main__":
    sys.exit(main())
