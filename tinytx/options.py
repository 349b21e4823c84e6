"""What the command ``tinytx`` accepts: every command with its options."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

Answer = tuple[dict[str, Any], str | None]  # what --json prints, and what a person reads
Command = Callable[[argparse.Namespace], Answer]

MODEL_FIELDS = ("vocab_size", "d_model", "n_heads", "n_layers", "d_ff", "max_len", "dropout")
TRAINING_FIELDS = {
    "steps": "n_steps",
    "lr": "lr",
    "tokens_per_batch": "tokens_per_batch",
    "precision": "precision",
}


class _Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are one line, like all others."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message} (see {self.prog} --help)")


def build_parser(functions: Mapping[str, Command]) -> argparse.ArgumentParser:
    """The parser of all commands; ``args.command`` of what it reads is the function to call."""
    parser = _Parser(prog="tinytx", description="A small transformer to learn from, and its course.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_runs(commands, functions)
    _add_experiments(commands, functions)
    _add_readers(commands, functions)
    _add_course(commands, functions)
    return parser


def _command(commands: Any, name: str, function: Command) -> _Parser:
    words = (function.__doc__ or "").strip()
    sub = commands.add_parser(name, help=words, description=words)
    sub.set_defaults(command=function)
    sub.add_argument("--json", action="store_true", help="print one JSON object on standard output")
    return sub


def _add_corpus(sub: _Parser, *, default: str | None = None) -> None:
    sub.add_argument(
        "--corpus", required=default is None, default=default, help="a name, or a .txt or .tsv file"
    )
    sub.add_argument("--data-dir", type=Path, help="folder that holds one folder a corpus")
    sub.add_argument("--device", default="auto", help="auto, cpu or cuda")


def _add_model(sub: _Parser) -> None:
    for name in MODEL_FIELDS:
        kind: type = float if name == "dropout" else int
        sub.add_argument(f"--{name.replace('_', '-')}", type=kind, help=f"{name} of the model")


def _add_run(sub: _Parser) -> None:
    _add_corpus(sub)
    sub.add_argument("--budget", help="smoke, laptop, study, gpu, or a number of seconds")
    sub.add_argument("--seed", type=int, default=0, help="equal seeds give equal bytes")
    sub.add_argument("--out", type=Path, required=True, help="new folder for the run")
    sub.add_argument("--resume", action="store_true", help="go on with the run in --out")


def _add_runs(commands: Any, functions: Mapping[str, Command]) -> None:
    sub = _command(commands, "pretrain", functions["pretrain"])
    _add_run(sub)
    sub.add_argument("--objective", default="causal", help="causal, masked, masked+nsp, or translation")
    sub.add_argument("--whole-words", action="store_true", help="masked: hide words, not pieces")
    _add_model(sub)
    sub.add_argument("--steps", type=int, help="steps, in place of the budget's")
    sub.add_argument("--lr", type=float, help="highest learning rate")
    sub.add_argument("--tokens-per-batch", type=int, help="tokens of a batch at most, padding included")
    sub.add_argument("--precision", help="auto, fp32 or bf16")

    sub = _command(commands, "finetune", functions["finetune"])
    sub.add_argument("checkpoint", type=Path, help="folder of a pretrained model")
    _add_run(sub)
    sub.add_argument("--fresh", action="store_true", help="same tokenizer and configuration, new weights")
    sub.add_argument("--frozen", action="store_true", help="train the head alone, on the body as it is")
    sub.add_argument("--labels", type=int, help="learn from so many labelled texts only")
    sub.add_argument("--pooling", default="mean", help="mean, last or first")


def _add_experiments(commands: Any, functions: Mapping[str, Command]) -> None:
    experiments = commands.add_parser("experiment", help="Measure with several seeds.").add_subparsers(
        required=True, metavar="NAME"
    )
    sub = _command(experiments, "transfer", functions["experiment transfer"])
    _add_corpus(sub, default="world")
    _add_kept(sub, seeds=5)
    sub.add_argument("--labels", type=_numbers, default=[50, 200], help="numbers of labels, such as 50,200")
    sub.add_argument("--checkpoint", type=Path, help="a pretrained model; else one is pretrained")
    sub.add_argument("--scored", type=int, help="test texts scored after each epoch; all count at the end")
    sub.add_argument("--work-dir", type=Path, default=Path("build"), help="folder for the pretrained model")

    sub = _command(experiments, "ladder", functions["experiment ladder"])
    sub.add_argument("--device", default="auto", help="auto, cpu or cuda")
    _add_kept(sub, seeds=3)

    sub = _command(experiments, "objectives", functions["experiment objectives"])
    sub.add_argument("--device", default="auto", help="auto, cpu or cuda")
    _add_kept(sub, seeds=3)
    sub.add_argument("--labels", type=_numbers, default=[50, 200], help="numbers of labels, such as 50,200")
    sub.add_argument("--blanks", type=int, default=200, help="test texts in which one blank is filled")
    sub.add_argument("--prefixes", type=int, default=100, help="test texts whose first half is carried on")
    sub.add_argument("--work-dir", type=Path, default=Path("build"), help="folder for the pretrained models")

    sub = _command(experiments, "translation", functions["experiment translation"])
    _add_corpus(sub, default="world")
    _add_kept(sub, seeds=1)
    _add_search(sub, beam=4)
    sub.add_argument("--work-dir", type=Path, default=Path("build"), help="folder for the trained models")

    sub = _command(experiments, "broken-translation", functions["experiment broken-translation"])
    _add_corpus(sub, default="world")
    _add_kept(sub, seeds=1)


def _add_kept(sub: _Parser, *, seeds: int) -> None:
    sub.add_argument("--budget", help="smoke, laptop, study, gpu, or a number of seconds")
    sub.add_argument("--seeds", type=int, default=seeds, help="number of seeds")
    sub.add_argument("--results", type=Path, default=Path("results"), help="folder of the kept results")


def _add_readers(commands: Any, functions: Mapping[str, Command]) -> None:
    sub = _command(commands, "evaluate", functions["evaluate"])
    sub.add_argument("checkpoint", type=Path, help="folder of a model")
    _add_corpus(sub)
    sub.add_argument("--split", help="train, valid, test or all; by default test, or valid without a test")
    _add_search(sub)

    sub = _command(commands, "translate", functions["translate"])
    sub.add_argument("checkpoint", type=Path, help="folder of a translator")
    sub.add_argument("file", type=Path, nargs="?", help="lines to translate; standard input by default")
    _add_search(sub)
    sub.add_argument("--block", type=int, default=256, help="lines translated at once")
    sub.add_argument("--device", default="auto", help="auto, cpu or cuda")

    sub = _command(commands, "generate", functions["generate"])
    sub.add_argument("checkpoint", type=Path, help="folder of a language model")
    sub.add_argument("--prompt", default="", help="text to carry on")
    sub.add_argument("--max-new-tokens", type=int, default=50, help="pieces at most")
    sub.add_argument("--temperature", type=float, default=1.0, help="below 1 sharpens, above 1 flattens")
    sub.add_argument("--top-k", type=int, help="keep the k most probable pieces")
    sub.add_argument("--top-p", type=float, help="keep the most probable pieces that reach probability p")
    sub.add_argument("--seed", type=int, default=0, help="equal seeds give equal texts")
    sub.add_argument("--device", default="auto", help="auto, cpu or cuda")

    sub = _command(commands, "count", functions["count"])
    sub.add_argument("--preset", help="a configuration by name, such as seed-lab")
    sub.add_argument("--config", type=Path, help="JSON file with fields of a configuration")
    heads = ("lm", "classifier", "translation", "masked", "masked+nsp")
    sub.add_argument("--head", default="lm", choices=heads, help="what stands on the body")
    sub.add_argument("--n-classes", type=int, default=2, help="classes of the classifier")
    sub.add_argument("--diagnose", type=int, metavar="N", help="say which mistake gives this wrong number")
    sub.add_argument("--part", default="total", help="what N is about: total, attention, feed_forward, ...")
    _add_model(sub)


def _add_search(sub: _Parser, *, beam: int = 1) -> None:
    sub.add_argument("--beam", type=int, default=beam, help="translations followed at once; 1 is greedy")
    sub.add_argument(
        "--length-penalty", type=float, default=1.0, help="log P is divided by length to this power"
    )


def _add_course(commands: Any, functions: Mapping[str, Command]) -> None:
    data = commands.add_parser("data", help="Corpora to learn from.").add_subparsers(
        required=True, metavar="ACTION"
    )
    sub = _command(data, "list", functions["data list"])
    sub.add_argument("--data-dir", type=Path, help="folder that holds one folder a corpus")

    sub = _command(data, "world", functions["data world"])
    sub.add_argument("--reviews", type=int, default=10_000, help="number of reviews")
    sub.add_argument("--seed", type=int, default=1, help="equal seeds give equal files")
    sub.add_argument("--pairs", action="store_true", help="write English-French sentence pairs too")
    sub.add_argument("--language", default="fr", help="of the reviews: fr or en")
    sub.add_argument("--out", type=Path, required=True, help="new folder")

    sub = _command(commands, "course", functions["course"])
    sub.add_argument("lesson", nargs="*", help="numbers or names of lessons; all when left out")
    sub.add_argument("--budget", help="smoke, laptop, study, gpu, or a number of seconds")
    _command(commands, "lab", functions["lab"])

    sub = _command(commands, "release", functions["release"])
    sub.add_argument("folder", type=Path, help="new or empty folder")
    sub.add_argument("--solved", action="store_true", help="with the solutions in place of the stubs")

    sub = _command(commands, "check", functions["check"])
    sub.add_argument("path", type=Path, help="a filled-in notebook, or a folder of copies")
    sub.add_argument("--csv", type=Path, help="for a folder: file with a row a copy (FOLDER-grades.csv)")
    sub.add_argument("--seconds", type=float, default=20.0, help="time for each exercise")
    sub.add_argument("--memory", type=int, default=2048, help="memory for each exercise, in MiB")


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]
