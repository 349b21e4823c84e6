"""Kill training a hundred times, refuse it files and memory, and compare each byte with a whole run."""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import NamedTuple

from tests.tinytx_run.interrupted import folder_bytes
from tests.torture.children import (
    Lost,
    at_file_operation,
    become_a_new_python,
    compare,
    count_steps,
    die,
    kill,
    leftovers,
    limit_files,
    limit_memory,
    refuse,
    start,
    stop,
    wait,
)
from tests.torture.jobs import Job, interval_of, make_jobs, newest_step
from tests.torture.power import Disk
from tinytx_course.results import Results

SHARES = {"at any moment": 0.75, "process of its own": 0.25}
FAULTS = {"before each file operation": die, "no file operation": refuse, "power cut": stop}


class Death(NamedTuple):
    """The last step made, None where not known, and the step of the newest checkpoint on disk."""

    job: str
    reached: int | None
    saved: int
    half_written: bool  # it was in the middle of writing or removing something


class Reference(NamedTuple):
    """A run that was never interrupted."""

    job: Job
    files: dict[str, bytes]
    interval: int  # steps between two checkpoints
    seconds: float


class Torture:
    """All runs, in one temporary folder; the seed is that of the moments."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.log, self.rng = folder, folder / "log", random.Random(seed)
        self.reached, self.met = (multiprocessing.get_context("fork").RawValue("q") for _ in "12")
        self.deaths: list[Death] = []
        self.n_compared = 0
        self._references: dict[str, Reference] = {}

    def reference(self, job: Job) -> Reference:
        """Run a job without interrupting it, the first time it is asked for."""
        if job.name not in self._references:
            out = self.folder / ("lm" if job.name == "causal" else f"whole-{job.name}")
            begin = time.monotonic()
            self._bring_to_its_end(out, job)
            seconds = time.monotonic() - begin
            self._references[job.name] = Reference(job, folder_bytes(out), interval_of(out), seconds)
        return self._references[job.name]

    def at_random(self, manner: str, whole: Reference, n_kills: int) -> None:
        """Kill runs of a job until there were so many deaths; the last run is brought to its end, too."""
        while n_kills:
            out, ended = self.folder / "run", False
            while n_kills and not ended:
                ended = not self._killed(manner, whole, out)
                n_kills -= not ended
            if not ended:
                self._bring_to_its_end(out, whole.job)
            self._compare(out, whole, manner)

    def at_file_operations(
        self, whole: Reference, act: Callable[[], object], every: int, disk: Disk | None = None
    ) -> None:
        """Let a run act just before its first file operation, a new one before a later one, and so on."""
        for number in itertools.count(0, every):
            self.met.value = 0
            fault = partial(at_file_operation, number, act, self.met)
            self.meets(whole, fault, f"{act.__name__} at file operation {number}", disk)
            if not self.met.value:
                return  # it has fewer operations than that

    def meets(
        self, whole: Reference, fault: Callable[[], object], what: str, disk: Disk | None = None
    ) -> None:
        """Start a new run with a fault; it may go on, be killed or say in one line why it ends.

        On a disk it stops itself: then the power fails.
        """
        out = (self.folder if disk is None else disk.mount_point) / "run"
        self.reached.value = 0
        self.log.write_bytes(b"")  # it is a file, too, whose size may be limited
        process = start(whole.job.command(out), self.log, partial(count_steps, self.reached), fault)
        alive = wait(process, until=lambda: disk is not None and bool(self.met.value))
        if alive and disk is not None:
            left = disk.freeze_copy()
            kill(process)
            disk.come_back(left)
        said = self.log.read_text(errors="replace")
        end = process.exitcode, said.count("tinytx: error: "), "Traceback" in said
        if end not in ((0, 0, False), (2, 1, False), (-signal.SIGKILL, 0, False)):
            raise Lost(f"{what}: ended with {process.exitcode}, said {said[-700:]!r}")
        if process.exitcode:
            self._note(whole, out)
        self._bring_to_its_end(out, whole.job)
        self._compare(out, whole, what)

    def row(self, manner: str) -> dict:
        """What came of the deaths since the row before."""
        deaths, self.deaths = self.deaths, []
        n_runs, self.n_compared = self.n_compared, 0
        lost = [death.reached - death.saved for death in deaths if death.reached is not None]
        return {
            "manner": manner,
            "kills": len(deaths),
            "runs": n_runs,
            "half_written": sum(death.half_written for death in deaths),
            "mean_steps_lost": sum(lost) / len(lost) if lost else None,
            "most_steps_lost": max(lost, default=None),
            "interval": max(whole.interval for whole in self._references.values()),
            "deaths": [death[:3] for death in deaths],
        }

    def _killed(self, manner: str, whole: Reference, out: Path) -> bool:
        """Resume a run and kill it; False when it came to its end before."""
        forked = manner != "process of its own"
        self.reached.value = newest_step(out)
        n_printed = self.log.stat().st_size
        command = whole.job.command(out)
        first = partial(count_steps, self.reached) if forked else partial(become_a_new_python, command)
        process = start(command, self.log, first)
        if not forked:  # importing torch takes longer than training: wait until it prints its plan
            wait(process, until=lambda: self.log.stat().st_size > n_printed)
        if not wait(process, self.rng.uniform(0, whole.seconds)):
            self._check_end(process, f"{whole.job.name}, {manner}")
            return False
        kill(process)
        self._note(whole, out, known=forked)
        return True

    def _note(self, whole: Reference, out: Path, *, known: bool = True) -> None:
        reached, saved = self.reached.value if known else None, newest_step(out)
        death = Death(whole.job.name, reached, saved, bool(leftovers(out)))
        if reached is not None and reached - saved > whole.interval:
            raise Lost(f"more than one interval of {whole.interval} steps was lost: {death}")
        self.deaths.append(death)

    def _bring_to_its_end(self, out: Path, job: Job) -> None:
        process = start(job.command(out), self.log)
        wait(process)
        self._check_end(process, job.name)

    def _check_end(self, process: BaseProcess, what: str) -> None:
        if process.is_alive():
            kill(process)
        if process.exitcode != 0:
            raise Lost(f"{what}: ended with {process.exitcode}; {self.log.read_text()[-2000:]}")

    def _compare(self, out: Path, whole: Reference, manner: str) -> None:
        compare(out, whole.files, f"{whole.job.name}, {manner}")
        self.n_compared += 1


def torture(folder: Path, n_kills: int, seed: int, every: int) -> Iterator[dict]:
    """Kill at random, all jobs; let every ``every``-th file operation of one meet a fault; leave little room.

    Yields
    ------
    dict
        A row for each manner, as soon as it is done.
    """
    todo, jobs = Torture(folder, seed), make_jobs(folder)
    for manner, share in SHARES.items():
        n = max(1, round(n_kills * share))
        for i, job in enumerate(jobs[:n]):
            todo.at_random(manner, todo.reference(job), len(range(i, n, len(jobs))))
        yield todo.row(manner)
    whole = todo.reference(jobs[0])
    for manner, act in FAULTS.items():
        if act is stop and (problem := Disk.problem()):
            print(f"power cuts are left out: {problem}")
            continue
        disk = Disk(folder) if act is stop else None
        try:
            todo.at_file_operations(whole, act, every, disk)
        finally:
            if disk is not None:
                disk.unmount()
        yield {**todo.row(manner), "every": every}
    for _ in range(max(1, n_kills // 5)):
        size = todo.rng.randrange(10_000, max(map(len, whole.files.values())))  # more than it prints
        more = todo.rng.randrange(1, 60)
        todo.meets(whole, partial(limit_files, size), f"files of at most {size} bytes")
        todo.meets(whole, partial(limit_memory, more << 20), f"{more} MB more")
    yield todo.row("little room")


def line(row: dict) -> str:
    """A row for a person."""
    mean, most = row["mean_steps_lost"], row["most_steps_lost"]
    lost = "steps lost not known" if mean is None else f"steps lost {mean:.1f} on average, {most} at most"
    return (
        f"{row['manner']:<28}{row['kills']:>4} ends, {row['half_written']} in mid-write; {lost}, "
        f"of {row['interval']} between checkpoints; {row['runs']} runs ended with the bytes of the whole one"
    )


def main() -> int:
    """Read the options, kill, print the table, store it."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="random kills")
    parser.add_argument("--every", type=int, default=1, help="file operations between aimed faults")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--results", type=Path, help="folder to store the table in, such as results")
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="torture-"))
    try:
        for row in torture(folder, args.kills, args.seed, args.every):
            print(line(row), flush=True)
            if args.results:
                Results("torture", args.results).put(row["manner"], {"seed": args.seed, **row})
    except Lost as problem:
        print(f"torture: {problem}; see {folder}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
