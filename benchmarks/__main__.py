"""``python -m benchmarks [PART]``: speed next to other packages; ``race``: how good a model is in time."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import race as referee
from benchmarks.racers import RACERS, named_racer
from benchmarks.report import PARTS, run_parts
from benchmarks.settings import BenchSettings
from tinytx.settings import choose_device
from tinytx_course.results import Results, provenance
from tinytx_run.command import Answer, Command, Parser, reporter, run


def main(argv: Sequence[str] | None = None) -> int:
    """Run one part of the benchmark, or all, or the race."""
    words = list(sys.argv[1:] if argv is None else argv)
    return run(race_parser(), words[1:]) if words[:1] == ["race"] else run(build_parser(), words)


def race_parser() -> Parser:
    """The parser of the race."""
    sub = _parser("python -m benchmarks race", race, "a few characters: shows only that it runs")
    sub.add_argument(
        "--racer", default="tinytx", help=f"{', '.join(RACERS)}, each with +TRICK, or FILE.py:CLASS"
    )
    sub.add_argument("--seconds", type=float, default=180.0, help="of training; 180 for a record")
    sub.add_argument("--steps", type=int, help="of training, in place of seconds")
    sub.add_argument("--seeds", type=int, default=10, help="number of seeds; 10 for a record")
    sub.add_argument("--submit", metavar="WORDS", help="add a line to records.md: what the change brought")
    sub.add_argument("--device", default="cpu", help="cpu, on which records are made, cuda or auto")
    return sub


def build_parser() -> Parser:
    """The parser of the speed comparisons."""
    sub = _parser("python -m benchmarks", bench, "sizes of a few tokens: shows only that it runs")
    sub.add_argument("part", nargs="?", default="all", help="steps, reviews, generation, or all of these")
    sub.add_argument("--rounds", type=int, default=7, help="how often each candidate is timed")
    sub.add_argument("--device", default="auto", help="auto, cpu or cuda")
    return sub


def _parser(prog: str, command: Command, tiny: str) -> Parser:
    """A parser with the options of both."""
    parser = Parser(prog=prog, description=command.__doc__)
    parser.set_defaults(command=command)
    parser.add_argument("--json", action="store_true", help="print one JSON object on standard output")
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder of the results")
    parser.add_argument("--data-dir", type=Path, help="folder that holds one folder a corpus")
    parser.add_argument("--tiny", action="store_true", help=tiny)
    return parser


def bench(args: argparse.Namespace) -> Answer:
    """Measure training and generation against other packages, in turn; results are stored."""
    if args.part not in (*PARTS, "all"):
        raise ValueError(f"part must be one of {', '.join(PARTS)} or all, got {args.part!r}")
    settings = BenchSettings(
        n_rounds=args.rounds,
        tiny=args.tiny,
        device=choose_device(args.device),
        data_dir=args.data_dir,
        report=reporter(args),
    )
    parts = PARTS if args.part == "all" else (args.part,)
    return {"records": run_parts(parts, settings, args.results)}, None


def race(args: argparse.Namespace) -> Answer:
    """Train on tinyshakespeare for a fixed time, several seeds, and judge on its last tenth."""
    if not 0 < args.seconds < float("inf"):
        raise ValueError(f"seconds must be positive, got {args.seconds:g}")
    for name in ("seeds", "steps"):
        if (given := getattr(args, name)) is not None and given < 1:
            raise ValueError(f"{name} must be at least 1, got {given}")
    settings = BenchSettings(n_rounds=1, tiny=args.tiny, data_dir=args.data_dir, report=reporter(args))
    store, racer = Results("race", args.results), named_racer(args.racer, choose_device(args.device))
    store.check_place()
    how: dict[str, Any] = {"seconds": args.seconds, "n_steps": args.steps, "n_seeds": args.seeds}
    records = referee.race(racer, settings, store, **how)
    if store.get("counting models") is None:
        store.put("counting models", referee.counted(settings))
    if args.submit:
        settings.report(referee.submit(records, args.submit, provenance()))
    return {"records": records}, referee.race_table(args.results)


if __name__ == "__main__":
    sys.exit(main())
