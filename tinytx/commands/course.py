"""The commands around the course: `course`, `lab`, `release`, `check`."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tinytx.commands.options import Answer, add_command


def add_course(commands: Any) -> None:
    """`course`, `lab`, `release` and `check`."""
    sub = add_command(commands, "course", course)
    sub.add_argument("lesson", nargs="*", help="numbers or names of lessons; all when left out")
    sub.add_argument("--budget", help="smoke, laptop, study, gpu, or a number of seconds")
    add_command(commands, "lab", lab)

    sub = add_command(commands, "release", release)
    sub.add_argument("folder", type=Path, help="new or empty folder")
    sub.add_argument("--solved", action="store_true", help="with the solutions in place of the stubs")

    sub = add_command(commands, "check", check)
    sub.add_argument("path", type=Path, help="a filled-in notebook, or a folder of copies")
    sub.add_argument("--csv", type=Path, help="for a folder: file with a row a copy (FOLDER-grades.csv)")
    sub.add_argument("--seconds", type=float, default=20.0, help="time for each exercise")
    sub.add_argument("--memory", type=int, default=2048, help="memory for each exercise, in MiB")


def course(args: argparse.Namespace) -> Answer:
    """Run the notebooks and write the site."""
    from tinytx.teaching.course import run_course
    from tinytx.training.budgets import parse_budget

    report = run_course(args.lesson, budget=args.budget and str(parse_budget(args.budget)))
    return {**report.to_dict(), "exit_status": 0 if report.ok else 1}, f"open {report.index}"


def lab(args: argparse.Namespace) -> Answer:
    """Open a personal copy of the course in JupyterLab."""
    from tinytx.teaching.course import open_lab

    return {"exit_status": open_lab()}, "the lab is closed"


def release(args: argparse.Namespace) -> Answer:
    """Write the learner's edition of the course, or the solved one, into a folder."""
    from tinytx.teaching.release import write_release

    written = write_release(args.folder, solved=args.solved)
    return written.to_dict(), str(written)


@contextlib.contextmanager
def _ending_in_order() -> Iterator[None]:
    """Let `kill` and a closed terminal end a command with its processes and temporary folders."""

    def end(number: int, frame: object) -> None:
        sys.exit(128 + number)

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        numbers = []  # only the main thread may handle signals
    before = {number: signal.getsignal(number) for number in numbers}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@_ending_in_order()
def check(args: argparse.Namespace) -> Answer:
    """Grade a filled-in notebook, or a folder of copies."""
    from tinytx.teaching.grading import Limits, grade_folder, grade_notebook

    limits = Limits(seconds=args.seconds, mebibytes=args.memory)
    if args.path.is_dir():
        report = grade_folder(args.path, csv=args.csv, limits=limits)
        return report.to_dict(), str(report)
    if args.csv is not None:
        raise ValueError(f"--csv goes with a folder of copies, got the file {args.path}")
    copy = grade_notebook(args.path, limits=limits)
    return copy.to_dict(), str(copy)
