"""The frame of a command: arguments, one JSON object or a text, one line for each error.

Each command is a function that gives a dict for ``--json`` and a text for people. `run` calls it and turns
every error of the user, the disk or the memory into one line and exit status 2.
"""

from __future__ import annotations

import argparse
import codecs
import io
import json
import os
import re
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

Answer = tuple[dict[str, Any], str | None]  # what --json prints, and what a person reads
Command = Callable[[argparse.Namespace], Answer]

# One that has lost another process is ended by torchrun, which names whoever ended first as the culprit.
SECONDS_TO_BE_ENDED = 10


def _spell(error: UnicodeError) -> tuple[str, int]:
    """What stands for letters that an output cannot hold: ``#`` for a bar, else an escape of Python."""
    assert isinstance(error, UnicodeEncodeError)
    letters = re.sub("[\u2580-\u259f]", "#", error.object[error.start : error.end])
    return letters.encode("ascii", "backslashreplace").decode(), error.end


codecs.register_error("tinytx", _spell)


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line, like all others."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message} (see {self.prog} --help)")

    def read(self, argv: Sequence[str]) -> argparse.Namespace:
        """Read arguments; ``--option=--``, from which argparse makes an empty list, is refused."""
        for word in argv:
            if word.startswith("--") and word.partition("=")[2] == "--":
                self.error(f"{word[:-3]} must have a value, got --")
        return self.parse_args(argv)


def add_command(commands: Any, name: str, function: Command) -> Parser:
    """Add a command whose help is the docstring of its function."""
    words = (function.__doc__ or "").strip()
    sub = commands.add_parser(name, help=words, description=words)
    sub.set_defaults(command=function)
    sub.add_argument("--json", action="store_true", help="print one JSON object on standard output")
    return sub


def numbers(text: str) -> list[int]:
    """Read ``50,200`` as a list."""
    return [int(part) for part in text.split(",")]


def words(text: str) -> list[str]:
    """Read ``bad,good`` as a list."""
    return [part.strip() for part in text.split(",")]


def folder_name(word: str) -> Path:
    """Read the name of a folder; for an empty one, `Path` would give the current folder."""
    if not word.strip():
        raise argparse.ArgumentTypeError(f"must name a folder, got {word!r}")
    return Path(word)


def name_or_folder(word: str) -> str:
    """Read a published name or a folder as it is written: a `Path` drops the ``./`` that tells them apart."""
    folder_name(word)
    return word


def run(parser: Parser, argv: Sequence[str] | None = None) -> int:
    """Parse the arguments (by default those of the process), call the command they name, print its answer.

    Gives 0 when done, or when the reader of standard output is gone; 1 where `data verify` finds a fault; 2
    after an error, with one line on standard error; 130 after Ctrl-C.
    """
    args = argparse.Namespace()
    if isinstance(sys.stdout, io.TextIOWrapper):  # on Windows a file or a pipe may hold 256 letters only
        sys.stdout.reconfigure(errors="tinytx")
    try:
        args = parser.read(sys.argv[1:] if argv is None else argv)
        with warnings.catch_warnings():
            warnings.showwarning = partial(_show_warning, parser.prog)
            answer, text = args.command(args)
            status = answer.pop("exit_status", 0)
            in_full = str(getattr(sys.stdout, "encoding", "")).lower().startswith("utf")
            written = json.dumps(answer, ensure_ascii=not in_full) if args.json else text
            if written is not None:  # None: the command has printed line by line
                emit(written)
        return status
    except KeyboardInterrupt as stop:
        happened = getattr(stop, "happened", "interrupted")
        if not _rank():
            print(f"{parser.prog}: {happened}{_how_to_resume(args, argv)}", file=sys.stderr)
        return 130
    except BrokenPipeError:  # such as `tinytx ... | head -1`
        _forget_output()
        return 0
    except (ValueError, OSError, OverflowError, RecursionError, MemoryError, RuntimeError) as error:
        message = _message_of(error)
        if message is None:
            raise
        if not isinstance(error, ValueError):
            _forget_output()
        who = f"process {_rank()}: " if _rank() else ""
        print(f"{parser.prog}: {who}error: {message}", file=sys.stderr, flush=True)
        if isinstance(error, ConnectionError):
            time.sleep(SECONDS_TO_BE_ENDED)
        return 2


def reporter(args: argparse.Namespace) -> Callable[[str], None]:
    """A function that prints a line of progress: with ``--json`` on standard error."""
    stream = sys.stderr if args.json else sys.stdout
    return lambda line: print(line, file=stream, flush=True)


def emit(line: str) -> None:
    """Write a line to standard output at once; of several processes only the first writes."""
    if _rank():
        return
    if sys.stdout is None:
        raise ValueError("standard output must be open, got a closed one")
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _message_of(error: Exception) -> str | None:
    """An error in one line; None for a RuntimeError that is a mistake of ours."""
    message = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, OSError) and error.filename is not None:
        message = f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError | RecursionError | OverflowError):
        return f"{type(error).__name__}: {message}"
    if "create a primitive" in message:  # oneDNN, of products for which there is no room
        message = f"too little memory: {message}"
    of_user = any(word in message for word in ("memory", "allocate", "gloo"))
    return None if isinstance(error, RuntimeError) and not of_user else message


def _forget_output() -> None:
    """Let what Python would still flush at its end vanish, as its reader or its disk is gone."""
    if sys.stdout is sys.__stdout__ and sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _show_warning(
    who: str, message: Warning | str, category: type[Warning], *where: Any, **more: Any
) -> None:
    """Format warnings like errors: one line on standard error; one alone of tokens that are unknown."""
    from tinytx.tokenizer import UnknownTokensWarning

    if issubclass(category, UnknownTokensWarning):
        warnings.simplefilter("ignore", category)
    if not _rank():
        print(f"{who}: warning: {' '.join(str(message).split())}", file=sys.stderr, flush=True)


def _rank() -> int:
    """The number of this process among those that torchrun started; 0 for one alone."""
    return int(os.environ["RANK"]) if "TORCHELASTIC_RUN_ID" in os.environ else 0


def _how_to_resume(args: argparse.Namespace, argv: Sequence[str] | None) -> str:
    """The command that resumes a run, where there is a checkpoint to resume from."""
    if not hasattr(args, "resume") or not any(args.out.glob("step-*")):
        return ""
    words = sys.argv[1:] if argv is None else list(argv)
    if not args.resume:
        words.append("--resume")
    program = ["python", "-m", "tinytx_run.cli"] if Path(sys.argv[0]).name == "cli.py" else ["tinytx"]
    if "TORCHELASTIC_RUN_ID" in os.environ:
        program = ["torchrun", f"--nproc-per-node={os.environ['LOCAL_WORLD_SIZE']}", "-m", "tinytx_run.cli"]
    return f"; to resume: {shlex.join([*program, *words])}"
