"""``python -m experiments NAME``: measure what the lessons quote; with ``--json`` print what is stored."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.harness import Settings
from tinytx_course.results import Results, read_results
from tinytx_run.command import Answer, Parser, numbers, reporter, run, words


@dataclass(frozen=True)
class Experiment:
    """Where an experiment is: its module, what measures, what makes its table, and its defaults."""

    help: str
    module: str
    function: str
    table: str = "table"
    n_seeds: int = 1
    has_corpus: bool = False
    corpus: str = "world"
    has_labels: bool = False  # measured with several numbers of labels
    has_variants: bool = False
    has_unlabelled: bool = False
    results: str = "{name}"


EXPERIMENTS = {
    "ladder": Experiment(
        "n-gram, RNN, GRU, CNN and transformer against the entropy bound", "ladder", "ladder", n_seeds=3
    ),
    "objectives": Experiment("causal against masked pretraining", "objectives", "objectives", n_seeds=3),
    "transfer": Experiment(
        "pretrained against scratch",
        "transfer_world",
        "transfer",
        n_seeds=5,
        has_corpus=True,
        has_labels=True,
    ),
    "pretraining": Experiment(
        "does pretraining pay on real text? accuracy by tokens read",
        "pretraining",
        "pretraining",
        n_seeds=3,
        has_corpus=True,
        corpus="imdb",
        has_labels=True,
        has_variants=True,
        has_unlabelled=True,
    ),
    "translation": Experiment(
        "greedy and beam search", "translation", "translation", has_corpus=True, results="{name}-{corpus}"
    ),
    "broken-translation": Experiment(
        "a translator repaired one ingredient at a time",
        "translation",
        "broken_translation",
        table="broken_table",
        has_corpus=True,
    ),
    "world-minute": Experiment(
        "how near the bound a minute of training comes, and what is missing",
        "world_minute",
        "world_minute",
        n_seeds=5,
    ),
    "since-2017": Experiment(
        "what changed since 2017, one swap at a time and all together", "since_2017", "since_2017", n_seeds=5
    ),
    "looking-inside": Experiment(
        "what a model of the world knows, where, and which heads carry it",
        "looking_inside",
        "looking_inside",
        n_seeds=4,
    ),
    "museum": Experiment("which test finds which fault of the bug museum", "museum", "museum", n_seeds=5),
    "inventory": Experiment(
        "items of the concept inventory, and which misconceptions they tell apart", "inventory", "inventory"
    ),
    "scaling": Experiment(
        "sizes and amounts of text against the entropy bound, and the usual scaling law", "scaling", "scaling"
    ),
    "lora": Experiment(
        "frozen, LoRA and full fine-tuning of one pretrained model, over numbers of labels",
        "lora",
        "lora",
        n_seeds=6,
    ),
    "playground": Experiment(
        "how near the bound the page that trains comes", "playground", "playground", n_seeds=3
    ),
    "mask-off": Experiment(
        "a model learns, and a copy of it goes on without the causal mask", "mask_off", "mask_off"
    ),
    "completions": Experiment("a model of real French continues prompts", "completions", "completions"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one experiment, or print what it stored."""
    return run(build_parser(), argv)


def build_parser() -> Parser:
    """The parser of all experiments."""
    parser = Parser(prog="python -m experiments", description=__doc__)
    commands: Any = parser.add_subparsers(required=True, metavar="NAME")
    for name, one in EXPERIMENTS.items():
        sub = commands.add_parser(name, help=one.help, description=one.help)
        sub.set_defaults(command=experiment, name=name, corpus="world")
        sub.set_defaults(labels=None, variants=None, unlabelled=None)
        sub.add_argument("--json", action="store_true", help="print the stored table; measure nothing")
        sub.add_argument("--results", type=Path, default=Path("results"), help="folder of the results")
        sub.add_argument("--budget", help="smoke, laptop, study, gpu, or a number of seconds")
        sub.add_argument("--seeds", type=int, help=f"number of seeds, by default {one.n_seeds}")
        sub.add_argument("--data-dir", type=Path, help="folder that holds one folder a corpus")
        sub.add_argument("--work-dir", type=Path, default=Path("build"), help="folder of training runs")
        sub.add_argument("--device", default="auto", help="auto, cpu or cuda")
        if one.has_corpus:
            sub.add_argument("--corpus", default=one.corpus, help="name of a corpus")
        if one.has_labels:
            sub.add_argument("--labels", type=numbers, help="numbers of labels, such as 50,200")
        if one.has_variants:
            sub.add_argument("--variants", type=words, help="such as tfidf-words,causal/tuned/3000000")
        if one.has_unlabelled:
            sub.add_argument("--unlabelled", help="name of the corpus to pretrain on")
    return parser


def experiment(args: argparse.Namespace) -> Answer:
    """Measure what is missing and print the table; with ``--json``, the table of what is stored."""
    one = EXPERIMENTS[args.name]
    name = one.results.format(name=args.name, corpus=Path(args.corpus).stem)
    module = importlib.import_module(f"experiments.{one.module}")
    if args.json:
        stored = read_results(name, args.results)
        if not stored.data:
            raise ValueError(f"{stored.path} must hold records, got none")
        rows = json.loads(getattr(module, one.table)(stored.data).to_json(orient="records"))
        return {"name": name, "source": stored.source_line(), "rows": rows}, None
    store = Results(name, args.results)
    store.check_place()
    settings = Settings(
        store=store,
        budget=args.budget,
        n_seeds=one.n_seeds if args.seeds is None else args.seeds,
        data_dir=args.data_dir,
        work_dir=args.work_dir,
        device=args.device,
        report=reporter(args),
    )
    changes = {"label_counts": args.labels, "variants": args.variants, "unlabelled": args.unlabelled}
    more: dict[str, Any] = {key: value for key, value in changes.items() if value}
    if one.has_corpus:
        more["corpus"] = args.corpus
    return {}, getattr(module, one.function)(settings, **more).to_string(index=False)


if __name__ == "__main__":
    sys.exit(main())
