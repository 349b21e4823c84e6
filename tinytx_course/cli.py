"""The command ``tinytx-course``: run, lab, check, hint, inventory, survey, release, site, kit, publish."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tinytx import __version__
from tinytx.settings import require
from tinytx_course import PACKAGES
from tinytx_run.command import Answer, Parser, add_command, folder_name
from tinytx_run.command import run as run_command


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command of `tinytx-course`; 2 and one line where a package of the extra `course` is missing."""
    # Imported by nbformat through jsonschema: it takes a second, and notebooks hold no addresses to check.
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    try:
        return run_command(build_parser(), argv)
    except ModuleNotFoundError as missing:
        if (missing.name or "tinytx").startswith(PACKAGES):
            raise  # a mistake of ours
        needs = f"tinytx-course needs the extra `course`, got no package {missing.name}"
        print(f"tinytx-course: error: {needs}: pip install 'tinytx[course]'", file=sys.stderr)
        return 2


def build_parser() -> Parser:
    """Return the parser of all commands; ``args.command`` of what it reads is the function to call."""
    parser = Parser(prog="tinytx-course", description="A course on transformers in Jupyter notebooks.")
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands: Any = parser.add_subparsers(required=True, metavar="COMMAND")
    sub = add_command(commands, "run", run)
    sub.add_argument("lesson", nargs="*", help="numbers or names of lessons; all when left out")
    sub.add_argument("--budget", help="smoke, laptop, study, gpu, or a number of seconds")
    sub = add_command(commands, "lab", lab)
    sub.add_argument("--no-browser", action="store_true", help="print the address only")
    sub.add_argument("--port", type=int, help="by default the first free one from 8888 on")
    sub.add_argument("--ip", help="address to listen at; by default this machine alone can connect")

    sub = add_command(commands, "check", check)
    sub.add_argument("path", type=folder_name, help="a filled-in notebook (or Python file), or a folder")
    words = "for a folder: NAME.csv, a row a copy (FOLDER-grades.csv), or NAME.html, a page and NAME.csv"
    sub.add_argument("--report", type=Path, help=words)
    sub.add_argument("--lesson", help="grade as copies of this lesson; by default the one that most name")
    sub.add_argument("--seconds", type=float, default=20.0, help="time for each exercise")
    sub.add_argument("--memory", type=int, default=2048, help="memory for each exercise, in MiB")

    sub = add_command(commands, "hint", hint)
    sub.add_argument("path", type=Path, help="a notebook, or a Python file with the function")
    sub.add_argument("--exercise", required=True, help="its name, such as causal_mask")

    sub = add_command(commands, "inventory", inventory)
    sub.add_argument("folder", type=folder_name, help="made where it does not exist")
    sub = add_command(commands, "survey", survey)
    sub.add_argument("answers", type=Path, help="a CSV file: learner, form, time, and a column an item")
    sub.add_argument("--report", type=Path, help="NAME.html, a page to read and print")

    sub = add_command(commands, "release", release)
    sub.add_argument("folder", type=folder_name, help="new or empty folder")
    sub.add_argument("--solved", action="store_true", help="with the solutions in place of the stubs")
    sub = add_command(commands, "site", site)
    sub.add_argument("folder", type=folder_name, help="new or empty folder")
    form = sub.add_mutually_exclusive_group()
    form.add_argument("--zip", action="store_true", help="write FOLDER.zip instead")
    form.add_argument(
        "--pdf", action="store_true", help="write FOLDER.pdf instead, a booklet; needs Chromium"
    )
    sub = add_command(commands, "kit", kit)
    sub.add_argument("folder", type=folder_name, help="new or empty folder")
    sub.add_argument("--start", default="09:00", help="when sessions begin, 09:00 by default")
    sub.add_argument("--schedule", help="write only this one: afternoon, two-days, six-weeks or semester")
    words = "a CSV file of minutes that you measured: lesson,section,minutes"
    sub.add_argument("--minutes", type=Path, help=words)
    sub = add_command(commands, "publish", publish)
    sub.add_argument("lesson", nargs="*", help="numbers or names of lessons; all when left out")
    return parser


def run(args: argparse.Namespace) -> Answer:
    """Run the notebooks and write the site."""
    from tinytx_course.building.course import run_course
    from tinytx_run.recipes import parse_budget

    report = run_course(args.lesson, budget=args.budget and str(parse_budget(args.budget)))
    return {**report.to_dict(), "exit_status": 0 if report.ok else 1}, f"open {report.index}"


def lab(args: argparse.Namespace) -> Answer:
    """Open a personal copy of the course in JupyterLab."""
    from tinytx_course.building.course import open_lab

    require(args.port is None or 0 <= args.port < 2**16, "--port must be from 0 to 65535", args.port)
    options = [f"--{name}={value}" for name in ("port", "ip") if (value := getattr(args, name)) is not None]
    options += ["--no-browser"] if args.no_browser else []
    return {"exit_status": open_lab(options=options)}, "JupyterLab is closed"


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
    from tinytx_course.grading.grade import grade_folder, grade_notebook
    from tinytx_course.grading.running import Limits

    limits = Limits(seconds=args.seconds, mebibytes=args.memory)
    lesson = None if args.lesson is None else _lesson_number(args.lesson)
    if args.path.is_dir():
        report = grade_folder(args.path, report=args.report, lesson=lesson, limits=limits)
        return report.to_dict(), str(report)
    if args.report is not None:
        raise ValueError(f"--report needs a folder of copies, got the file {args.path}")
    copy = grade_notebook(args.path, lesson=lesson, limits=limits)
    return copy.to_dict(), str(copy)


@_ending_in_order()
def hint(args: argparse.Namespace) -> Answer:
    """Judge one exercise and give up to three hints of rising help, never the answer."""
    from tinytx_course.grading.hint import give_hints

    given = give_hints(args.path, args.exercise)
    return given.to_dict(), str(given)


def _lesson_number(word: str) -> int:
    from tinytx_course.exercises.checking import EXERCISES

    with_exercises = sorted({exercise.lesson for exercise in EXERCISES.values()})
    if not word.isdecimal() or int(word) not in with_exercises:
        known = ", ".join(f"{number:02d}" for number in with_exercises)
        raise ValueError(f"--lesson must be the number of a lesson with exercises, {known}, got {word!r}")
    return int(word)


def inventory(args: argparse.Namespace) -> Answer:
    """Write the concept inventory, two forms with answer sheet and key, to be printed."""
    from tinytx_course.inventory import write_forms

    paths = write_forms(args.folder)
    return {"files": [str(path) for path in paths]}, f"open {paths[0]}"


def survey(args: argparse.Namespace) -> Answer:
    """Analyse answers to the concept inventory, before and after: normalised gain, items, misconceptions."""
    from tinytx_course.inventory.forms import write_report
    from tinytx_course.inventory.survey import analyse

    found = analyse(args.answers)
    text = str(found)
    if args.report is not None:
        text += f"\nopen {write_report(found, args.report)}"
    return found.to_dict(), text


def release(args: argparse.Namespace) -> Answer:
    """Write the learner's edition of the course, or the solved one, into a folder."""
    from tinytx_course.building.release import write_release

    written = write_release(args.folder, solved=args.solved)
    return written.to_dict(), str(written)


def site(args: argparse.Namespace) -> Answer:
    """Write the published notebooks as pages that need no server and no network."""
    from tinytx_course.building.release import write_pages

    path = write_pages(args.folder, zipped=args.zip, printed=args.pdf)
    return {"path": str(path)}, f"the pages are in {path}" if args.zip else f"open {path}"


def kit(args: argparse.Namespace) -> Answer:
    """Write what a teacher needs for a class, as pages that need no server and no network."""
    from tinytx_course.kit import write_kit

    path = write_kit(args.folder, start=args.start, minutes=args.minutes, schedule=args.schedule)
    return {"path": str(path)}, f"open {path}"


def publish(args: argparse.Namespace) -> Answer:
    """Execute the notebooks afresh and write them and their figures; for authors."""
    from tinytx_course.building.course import publish as publish_course

    report = publish_course(args.lesson)
    return {**report.to_dict(), "exit_status": 0 if report.ok else 1}, None


if __name__ == "__main__":
    sys.exit(main())
