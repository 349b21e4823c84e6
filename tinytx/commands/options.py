"""What several commands share: options under one name, and how an answer is told."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

Answer = tuple[dict[str, Any], str | None]  # what --json prints, and what a person reads
Command = Callable[[argparse.Namespace], Answer]

READING_FIELDS = ("text_column", "label_column", "label_names", "skip_bad_rows", "drop_repeats")
MODEL_FIELDS = ("vocab_size", "d_model", "n_heads", "n_layers", "d_ff", "max_len", "dropout")


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are one line, like all others."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message} (see {self.prog} --help)")


def add_command(commands: Any, name: str, function: Command) -> Parser:
    """A command whose help is the docstring of its function."""
    words = (function.__doc__ or "").strip()
    sub = commands.add_parser(name, help=words, description=words)
    sub.set_defaults(command=function)
    sub.add_argument("--json", action="store_true", help="print one JSON object on standard output")
    return sub


def add_group(commands: Any, name: str, words: str, metavar: str) -> Any:
    """A command that has commands of its own, such as ``tinytx data``."""
    return commands.add_parser(name, help=words).add_subparsers(required=True, metavar=metavar)


def add_device(sub: Parser) -> None:
    """Where to compute."""
    sub.add_argument("--device", default="auto", help="auto, cpu or cuda")


def add_corpus(sub: Parser, *, default: str | None = None) -> None:
    """Which text, and where it lies."""
    sub.add_argument(
        "--corpus", required=default is None, default=default, help="a name, a file of texts, or hf:NAME"
    )
    sub.add_argument("--data-dir", type=Path, help="folder that holds one folder a corpus")
    add_device(sub)


def add_reading(sub: Parser) -> None:
    """How texts of one's own are read."""
    sub.add_argument("--text-column", help="column of a .csv, .jsonl or .tsv that holds the texts")
    sub.add_argument("--label-column", help="column that holds the labels")
    sub.add_argument("--label-names", type=words, help="the known labels, such as bad,good for 0 and 1")
    sub.add_argument("--skip-bad-rows", action="store_true", help="pass over rows that cannot be used")
    sub.add_argument("--drop-repeats", action="store_true", help="train on no text that is held out")


def corpus_from(args: argparse.Namespace) -> Any:
    """The corpus as it is named or, where the options say how to read it, as it is read."""
    asked = {name: getattr(args, name) for name in READING_FIELDS if getattr(args, name)}
    if not asked:
        return args.corpus
    from tinytx.text.corpora import load_corpus

    return load_corpus(args.corpus, args.data_dir, **asked)


def add_model(sub: Parser) -> None:
    """The fields of a configuration, one option each."""
    for name in MODEL_FIELDS:
        kind: type = float if name == "dropout" else int
        sub.add_argument(f"--{name.replace('_', '-')}", type=kind, help=f"{name} of the model")


def add_kept(sub: Parser, *, seeds: int | None) -> None:
    """How much an experiment spends, and where its results are kept."""
    sub.add_argument("--budget", help="smoke, laptop, study, gpu, or a number of seconds")
    sub.add_argument("--seeds", type=int, default=seeds, help="number of seeds")
    sub.add_argument("--results", type=Path, default=Path("results"), help="folder of the kept results")


def add_search(sub: Parser, *, beam: int = 1) -> None:
    """How translations are searched for."""
    sub.add_argument("--beam", type=int, default=beam, help="translations followed at once; 1 is greedy")
    sub.add_argument(
        "--length-penalty", type=float, default=1.0, help="log P is divided by length to this power"
    )


def numbers(text: str) -> list[int]:
    """Read ``50,200`` as a list."""
    return [int(part) for part in text.split(",")]


def words(text: str) -> list[str]:
    """Read ``bad,good`` as a list."""
    return [part.strip() for part in text.split(",")]


def search_from(args: argparse.Namespace) -> Any:
    """How to search for translations, as the options say."""
    from tinytx.training.generation.beamsearch import Search

    return Search(beam_size=args.beam, length_penalty=args.length_penalty)


def given(args: argparse.Namespace, fields: dict[str, str]) -> dict[str, Any]:
    """The options among these that were given, under the names of the settings they change."""
    values = {field: getattr(args, option, None) for option, field in fields.items()}
    return {field: value for field, value in values.items() if value is not None}


def reporter(args: argparse.Namespace) -> Callable[[str], None]:
    """Tells a line of progress."""
    # With --json standard output holds the one object and nothing else.
    stream = sys.stderr if args.json else sys.stdout
    return lambda line: print(line, file=stream, flush=True)
