"""The command ``tinytx``: reads arguments, calls the package, prints what came back."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

from tinytx.options import MODEL_FIELDS, TRAINING_FIELDS, Answer, Command, build_parser
from tinytx.translation_cli import experiment_broken, experiment_translation, search_from, translate


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns
    -------
    int
        0 when done; 2 after bad input, told in one line on standard error; 130 when stopped by hand.
    """
    try:
        args = build_parser(COMMANDS).parse_args(argv)
        answer, text = args.command(args)
    except KeyboardInterrupt as stop:
        print(f"tinytx: {stop or 'stopped by hand'}", file=sys.stderr)
        return 130
    except (ValueError, OSError) as error:
        print(f"tinytx: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    status = answer.pop("exit_status", 0)
    if args.json:
        print(json.dumps(answer, ensure_ascii=False))
    elif text is not None:  # None: the command has written line by line
        print(text)
    return status


def _report(args: argparse.Namespace) -> Callable[[str], None]:
    # With --json standard output holds the one object and nothing else.
    stream = sys.stderr if args.json else sys.stdout
    return lambda line: print(line, file=stream, flush=True)


def pretrain(args: argparse.Namespace) -> Answer:
    """Train a model and a tokenizer on a corpus: of language, or on pairs of sentences a translator."""
    from tinytx.training import pretrain
    from tinytx.training.translators import train_translator

    asked: dict[str, Any] = {
        "budget": args.budget,
        "seed": args.seed,
        "out": args.out,
        "resume": args.resume,
        "data_dir": args.data_dir,
        "device": args.device,
        "vocab_size": args.vocab_size,
        "model_changes": _given(args, {name: name for name in MODEL_FIELDS if name != "vocab_size"}),
        "training_changes": _given(args, TRAINING_FIELDS),
        "report": _report(args),
    }
    if args.whole_words and not args.objective.startswith("masked"):
        raise ValueError(f"--whole-words goes with a masked objective, got {args.objective}")
    if args.objective == "translation":
        translator = train_translator(args.corpus, **asked)
        return translator.to_dict(), repr(translator)
    masking = {"whole_words": True} if args.whole_words else None
    result = pretrain(args.corpus, objective=args.objective, masking_changes=masking, **asked)
    return result.to_dict(), repr(result)


def finetune(args: argparse.Namespace) -> Answer:
    """Train a classifier on labelled texts, from a pretrained body or from scratch."""
    from tinytx.training import finetune

    result = finetune(
        args.checkpoint,
        args.corpus,
        fresh=args.fresh,
        frozen=args.frozen,
        budget=args.budget,
        seed=args.seed,
        out=args.out,
        resume=args.resume,
        data_dir=args.data_dir,
        device=args.device,
        n_labels=args.labels,
        pooling=args.pooling,
        report=_report(args),
    )
    return result.to_dict(), repr(result)


def evaluate(args: argparse.Namespace) -> Answer:
    """Loss of a language model, causal or masked, accuracy of a classifier, or BLEU of a translator."""
    from tinytx.training import evaluate_checkpoint

    result = evaluate_checkpoint(
        args.checkpoint,
        args.corpus,
        split=args.split,
        data_dir=args.data_dir,
        device=args.device,
        search=search_from(args),
    )
    return result.to_dict(), str(result)


def generate(args: argparse.Namespace) -> Answer:
    """Carry on a prompt by sampling."""
    from tinytx.training import choose_device, generate, load, load_tokenizer

    result = generate(
        load(args.checkpoint, choose_device(args.device)),
        load_tokenizer(args.checkpoint),
        args.prompt,
        max_new_tokens=args.max_new_tokens,
        temperature=args.temperature,
        top_k=args.top_k,
        top_p=args.top_p,
        seed=args.seed,
    )
    return {**result.to_dict(), "seed": args.seed}, str(result)


def count(args: argparse.Namespace) -> Answer:
    """Count the parameters of a model, term by term."""
    from tinytx.model.count_report import count_report

    report = count_report(_config(args), args.head, args.n_classes, args.diagnose, args.part)
    return report.to_dict(), str(report)


def data_list(args: argparse.Namespace) -> Answer:
    """Name the corpora that can be asked for."""
    from tinytx.text.corpora import list_corpora
    from tinytx.text.pairs import list_pair_corpora

    rows = [vars(info) for info in list_corpora(args.data_dir)]
    pairs = [vars(info) for info in list_pair_corpora(args.data_dir)]
    lines = [
        f"{row['name']:<15}{'ready' if row['available'] else 'absent':<8}{row['description']}"
        for row in [*rows, *pairs]
    ]
    lines.append("any .txt (one document a line) or .tsv (label, tab, text) file can be named too;")
    lines.append("to translate, a .tsv (source, tab, target)")
    return {"corpora": rows, "pairs": pairs}, "\n".join(lines)


def data_world(args: argparse.Namespace) -> Answer:
    """Write reviews of the world to files, with labels and a card."""
    from tinytx.text.world.export import write_world

    rows = write_world(
        args.out, n_reviews=args.reviews, seed=args.seed, pairs=args.pairs, language=args.language
    )
    lines = [f"{name}: {n_rows:,} rows" for name, n_rows in rows.items()]
    return {"out": str(args.out), "rows": rows}, "\n".join([*lines, f"the card is {args.out}/README.md"])


def experiment_transfer(args: argparse.Namespace) -> Answer:
    """Measure pretrained against scratch over several seeds; results are kept."""
    from tinytx.teaching.results import Results
    from tinytx.training.experiments import transfer

    rows = transfer(
        args.corpus,
        store=Results("transfer", args.results),
        budget=args.budget,
        n_seeds=args.seeds,
        label_counts=args.labels,
        checkpoint=args.checkpoint,
        work_dir=args.work_dir,
        n_scored=args.scored,
        data_dir=args.data_dir,
        device=args.device,
        report=_report(args),
    )
    answer = {"corpus": str(args.corpus), "rows": [row.to_dict() for row in rows]}
    return answer, "\n".join(map(str, rows))


def experiment_ladder(args: argparse.Namespace) -> Answer:
    """Measure counting models and transformers against the exact floor of the world."""
    from tinytx.teaching.results import Results
    from tinytx.training.ladder import ladder, to_dict

    rows = ladder(
        store=Results("ladder", args.results),
        budget=args.budget,
        n_seeds=args.seeds,
        device=args.device,
        report=_report(args),
    )
    head = f"{'model':<22}{'nats':>8}{'gap':>9}{'share':>8}"
    return to_dict(rows), "\n".join([head, *map(str, rows)])


def experiment_objectives(args: argparse.Namespace) -> Answer:
    """Measure causal against masked pretraining, with and without next sentences, on the world."""
    from tinytx.teaching.results import Results
    from tinytx.training.objectives_experiment import objectives

    rows = objectives(
        store=Results("objectives", args.results),
        budget=args.budget,
        n_seeds=args.seeds,
        label_counts=args.labels,
        n_blanks=args.blanks,
        n_prefixes=args.prefixes,
        work_dir=args.work_dir,
        device=args.device,
        report=_report(args),
    )
    return {"rows": [row.to_dict() for row in rows]}, "\n".join(map(str, rows))


def course(args: argparse.Namespace) -> Answer:
    """Run the notebooks and write the site."""
    from tinytx.teaching.course import run_course
    from tinytx.training.budgets import parse_budget

    report = run_course(args.lesson, budget=args.budget and str(parse_budget(args.budget)))
    return {**report.to_dict(), "exit_status": 0 if report.ok else 1}, f"open {report.index}"


def lab(args: argparse.Namespace) -> Answer:
    """Open a personal copy of the course in JupyterLab."""
    from tinytx.teaching.course import open_lab

    return {"exit_status": open_lab()}, "the lab is closed"


def release(args: argparse.Namespace) -> Answer:
    """Write the learner's edition of the course, or the solved one, into a folder."""
    from tinytx.teaching.release import write_release

    written = write_release(args.folder, solved=args.solved)
    return written.to_dict(), str(written)


def check(args: argparse.Namespace) -> Answer:
    """Grade a filled-in notebook, or a folder of copies."""
    from tinytx.teaching.grading import Limits, grade_folder, grade_notebook

    limits = Limits(seconds=args.seconds, mebibytes=args.memory)
    if args.path.is_dir():
        report = grade_folder(args.path, csv=args.csv, limits=limits)
        return report.to_dict(), str(report)
    if args.csv is not None:
        raise ValueError(f"--csv goes with a folder of copies, got the file {args.path}")
    copy = grade_notebook(args.path, limits=limits)
    return copy.to_dict(), str(copy)


def _given(args: argparse.Namespace, fields: dict[str, str]) -> dict[str, Any]:
    """The options among these that were given, under the names of the settings they change."""
    values = {field: getattr(args, option, None) for option, field in fields.items()}
    return {field: value for field, value in values.items() if value is not None}


def _config(args: argparse.Namespace) -> Any:
    from tinytx.model import PRESETS, TransformerConfig
    from tinytx.training.files import read_json

    fields: dict[str, Any] = {}
    if args.preset is not None:
        if args.preset not in PRESETS:
            raise ValueError(f"preset must be one of {', '.join(PRESETS)}, got {args.preset!r}")
        fields = PRESETS[args.preset].to_dict()
    if args.config is not None:
        fields |= read_json(args.config)
    try:
        return TransformerConfig.from_dict(fields | _given(args, {name: name for name in MODEL_FIELDS}))
    except TypeError as error:  # a number written as a string in the file, say
        raise ValueError(str(error)) from error


COMMANDS: dict[str, Command] = {
    "pretrain": pretrain,
    "finetune": finetune,
    "evaluate": evaluate,
    "generate": generate,
    "translate": translate,
    "count": count,
    "data list": data_list,
    "data world": data_world,
    "experiment transfer": experiment_transfer,
    "experiment ladder": experiment_ladder,
    "experiment objectives": experiment_objectives,
    "experiment translation": experiment_translation,
    "experiment broken-translation": experiment_broken,
    "course": course,
    "lab": lab,
    "release": release,
    "check": check,
}


if __name__ == "__main__":
    sys.exit(main())
