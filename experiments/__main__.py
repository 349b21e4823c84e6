"""``python -m experiments NAME``: measure what the lessons quote; with ``--json`` print what is stored."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from experiments.harness import Settings, doubt
from tinytx_course.results import Results, read_results
from tinytx_run.command import Answer, Parser, numbers, reporter, run, words


@dataclass(frozen=True)
class Experiment:
    """A function with the name of the experiment, in a module of that name."""

    help: str
    n_seeds: int = 1
    options: tuple[str, ...] = ()  # of `OPTIONS`
    corpus: str = "world"
    results: str = "{name}"


#: By the argument of an experiment: its option, what it is, and how a word on the command line is read.
OPTIONS: dict[str, tuple[str, str, Any]] = {
    "corpus": ("--corpus", "name of a corpus", str),
    "label_counts": ("--labels", "numbers of labels, such as 50,200", numbers),
    "variants": ("--variants", "such as tfidf-words,causal/tuned/3000000", words),
    "lessons": ("--lessons", "such as 03,07", words),
    "unlabelled": ("--unlabelled", "name of the corpus to pretrain on", str),
    "on": ("--on", "folds, or test for the corpus's own test split", str),
}
EXPERIMENTS = {
    "positions": Experiment("which positions hold: a game, and texts longer than in training", 5),
    "ablation": Experiment("the GPT of lesson 07 without one of its parts, and a 2-gram model", 5),
    "agreement": Experiment("does an adjective agree with a noun that no short n-gram model can see?", 5),
    "predictions": Experiment(
        "do predictions come out the same with other seeds and threads?", 10, options=("lessons",)
    ),
    "ladder": Experiment("n-gram, RNN, GRU, CNN and transformer against the entropy bound", 5),
    "objectives": Experiment("causal against masked pretraining", 5),
    "transfer": Experiment("pretrained against scratch", 5, options=("corpus", "label_counts")),
    "pretraining": Experiment(
        "does pretraining pay on real text? accuracy by tokens read",
        3,
        options=("corpus", "label_counts", "variants", "unlabelled", "on"),
        corpus="imdb",
    ),
    "translation": Experiment("greedy and beam search", options=("corpus",), results="{name}-{corpus}"),
    "world-minute": Experiment("how near the bound a minute of training comes", 5),
    "since-2017": Experiment("what changed since 2017, one swap at a time and all together", 5),
    "looking-inside": Experiment(
        "what a model of the world knows, where, and which heads carry it", n_seeds=4
    ),
    "museum": Experiment("which test finds which fault of the bug museum", 5),
    "inventory": Experiment("items of the concept inventory, and which misconceptions they tell apart"),
    "scaling": Experiment("sizes and amounts of text against the entropy bound, and the usual scaling law"),
    "lora": Experiment("frozen, LoRA and full fine-tuning of one model, over numbers of labels", 6),
    "playground": Experiment("how near the bound the page that trains comes", 3),
    "mask-off": Experiment("a model learns, and a copy of it goes on without the causal mask"),
    "completions": Experiment("a model of real French continues prompts"),
}
#: Those whose module has `conclusions`, see `doubt`.
DOUBTED = (
    *("positions", "ablation", "agreement", "transfer", "objectives", "ladder", "since-2017", "scaling"),
    *("lora", "looking-inside"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one experiment, or print what it stored."""
    return run(build_parser(), argv)


def build_parser() -> Parser:
    """The parser of all experiments."""
    parser = Parser(prog="python -m experiments", description=__doc__)
    commands: Any = parser.add_subparsers(required=True, metavar="NAME")
    for name, one in EXPERIMENTS.items():
        sub = commands.add_parser(name, help=one.help, description=one.help)
        sub.set_defaults(command=experiment, name=name, corpus=one.corpus)
        sub.add_argument("--json", action="store_true", help="print the stored table; measure nothing")
        _add_settings(sub, one.n_seeds)
        for argument in one.options:
            option, what, read = OPTIONS[argument]
            sub.add_argument(option, dest=argument, type=read, help=what)
    about = "whether the conclusions of a stored experiment stay with twice the steps and fresh seeds"
    sub = commands.add_parser("doubt", help=about, description=about)
    sub.set_defaults(command=doubted, json=False)
    sub.add_argument("name", choices=DOUBTED, metavar="NAME", help=", ".join(DOUBTED))
    _add_settings(sub, None)
    return parser


def _add_settings(parser: argparse.ArgumentParser, n_seeds: int | None) -> None:
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder of the results")
    parser.add_argument("--budget", help="smoke, laptop, study, gpu, or a number of seconds")
    parser.add_argument("--seeds", type=int, default=n_seeds, help="how many, by default %(default)s")
    parser.add_argument("--data-dir", type=Path, help="folder that holds one folder a corpus")
    parser.add_argument("--work-dir", type=Path, default=Path("build"), help="folder of training runs")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")


def _settings(args: argparse.Namespace, name: str, n_seeds: int) -> Settings:
    store = Results(name, args.results)
    store.check_place()
    return Settings(
        store=store,
        budget=args.budget,
        n_seeds=n_seeds,
        data_dir=args.data_dir,
        work_dir=args.work_dir,
        device=args.device,
        report=reporter(args),
    )


def _function(name: str) -> str:
    return name.replace("-", "_")


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"experiments.{_function(name)}")


def doubted(args: argparse.Namespace) -> Answer:
    """Measure a stored experiment again, and print which of its conclusions stay."""
    one = EXPERIMENTS[args.name]
    stored = read_results(args.name, args.results).data
    settings = _settings(args, args.name, args.seeds or one.n_seeds)
    return {}, doubt(settings, _function(args.name), _module(args.name), stored).to_string(index=False)


def experiment(args: argparse.Namespace) -> Answer:
    """Measure what is missing and print the table; with ``--json``, the table of what is stored."""
    one = EXPERIMENTS[args.name]
    name = one.results.format(name=args.name, corpus=Path(args.corpus).stem)
    module = _module(args.name)
    if args.json:
        stored = read_results(name, args.results)
        if not stored.data:
            raise ValueError(f"{stored.path} must hold records, got none")
        rows = json.loads(module.table(stored.data).to_json(orient="records"))
        return {"name": name, "source": stored.source_line(), "rows": rows}, None
    settings = _settings(args, name, args.seeds)
    given = {name: value for name in one.options if (value := getattr(args, name)) is not None}
    measure = getattr(module, _function(args.name))
    return {}, measure(settings, **given).to_string(index=False)


if __name__ == "__main__":
    sys.exit(main())
