"""``python -m experiments NAME``: measure what the lessons quote, with several seeds."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tinytx.cli import (
    Answer,
    Parser,
    add_command,
    add_corpus,
    add_device,
    add_kept,
    add_reading,
    add_search,
    corpus_from,
    numbers,
    reporter,
    run,
)


def _add_completions(experiments: Any) -> None:
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
    from experiments.completions import completions
    from tinytx_course.results import Results

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


FOLDED = "cls-books and docstrings-packages"  # their texts are folded, and more is compared


def main(argv: Sequence[str] | None = None) -> int:
    """Run one experiment."""
    return run(build_parser(), argv)


def build_parser() -> Parser:
    """The parser of all experiments."""
    parser = Parser(
        prog="python -m experiments", description="Measure what the lessons quote, with several seeds."
    )
    experiments: Any = parser.add_subparsers(required=True, metavar="NAME")
    sub = add_command(experiments, "transfer", experiment_transfer)
    add_corpus(sub, default="world")
    add_reading(sub)
    add_kept(sub, seeds=None)
    sub.add_argument("--labels", type=numbers, help="numbers of labels, such as 50,200")
    sub.add_argument("--conditions", help=f"{FOLDED}: what is compared, such as majority,scratch")
    sub.add_argument("--folds", type=int, help=f"{FOLDED}: parts of the texts, each tested once a repetition")
    sub.add_argument("--list", action="store_true", help=f"{FOLDED}: show cells and what is missing")
    sub.add_argument("--checkpoint", type=Path, help="a pretrained model; else one is pretrained")
    sub.add_argument("--scored", type=int, help="test texts scored after each epoch; all count at the end")
    sub.add_argument("--work-dir", type=Path, default=Path("build"), help="folder for the pretrained model")

    sub = add_command(experiments, "ladder", experiment_ladder)
    add_device(sub)
    add_kept(sub, seeds=3)

    sub = add_command(experiments, "objectives", experiment_objectives)
    add_device(sub)
    add_kept(sub, seeds=3)
    sub.add_argument("--labels", type=numbers, default=[50, 200], help="numbers of labels, such as 50,200")
    sub.add_argument("--blanks", type=int, default=200, help="test texts in which one blank is filled")
    sub.add_argument("--prefixes", type=int, default=100, help="test texts whose first half is carried on")
    sub.add_argument("--work-dir", type=Path, default=Path("build"), help="folder for the pretrained models")

    sub = add_command(experiments, "translation", experiment_translation)
    add_corpus(sub, default="world")
    add_kept(sub, seeds=1)
    add_search(sub, beam=4)
    sub.add_argument("--work-dir", type=Path, default=Path("build"), help="folder for the trained models")

    sub = add_command(experiments, "broken-translation", experiment_broken_translation)
    add_corpus(sub, default="world")
    add_kept(sub, seeds=1)

    _add_completions(experiments)


def experiment_transfer(args: argparse.Namespace) -> Answer:
    """Measure pretrained against scratch over several seeds; results are kept."""
    from experiments.transfer_conditions import TASKS
    from experiments.transfer_world import transfer
    from tinytx_course.results import Results

    if str(args.corpus) in TASKS:
        return _transfer_on_folds(args)
    only = {"--conditions": args.conditions, "--folds": args.folds, "--list": args.list or None}
    if misplaced := [name for name, value in only.items() if value is not None]:
        raise ValueError(
            f"{', '.join(misplaced)} must go with the corpus {' or '.join(TASKS)}, got {args.corpus}"
        )
    rows = transfer(
        corpus_from(args),
        store=Results("transfer", args.results),
        budget=args.budget,
        n_seeds=5 if args.seeds is None else args.seeds,
        label_counts=args.labels or [50, 200],
        checkpoint=args.checkpoint,
        work_dir=args.work_dir,
        n_scored=args.scored,
        data_dir=args.data_dir,
        device=args.device,
        report=reporter(args),
    )
    answer = {"corpus": str(args.corpus), "rows": [row.to_dict() for row in rows]}
    return answer, "\n".join(map(str, rows))


def _transfer_on_folds(args: argparse.Namespace) -> Answer:
    from experiments.transfer import TransferExperiment, listing
    from tinytx.text.corpora import load_corpus
    from tinytx_course.labs.docstrings import PACKAGES, packages_corpus
    from tinytx_course.results import Results

    if args.checkpoint is not None or args.scored is not None:
        raise ValueError(f"--checkpoint and --scored must go with another corpus, got {args.corpus}")
    corpus = corpus_from(args)
    if corpus == PACKAGES:
        corpus = packages_corpus()
    elif corpus is args.corpus:
        corpus = load_corpus(corpus, args.data_dir)
    experiment = TransferExperiment(
        corpus,
        store=Results(f"transfer-{corpus.name}", args.results),
        data_dir=args.data_dir,
        budget=args.budget,
        conditions=args.conditions.split(",") if args.conditions else None,
        label_counts=args.labels or [200],
        n_folds=args.folds,
        n_seeds=args.seeds,
        work_dir=args.work_dir,
        device=args.device,
        report=reporter(args),
    )
    rows = experiment.rows() if args.list else experiment.run()
    answer = {"corpus": corpus.name, "n_repeated": experiment.n_repeated, "rows": [r.to_dict() for r in rows]}
    if not args.list:
        return answer, "\n".join(map(str, rows))
    listed = listing(experiment)
    return {**answer, **listed.to_dict()}, str(listed)


def experiment_ladder(args: argparse.Namespace) -> Answer:
    """Measure counting models and transformers against the exact floor of the world."""
    from experiments.ladder import ladder, to_dict
    from tinytx_course.results import Results

    rows = ladder(
        store=Results("ladder", args.results),
        budget=args.budget,
        n_seeds=args.seeds,
        device=args.device,
        report=reporter(args),
    )
    head = f"{'model':<22}{'nats':>8}{'gap':>9}{'share':>8}"
    return to_dict(rows), "\n".join([head, *map(str, rows)])


def experiment_objectives(args: argparse.Namespace) -> Answer:
    """Measure causal against masked pretraining, with and without next sentences, on the world."""
    from experiments.objectives import objectives
    from tinytx_course.results import Results

    rows = objectives(
        store=Results("objectives", args.results),
        budget=args.budget,
        n_seeds=args.seeds,
        label_counts=args.labels,
        n_blanks=args.blanks,
        n_prefixes=args.prefixes,
        work_dir=args.work_dir,
        device=args.device,
        report=reporter(args),
    )
    return {"rows": [row.to_dict() for row in rows]}, "\n".join(map(str, rows))


def experiment_translation(args: argparse.Namespace) -> Answer:
    """Train a translator and score it on the whole held-out split; results are kept."""
    from experiments.translation import translation
    from tinytx_course.results import Results

    rows = translation(
        args.corpus,
        store=Results(f"translation-{Path(args.corpus).stem}", args.results),
        budget=args.budget,
        n_seeds=args.seeds,
        beam_size=args.beam,
        length_penalty=args.length_penalty,
        work_dir=args.work_dir,
        data_dir=args.data_dir,
        device=args.device,
        report=reporter(args),
    )
    answer = {"corpus": str(args.corpus), "rows": [row.record for row in rows]}
    return answer, "\n".join(map(str, rows))


def experiment_broken_translation(args: argparse.Namespace) -> Answer:
    """Break a translator on purpose and repair it one change at a time; results are kept."""
    from experiments.broken_translation import broken_translation
    from tinytx_course.results import Results

    patients = broken_translation(
        args.corpus,
        store=Results("broken-translation", args.results),
        budget=args.budget,
        n_seeds=args.seeds,
        data_dir=args.data_dir,
        device=args.device,
        report=reporter(args),
    )
    answer = {"corpus": str(args.corpus), "rows": [patient.to_dict() for patient in patients]}
    return answer, "\n".join(map(str, patients))


if __name__ == "__main__":
    sys.exit(main())
