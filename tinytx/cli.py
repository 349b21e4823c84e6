"""The command ``tinytx``: reads arguments, calls the package, prints what came back."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from tinytx.commands.bench import add_bench
from tinytx.commands.course import add_course
from tinytx.commands.data import add_data
from tinytx.commands.experiments import add_experiments
from tinytx.commands.models import add_readers
from tinytx.commands.options import Parser
from tinytx.commands.training import add_training


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns
    -------
    int
        0 when done; 2 after bad input, told in one line on standard error; 130 when stopped by hand.
    """
    try:
        args = build_parser().parse_args(argv)
        answer, text = args.command(args)
    except KeyboardInterrupt as stop:
        print(f"tinytx: {stop or 'stopped by hand'}", file=sys.stderr)
        return 130
    except (ValueError, OSError) as error:
        print(f"tinytx: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    status = answer.pop("exit_status", 0)
    if args.json:
        print(json.dumps(answer, ensure_ascii=False))
    elif text is not None:  # None: the command has written line by line
        print(text)
    return status


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands; ``args.command`` of what it reads is the function to call."""
    parser = Parser(prog="tinytx", description="A small transformer to learn from, and its course.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for add in (add_training, add_experiments, add_readers, add_data, add_bench, add_course):
        add(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
