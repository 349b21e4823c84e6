"""Kill training a hundred times, go on each time, and compare each byte with a run never interrupted."""

from __future__ import annotations

import argparse
import itertools
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.torture.children import Child, Reached, leftovers, while_saving
from tests.torture.jobs import Job, interval_of, make_jobs, newest_step
from tests.torture.power import Disk
from tests.training.interrupted import folder_bytes
from tinytx_course.results import Results

MANNERS = ("at any moment", "while saving", "process of its own", "power cut")
SHARES = (0.5, 0.25, 0.15, 0.1)


@dataclass(frozen=True)
class Kill:
    """One death.

    Attributes
    ----------
    manner, job : str
    reached : int or None
        The last step made; not known of a process of its own.
    saved : int
        The step of the newest checkpoint on disk afterwards.
    interval : int
        Steps between two checkpoints.
    half_written : bool
        Whether it was in the middle of writing or removing something.
    """

    manner: str
    job: str
    reached: int | None
    saved: int
    interval: int
    half_written: bool

    @property
    def lost(self) -> int | None:
        """Steps that have to be made again."""
        return None if self.reached is None else self.reached - self.saved


@dataclass(frozen=True)
class Reference:
    """A run that was never interrupted."""

    job: Job
    files: dict[str, bytes]
    interval: int
    seconds: float


class Lost(Exception):
    """A run that did not come to the same bytes."""


class Torture:
    """All runs, in one temporary folder.

    Parameters
    ----------
    folder : Path
    seed : int
        Of the moments.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.rng = random.Random(seed)
        self.log = folder / "log"
        self.reached = Reached()
        self.kills: list[Kill] = []
        self.n_folders = self.n_compared = 0
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
        until = len(self.kills) + n_kills
        while len(self.kills) < until:
            out = self._new_folder(on_disk=manner == "power cut")
            while self._killed_once(manner, whole, out, n_left=until - len(self.kills)):
                pass
            self._compare(out, whole, manner)

    def at_every_file_operation(self, whole: Reference, numbers: Iterator[int]) -> None:
        """Kill a new run just before its first file operation, another before its second, and so on."""
        for number in numbers:
            out = self._new_folder()
            self.reached.step = 0
            child = Child(whole.job.command(out), self.log, self.reached, kill_at=number)
            child.wait()
            if child.status == 0:
                return  # it has fewer operations than that
            self._note("before each file operation", whole, out)
            self._bring_to_its_end(out, whole.job)
            self._compare(out, whole, f"file operation {number}")

    def row(self) -> dict:
        """What came of the kills since the row before."""
        kills, self.kills = self.kills, []
        n_runs, self.n_compared = self.n_compared, 0
        lost = [kill.lost for kill in kills if kill.lost is not None]
        return {
            "manner": kills[0].manner,
            "kills": len(kills),
            "runs": n_runs,
            "half_written": sum(kill.half_written for kill in kills),
            "mean_steps_lost": sum(lost) / len(lost) if lost else None,
            "most_steps_lost": max(lost, default=None),
            "interval": max(kill.interval for kill in kills),
            "deaths": [[kill.job, kill.reached, kill.saved] for kill in kills],
        }

    def _killed_once(self, manner: str, whole: Reference, out: Path, n_left: int) -> bool:
        """Resume a run and kill it; False when it came to its end, or may."""
        if n_left == 0:
            self._bring_to_its_end(out, whole.job)
            return False
        forked = manner != "process of its own"
        self.reached.step = newest_step(out)
        n_printed = self.log.stat().st_size
        child = Child(whole.job.command(out), self.log, self.reached if forked else None)
        if not forked:  # importing torch takes longer than training: wait until it tells its plan
            child.wait(until=lambda: self.log.stat().st_size > n_printed)
        saving = manner == "while saving" or manner == "power cut" and self.rng.random() < 0.5
        moment: Callable[[], bool] = while_saving(out, self.rng) if saving else lambda: False
        alive = child.wait(300.0 if saving else self.rng.uniform(0, whole.seconds), moment)
        if not alive:
            self._check_end(child, f"{whole.job.name}, {manner}")
            return False
        if manner == "power cut":
            self._cut_power(child)
        else:
            child.kill()
        self._note(manner, whole, out, known=forked)
        return True

    def _cut_power(self, child: Child) -> None:
        assert self.disk is not None
        child.send(signal.SIGSTOP)
        left = self.disk.freeze_copy()
        child.kill()
        self.disk.come_back(left)

    def _note(self, manner: str, whole: Reference, out: Path, *, known: bool = True) -> None:
        reached = self.reached.step if known else None
        kill = Kill(manner, whole.job.name, reached, newest_step(out), whole.interval, bool(leftovers(out)))
        if kill.lost is not None and kill.lost > whole.interval:
            raise Lost(f"more than one interval of {whole.interval} steps was lost: {kill}")
        self.kills.append(kill)

    def _bring_to_its_end(self, out: Path, job: Job) -> None:
        child = Child(job.command(out), self.log, self.reached)
        child.wait()
        self._check_end(child, job.name)

    def _check_end(self, child: Child, what: str) -> None:
        if child.running():
            child.kill()
        if child.status != 0:
            raise Lost(f"{what}: ended with {child.status}; {self.log.read_text()[-2000:]}")

    def _compare(self, out: Path, whole: Reference, manner: str) -> None:
        found = folder_bytes(out)
        names = sorted({*found, *whole.files})
        other = [name for name in names if found.get(name) != whole.files.get(name)]
        if other:
            raise Lost(f"{whole.job.name}, {manner}: other bytes in {', '.join(other)}")
        shutil.rmtree(out)
        self.n_folders += 1
        self.n_compared += 1

    def _new_folder(self, *, on_disk: bool = False) -> Path:
        if not on_disk:
            return self.folder / f"run-{self.n_folders}"
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
        for manner, share in zip(MANNERS, SHARES, strict=True) if n_kills else ():
            if manner == "power cut" and (problem := Disk.problem()):
                print(f"power cuts are left out: {problem}")
                continue
            for job, n in zip(jobs, shares(n_kills * share, len(jobs)), strict=True):
                if n:
                    todo.in_a_manner(manner, todo.reference(job), n)
            yield todo.row()
        if every:
            todo.at_every_file_operation(todo.reference(jobs[0]), itertools.count(0, every))
            yield {**todo.row(), "every": every}
    finally:
        if todo.disk is not None:
            todo.disk.unmount()


def shares(total: float, n: int) -> list[int]:
    """A number, at least 1, in n whole parts, the first of them the larger ones."""
    whole = max(1, round(total))
    return [whole // n + (i < whole % n) for i in range(n)]


def line(row: dict) -> str:
    """A row for a person."""
    mean, most = row["mean_steps_lost"], row["most_steps_lost"]
    lost = "steps lost not known" if mean is None else f"steps lost {mean:.1f} on average, {most} at most"
    return (
        f"{row['manner']:<28}{row['kills']:>4} kills, {row['half_written']} in mid-write; {lost}, "
        f"of {row['interval']} between checkpoints; {row['runs']} runs ended with the bytes of the whole one"
    )


def main() -> int:
    """Read the options, kill, print the table, keep it."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="random kills")
    parser.add_argument("--every", type=int, default=1, help="file operations between aimed kills; 0: none")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--results", type=Path, help="folder to keep the table in, such as results")
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
