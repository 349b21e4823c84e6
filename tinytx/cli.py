"""The command ``tinytx``: reads arguments, calls the package, prints what came back."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tinytx.commands.bench import add_bench
from tinytx.commands.course import add_course
from tinytx.commands.data import add_data
from tinytx.commands.experiments import add_experiments
from tinytx.commands.models import add_readers
from tinytx.commands.options import Parser
from tinytx.commands.training import add_training

# One that has lost another process is ended by torchrun, which names whoever ended first as the culprit.
SECONDS_TO_BE_ENDED = 10


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns
    -------
    int
        0 when done; 2 after bad input, told in one line on standard error; 130 when stopped by hand.
    """
    args = argparse.Namespace()
    try:
        args = build_parser().parse_args(argv)
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            answer, text = args.command(args)
    except KeyboardInterrupt as stop:
        happened = getattr(stop, "happened", "stopped by hand")
        if _process_number():
            return 130
        print(f"tinytx: {happened}{_how_to_go_on(args, argv)}", file=sys.stderr)
        return 130
    except (ValueError, OSError) as error:
        who = f"process {number}: " if (number := _process_number()) else ""
        print(f"tinytx: {who}error: {' '.join(str(error).split())}", file=sys.stderr, flush=True)
        if isinstance(error, ConnectionError):
            time.sleep(SECONDS_TO_BE_ENDED)
        return 2
    status = answer.pop("exit_status", 0)
    if _process_number():
        return status
    if args.json:
        print(json.dumps(answer, ensure_ascii=False))
    elif text is not None:  # None: the command has written line by line
        print(text)
    return status


def _show_warning(message: Warning | str, *where: Any, **more: Any) -> None:
    """A warning in one line, as errors are told."""
    if not _process_number():
        print(f"tinytx: warning: {' '.join(str(message).split())}", file=sys.stderr, flush=True)


def _process_number() -> int:
    """Which one this is of the processes that torchrun started; 0 for one alone."""
    return int(os.environ["RANK"]) if "TORCHELASTIC_RUN_ID" in os.environ else 0


def _how_to_go_on(args: argparse.Namespace, argv: Sequence[str] | None) -> str:
    """The command that goes on with a run, where there is one to go on with."""
    if not hasattr(args, "resume") or not any(args.out.glob("step-*")):
        return ""
    words = sys.argv[1:] if argv is None else list(argv)
    if not args.resume:
        words.append("--resume")
    program = ["python", "-m", "tinytx.cli"] if Path(sys.argv[0]).name == "cli.py" else ["tinytx"]
    if "TORCHELASTIC_RUN_ID" in os.environ:
        program = ["torchrun", f"--nproc-per-node={os.environ['LOCAL_WORLD_SIZE']}", "-m", "tinytx.cli"]
    return f"; to go on: {shlex.join([*program, *words])}"


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands; ``args.command`` of what it reads is the function to call."""
    parser = Parser(prog="tinytx", description="A small transformer to learn from, and its course.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for add in (add_training, add_experiments, add_readers, add_data, add_bench, add_course):
        add(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
