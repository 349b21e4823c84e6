"""The command `experiment completions`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tinytx.commands.options import Answer, add_command, add_device, reporter


def add_completions(experiments: Any) -> None:
    """`experiment completions`."""
    sub = add_command(experiments, "completions", experiment_completions)
    sub.add_argument("--budget", help="smoke, laptop, study, gpu, or a number of seconds")
    sub.add_argument("--steps", type=int, help="of training, in place of the budget's")
    sub.add_argument("--seed", type=int, default=0, help="of weights and order")
    sub.add_argument("--data-dir", type=Path, help="folder that holds one folder a corpus")
    sub.add_argument("--results", type=Path, default=Path("results"), help="folder of the kept results")
    sub.add_argument("--work-dir", type=Path, default=Path("build"), help="folder for the pretrained model")
    add_device(sub)


def experiment_completions(args: argparse.Namespace) -> Answer:
    """Pretrain on real French and carry on "Bonjour les"; results are kept."""
    from tinytx.teaching.results import Results
    from tinytx.training.experiments.completions import completions

    found = completions(
        store=Results("completions", args.results),
        budget=args.budget,
        n_steps=args.steps,
        seed=args.seed,
        data_dir=args.data_dir,
        work_dir=args.work_dir,
        device=args.device,
        report=reporter(args),
    )
    return dict(found.record), str(found)
