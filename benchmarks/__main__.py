"""``python -m benchmarks [PART]``: speed next to other packages, measured in turn."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tinytx.cli import Answer, Parser, add_device, reporter, run


def main(argv: Sequence[str] | None = None) -> int:
    """Run one part of the benchmark, or all."""
    return run(build_parser(), argv)


def build_parser() -> Parser:
    """The parser of the one command."""
    sub = Parser(prog="python -m benchmarks", description=(bench.__doc__ or "").strip())
    sub.set_defaults(command=bench)
    sub.add_argument("--json", action="store_true", help="print one JSON object on standard output")
    words = "steps, reviews, generation, or all of these; or what takes longer: quality, speedrun"
    sub.add_argument("part", nargs="?", default="all", help=words)
    sub.add_argument("--against", type=Path, metavar="DIR", help="compare with another checkout instead")
    sub.add_argument("--rounds", type=int, default=7, help="how often each candidate is timed")
    sub.add_argument("--results", type=Path, default=Path("results"), help="folder of the results")
    sub.add_argument("--data-dir", type=Path, help="folder that holds one folder a corpus")
    sub.add_argument("--tiny", action="store_true", help="sizes of a few tokens: shows only that it runs")
    add_device(sub)
    return sub


def bench(args: argparse.Namespace) -> Answer:
    """Measure training and generation against other packages, in turn; results are stored."""
    from benchmarks.against import measure_against
    from benchmarks.report import LONGER, PARTS, run_parts
    from benchmarks.settings import BenchSettings
    from tinytx.training.settings import choose_device

    if args.part not in (*PARTS, *LONGER, "all"):
        known = ", ".join((*PARTS, *LONGER))
        raise ValueError(f"part must be one of {known} or all, got {args.part!r}")
    settings = BenchSettings(
        n_rounds=args.rounds,
        tiny=args.tiny,
        device=choose_device(args.device),
        data_dir=args.data_dir,
        report=reporter(args),
    )
    if args.against is not None:
        return {"records": measure_against(args.against, settings, args.results)}, None
    parts = PARTS if args.part == "all" else (args.part,)
    return {"records": run_parts(parts, settings, args.results)}, None


if __name__ == "__main__":
    sys.exit(main())
