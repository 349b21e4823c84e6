"""Kill training a hundred times, resume each time, and compare each byte with a run never interrupted."""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.tinytx_run.interrupted import folder_bytes
from tests.torture.children import (
    Lost,
    become_a_new_python,
    compare,
    count_steps,
    die_before_file_operation,
    kill,
    leftovers,
    start,
    wait,
    while_saving,
)
from tests.torture.jobs import Job, interval_of, make_jobs, newest_step
from tests.torture.power import Disk
from tinytx_course.results import Results

SHARES = {"at any moment": 0.5, "while saving": 0.25, "process of its own": 0.15, "power cut": 0.1}


@dataclass(frozen=True)
class Kill:
    """One death: the last step made, None where not known, and the step of the newest checkpoint on disk."""

    job: str
    reached: int | None
    saved: int
    half_written: bool  # it was in the middle of writing or removing something

    @property
    def lost(self) -> int | None:
        """Steps that have to be made again."""
        return None if self.reached is None else self.reached - self.saved


@dataclass(frozen=True)
class Reference:
    """A run that was never interrupted."""

    job: Job
    files: dict[str, bytes]
    interval: int  # steps between two checkpoints
    seconds: float


class Torture:
    """All runs, in one temporary folder; the seed is that of the moments."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.rng = random.Random(seed)
        self.log = folder / "log"
        self.reached = multiprocessing.get_context("fork").RawValue("q")
        self.kills: list[Kill] = []
        self.n_compared = 0
        self.disk: Disk | None = None
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

    def in_a_manner(self, manner: str, whole: Reference, n_kills: int) -> None:
        """Kill runs of a job until there were so many deaths; the last run is brought to its end, too."""
        while n_kills:
            out, ended = self._new_folder(on_disk=manner == "power cut"), False
            while n_kills and not ended:
                ended = not self._killed(manner, whole, out)
                n_kills -= not ended
            if not ended:
                self._bring_to_its_end(out, whole.job)
            self._compare(out, whole, manner)

    def at_every_file_operation(self, whole: Reference, every: int) -> None:
        """Kill a new run just before its first file operation, another before a later one, and so on."""
        for number in itertools.count(0, every):
            out = self._new_folder()
            self.reached.value = 0
            first = partial(count_steps, self.reached), partial(die_before_file_operation, number)
            process = start(whole.job.command(out), self.log, *first)
            wait(process)
            if process.exitcode == 0:
                return  # it has fewer operations than that
            self._note(whole, out)
            self._bring_to_its_end(out, whole.job)
            self._compare(out, whole, f"file operation {number}")

    def row(self, manner: str) -> dict:
        """What came of the kills since the row before."""
        kills, self.kills = self.kills, []
        n_runs, self.n_compared = self.n_compared, 0
        lost = [kill.lost for kill in kills if kill.lost is not None]
        return {
            "manner": manner,
            "kills": len(kills),
            "runs": n_runs,
            "half_written": sum(kill.half_written for kill in kills),
            "mean_steps_lost": sum(lost) / len(lost) if lost else None,
            "most_steps_lost": max(lost, default=None),
            "interval": max(self._references[kill.job].interval for kill in kills),
            "deaths": [[kill.job, kill.reached, kill.saved] for kill in kills],
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
        if manner == "while saving" or manner == "power cut" and self.rng.random() < 0.5:
            alive = wait(process, until=while_saving(out, self.rng).__next__)
        else:
            alive = wait(process, self.rng.uniform(0, whole.seconds))
        if not alive:
            self._check_end(process, f"{whole.job.name}, {manner}")
        elif self.disk is not None and manner == "power cut":
            os.kill(process.pid, signal.SIGSTOP)
            left = self.disk.freeze_copy()
            kill(process)
            self.disk.come_back(left)
        else:
            kill(process)
        if alive:
            self._note(whole, out, known=forked)
        return alive

    def _note(self, whole: Reference, out: Path, *, known: bool = True) -> None:
        death = Kill(
            whole.job.name, self.reached.value if known else None, newest_step(out), bool(leftovers(out))
        )
        if death.lost is not None and death.lost > whole.interval:
            raise Lost(f"more than one interval of {whole.interval} steps was lost: {death}")
        self.kills.append(death)

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

    def _new_folder(self, *, on_disk: bool = False) -> Path:
        if not on_disk:
            return self.folder / "run"
        if self.disk is None:
            self.disk = Disk(self.folder)
        return self.disk.mount_point / "run"


def torture(folder: Path, n_kills: int, seed: int, every: int) -> Iterator[dict]:
    """Kill at random, in all manners and all jobs, then before every ``every``-th file operation of one.

    Yields
    ------
    dict
        A row for each manner, as soon as it is done.
    """
    todo = Torture(folder, seed)
    try:
        jobs = make_jobs(folder)
        for manner, share in SHARES.items() if n_kills else ():
            if manner == "power cut" and (problem := Disk.problem()):
                print(f"power cuts are left out: {problem}")
                continue
            n = max(1, round(n_kills * share))
            for i, job in enumerate(jobs[:n]):
                todo.in_a_manner(manner, todo.reference(job), len(range(i, n, len(jobs))))
            yield todo.row(manner)
        if every:
            todo.at_every_file_operation(todo.reference(jobs[0]), every)
            yield {**todo.row("before each file operation"), "every": every}
    finally:
        if todo.disk is not None:
            todo.disk.unmount()


def line(row: dict) -> str:
    """A row for a person."""
    mean, most = row["mean_steps_lost"], row["most_steps_lost"]
    lost = "steps lost not known" if mean is None else f"steps lost {mean:.1f} on average, {most} at most"
    return (
        f"{row['manner']:<28}{row['kills']:>4} kills, {row['half_written']} in mid-write; {lost}, "
        f"of {row['interval']} between checkpoints; {row['runs']} runs ended with the bytes of the whole one"
    )


def main() -> int:
    """Read the options, kill, print the table, store it."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="random kills")
    parser.add_argument("--every", type=int, default=1, help="file operations between aimed kills; 0: none")
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
