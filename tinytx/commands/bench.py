"""The command `bench`: how fast the package is, beside others."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tinytx.commands.options import Answer, add_command, add_device, reporter


def add_bench(commands: Any) -> None:
    """`bench [PART]`."""
    sub = add_command(commands, "bench", bench)
    words = "steps, reviews, generation, or all of these; or what takes longer: quality, speedrun"
    sub.add_argument("part", nargs="?", default="all", help=words)
    sub.add_argument("--rounds", type=int, help="how often each contestant has its turn")
    sub.add_argument("--results", type=Path, default=Path("results"), help="folder of the kept results")
    sub.add_argument("--data-dir", type=Path, help="folder that holds one folder a corpus")
    sub.add_argument("--tiny", action="store_true", help="sizes of a few tokens: only tries that it runs")
    add_device(sub)


def bench(args: argparse.Namespace) -> Answer:
    """Measure training and generation beside other packages, in turn; results are kept."""
    from tinytx.bench.report import LONGER, PARTS, run_parts
    from tinytx.bench.settings import BenchSettings
    from tinytx.teaching.results import Results
    from tinytx.training import choose_device

    if args.part not in (*PARTS, *LONGER, "all"):
        known = ", ".join((*PARTS, *LONGER))
        raise ValueError(f"part must be one of {known} or all, got {args.part!r}")
    settings = BenchSettings(
        tiny=args.tiny,
        device=choose_device(args.device),
        data_dir=args.data_dir,
        report=reporter(args),
        **({} if args.rounds is None else {"n_rounds": args.rounds}),
    )
    parts = PARTS if args.part == "all" else (args.part,)
    records = run_parts(parts, settings, lambda name: Results(name, args.results))
    return {"records": records}, None
