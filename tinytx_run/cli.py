"""The command ``tinytx``: pretrain, finetune, evaluate, generate, translate, classify, count, data."""

from __future__ import annotations

import argparse
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from tinytx import __version__
from tinytx_run.command import (
    Answer,
    Command,
    Parser,
    add_command,
    emit,
    folder_name,
    name_or_folder,
    reporter,
    run,
    words,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command of `tinytx`; see `run`."""
    return run(build_parser(), argv)


def build_parser() -> Parser:
    """The parser of all commands; ``args.command`` of what it reads is the function to call."""
    parser = Parser(prog="tinytx", description="A small transformer to learn from.")
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands: Any = parser.add_subparsers(required=True, metavar="COMMAND")
    functions: tuple[Command, ...] = (pretrain, finetune, evaluate, generate, translate, classify, count)
    subs = [add_command(commands, function.__name__, function) for function in functions]
    pretraining, tuning, measuring, writing, *_, counting = subs
    kinds = ("model", "model", "language model", "translator", "classifier")
    for sub, kind in zip(subs[1:-1], kinds, strict=True):
        name = "" if kind == "classifier" else ", or a published name"
        sub.add_argument("checkpoint", type=name_or_folder, help=f"folder of a {kind}{name}")
    objectives = "causal, masked, masked+nsp, hybrid, or translation"
    pretraining.add_argument("--objective", default="causal", help=objectives)
    pretraining.add_argument("--shard", action="store_true", help="under torchrun: a part of the model each")
    pretraining.add_argument("--steps", type=int, help="steps, in place of the budget's")
    pretraining.add_argument("--precision", help="auto, fp32 or bf16")
    tuning.add_argument("--fresh", action="store_true", help="same tokenizer and configuration, new weights")
    tuning.add_argument("--epochs", type=int, help="passes over the texts, in place of the budget's")
    tuning.add_argument("--lr", type=float, help="learning rate, in place of the budget's")
    for sub in (pretraining, tuning, measuring):
        sub.add_argument("--corpus", required=True, help="a name, a file of texts, or hf:NAME")
        sub.add_argument("--data-dir", type=Path, help="folder that holds one folder a corpus")
        sub.add_argument("--text-column", help="column of a .csv, .jsonl or .tsv that holds the texts")
        sub.add_argument("--label-column", help="column that holds the labels")
        sub.add_argument("--label-names", type=words, help="the labels, class 0 first, such as bad,good")
        sub.add_argument("--skip-bad-rows", action="store_true", help="skip rows that cannot be used")
    for sub in (pretraining, tuning):
        sub.add_argument("--budget", help="smoke, laptop, study, gpu, or a number of seconds")
        sub.add_argument("--seed", type=int, default=0, help="equal seeds give equal bytes")
        sub.add_argument("--out", type=folder_name, required=True, help="new folder for the run")
        sub.add_argument("--resume", action="store_true", help="resume the run in --out")
    measuring.add_argument("--split", help="train, valid, test or, of texts, all; by default test or valid")
    writing.add_argument("--prompt", default="", help="text to continue")
    writing.add_argument("--max-new-tokens", type=int, default=50, help="tokens at most")
    writing.add_argument("--temperature", type=float, default=1.0, help="below 1 sharpens, above 1 flattens")
    writing.add_argument("--top-k", type=int, help="sample from the k most probable tokens")
    writing.add_argument("--top-p", type=float, help="sample from the most probable tokens of probability p")
    writing.add_argument("--seed", type=int, default=0, help="equal seeds give equal texts")
    for sub in subs[:-1]:
        sub.add_argument("--device", default="auto", help="auto, cpu or cuda")
    counting.add_argument("--preset", required=True, help="a configuration by name, such as seed-lab")
    heads = ("lm", "classifier", "translation", "masked", "masked+nsp")
    counting.add_argument("--head", default="lm", choices=heads, help="the output layer on the body")
    data = commands.add_parser("data", help="Corpora to learn from.")
    _add_data(data.add_subparsers(required=True, metavar="ACTION"))
    return parser


def _corpus(args: argparse.Namespace, labels: bool) -> Any:
    """The corpus as it is named or, where the options say how to read it, as it is read.

    Labels are read if they are needed, or if the options say where or what they are.
    """
    names = ("text_column", "label_column", "label_names", "skip_bad_rows")
    options = {name: getattr(args, name) for name in names if getattr(args, name)}
    if not options:
        return args.corpus
    if getattr(args, "objective", None) == "translation":
        raise ValueError(f"pairs to translate have no columns and labels, got {', '.join(options)}")
    from tinytx_run.corpora import load_corpus

    labels = labels or bool(args.label_column or args.label_names)
    corpus, args.data_dir = load_corpus(args.corpus, args.data_dir, labels=labels, **options), None
    return corpus


def pretrain(args: argparse.Namespace) -> Answer:
    """Train a model and a tokenizer on a corpus: a language model on texts, or a translator on pairs."""
    from tinytx_run import pretrain as training

    changes, corpus = {"n_steps": args.steps, "precision": args.precision}, _corpus(args, labels=False)
    if args.objective == "translation":
        return _trained(args, changes, training.train_translator, corpus)
    return _trained(args, changes, training.pretrain, corpus, objective=args.objective)


def finetune(args: argparse.Namespace) -> Answer:
    """Train a classifier on labelled texts, from a pretrained body or from scratch."""
    from tinytx_run import finetune as tuning

    how = {"body": "fresh" if args.fresh else "pretrained", "n_epochs": args.epochs}
    corpus = _corpus(args, labels=True)
    return _trained(args, {"lr": args.lr}, tuning.finetune, args.checkpoint, corpus, **how)


def _trained(
    args: argparse.Namespace, changes: dict[str, Any], train: Callable[..., Any], *given: Any, **how: Any
) -> Answer:
    from tinytx_run.distributed import joined
    from tinytx_run.training import RunOptions

    where = {name: getattr(args, name) for name in ("resume", "device", "data_dir")}
    how["options"] = RunOptions(**where, shard=getattr(args, "shard", False), report=reporter(args))
    how["training_changes"] = {name: value for name, value in changes.items() if value is not None}
    with joined(args.device):
        result = train(*given, budget=args.budget, seed=args.seed, out=args.out, **how)
    return result.to_dict(), repr(result)


def evaluate(args: argparse.Namespace) -> Answer:
    """Loss of a language model, causal or masked, accuracy of a classifier, or BLEU of a translator."""
    from tinytx.classifier import Classifier
    from tinytx_run.evaluate import evaluate as measure

    checkpoint = _checkpoint(args)
    corpus = _corpus(args, labels=isinstance(checkpoint.model, Classifier))
    result = measure(checkpoint, corpus, split=args.split, data_dir=args.data_dir)
    return result.to_dict(), str(result)


def generate(args: argparse.Namespace) -> Answer:
    """Continue a prompt by sampling."""
    from tinytx.generate import Sampling
    from tinytx.generate import generate as write

    sampling = Sampling(**{field.name: getattr(args, field.name) for field in fields(Sampling)})
    model, tokenizer = _checkpoint(args).with_tokenizer()
    result = write(model, tokenizer, unicodedata.normalize("NFC", args.prompt), sampling)
    return {**result.to_dict(), "seed": args.seed}, str(result)


def _checkpoint(args: argparse.Namespace) -> Any:
    from tinytx.settings import choose_device
    from tinytx_run.checkpoint import load

    return load(args.checkpoint, choose_device(args.device))


def translate(args: argparse.Namespace) -> Answer:
    """Translate lines of standard input: one line out for each line in."""
    from tinytx.translate import translate as write

    translations = _answered(args, write, *_checkpoint(args).with_tokenizer())
    return {"translations": [asdict(one) for one in translations]}, None


def classify(args: argparse.Namespace) -> Answer:
    """Name the class of lines of standard input: for each one the class, a tab and its probability."""
    from tinytx_run.classify import classify as name_classes
    from tinytx_run.classify import require_classifier

    checkpoint = _checkpoint(args)
    model, tokenizer = require_classifier(checkpoint.model), checkpoint.with_tokenizer()[1]
    names = checkpoint.class_names or tuple(map(str, range(model.head.out_features)))
    found = _answered(args, name_classes, model, tokenizer, class_names=names)
    answer: dict[str, Any] = {"class_names": list(names), "texts": [one.text for one in found]}
    answer["classes"] = [one.predicted for one in found]
    answer["probabilities"] = [list(one.probabilities.values()) or None for one in found]
    return answer, None


def _answered(
    args: argparse.Namespace, answer: Callable[..., list[Any]], *given: Any, **how: Any
) -> list[Any]:
    """All answers to lines of standard input for ``--json``; without it each is printed when it is there."""
    from tinytx.inference import in_blocks

    if sys.stdin is None:
        raise ValueError("standard input must be open, got a closed one")

    def of_block(lines: list[str], first_line: int) -> list[Any]:
        return answer(*given, lines, first_line=first_line, report=say, **how)

    def say(line: str) -> None:
        print(f"tinytx: {line}", file=sys.stderr, flush=True)

    # A person who types waits for each line; files are read in blocks, which is faster.
    answers = in_blocks(of_block, _utf8_lines(sys.stdin.buffer), 1 if sys.stdin.isatty() else 256)
    if args.json:
        return list(answers)
    for each in answers:
        emit(str(each))
    return []


def _utf8_lines(stream: Iterable[bytes]) -> Iterator[str]:
    """Lines of a stream as those of a corpus are read; ValueError names the first that is no text."""
    from tinytx_run.letters import text_fault

    number = 0
    for raw in stream:
        text = raw.decode("utf-8-sig", "surrogateescape")  # files that were joined have marks in the middle
        for line in text.removesuffix("\n").rstrip("\r").split("\r"):
            number += 1
            if found := text_fault(line):
                raise ValueError(f"standard input, line {number}: {found[0]}, got {found[1]}")
            yield unicodedata.normalize("NFC", line)


def count(args: argparse.Namespace) -> Answer:
    """Count the parameters of a model, term by term."""
    from tinytx.config import PRESETS
    from tinytx.counting import build_empty, count_parameters, parameter_table

    if args.preset not in PRESETS:
        raise ValueError(f"preset must be one of {', '.join(PRESETS)}, got {args.preset!r}")
    config = PRESETS[args.preset]
    table, numel = parameter_table(config, args.head), count_parameters(build_empty(config, args.head))
    rows = [asdict(row) | {"total": row.total} for row in table.rows]
    shares = {kind: n / table.total for kind, n in table.kinds.items()}
    answer = {"head": args.head, "total": table.total, "numel": numel, "rows": rows, "proportions": shares}
    return answer | {
        "config": config.to_dict()
    }, f"{table}\nnumel of the model built: {numel:,}\n\n{table.proportions()}"


def _add_data(data: Any) -> None:
    listing = add_command(data, "list", data_list)
    listing.add_argument("name", nargs="?", help="show its addresses, checksums and licence")
    getting = add_command(data, "get", data_get)
    getting.add_argument("name", help="a corpus that `tinytx data list` names")
    source = "folder with the files, fetched elsewhere; needs no network"
    getting.add_argument("--from", dest="source", type=Path, help=source)
    getting.add_argument("--mirror", metavar="URL", help="address with the same paths, in place of GitHub's")
    verifying = add_command(data, "verify", data_verify)
    verifying.add_argument("name", nargs="?", help="a corpus; by default all that are there")
    folder = "folder that holds one folder a corpus (TINYTX_DATA, else the user's cache folder)"
    for sub in (listing, getting, verifying):
        sub.add_argument("--data-dir", type=Path, help=folder)


def data_list(args: argparse.Namespace) -> Answer:
    """List the corpora, or show one that can be downloaded."""
    from tinytx_run.corpora import list_corpora
    from tinytx_run.download import data_folder, dataset
    from tinytx_run.pairs import list_pair_corpora

    if args.name is not None:
        known = dataset(args.name)
        files = {known.url(path): checksum for path, checksum in known.files.items()}
        shown = ("name", "description", "licence", "citation", "rule")
        about = {name: getattr(known, name) for name in shown}
        lines = [f"{key}: {value}" for key, value in about.items()]
        lines.append("checksum (sha256 where none is named) and address of each upstream file:")
        lines += [f"{checksum}  {url}" for url, checksum in files.items()]
        return {**about, "files": files, "layout": dict(known.layout)}, "\n".join(lines)
    rows = [vars(info) for info in list_corpora(args.data_dir)]
    pairs = [vars(info) for info in list_pair_corpora(args.data_dir)]
    folder = data_folder(args.data_dir)
    ready = {True: "ready", False: "absent"}
    lines = [
        *(f"{row['name']:<21}{ready[row['available']]:<8}{row['description']}" for row in [*rows, *pairs]),
        f"absent ones: `tinytx data get NAME` brings them to {folder}",
        "any .txt (one document a line), .tsv (label, tab, text), .csv or .jsonl file can be named,",
        "a folder with train.csv and test.csv, or hf:NAME, a dataset of the library datasets;",
        "to translate, a .tsv (source, tab, target)",
    ]
    return {"corpora": rows, "pairs": pairs, "folder": str(folder)}, "\n".join(lines)


def data_get(args: argparse.Namespace) -> Answer:
    """Download a corpus, or read it from a folder; what is there already stays."""
    from tinytx_run.download import HOST, dataset, get

    if args.source is not None and args.mirror is not None:
        raise ValueError("--from must be without --mirror, as nothing is downloaded, got both")
    if args.mirror is not None and not args.mirror.startswith(("http://", "https://")):
        raise ValueError(
            f"--mirror must be an address that begins with https:// or http://, got {args.mirror!r}"
        )
    known = dataset(args.name)
    state = get(known, args.data_dir, source=args.source, host=args.mirror or HOST, report=reporter(args))
    lines = [
        f"{name}: " + (f"{facts['lines']:,} lines" if facts["lines"] else f"{facts['bytes']:,} bytes")
        for name, facts in state.files.items()
    ]
    if state.absent:
        lines.append(f"absent, not in the folder given: {', '.join(state.absent)}")
    lines += [f"licence: {known.licence}", f"please cite: {known.citation}"]
    about = {name: getattr(known, name) for name in ("name", "licence", "citation")}
    found = {"files": dict(state.files), "absent": list(state.absent), "changed": state.changed}
    answer = {**about, "folder": str(state.folder), **found}
    return answer, "\n".join([f"{args.name} is in {state.folder}", *lines])


def data_verify(args: argparse.Namespace) -> Answer:
    """Compare the corpora here with their checksums or, without one, with the known numbers of lines."""
    from tinytx_run.download import corpus_folder, data_folder, dataset, datasets, file_name, inspect

    folder = data_folder(args.data_dir)
    chosen = [known for known in datasets().values() if known.is_in(folder / known.name)]
    if args.name is not None:
        chosen = [dataset(args.name)]
        corpus_folder(args.name, args.data_dir)
    rows, lines = [], []
    for known in chosen:
        state = inspect(folder / known.name, known)
        absent, faults = list(state.absent), list(state.faults)
        by, n = "number of lines" if state.card is None else "checksum", len(state.files)
        if state.card is not None and not state.files.keys() <= set(map(file_name, known.files)):
            by = "the checksums that lie with them"  # upstream has no such files
        rows.append({"name": known.name, "by": by, "files": n, "absent": absent, "faults": faults})
        without = f", without {', '.join(absent)}" if absent else ""
        lines.append(f"{known.name}: sound by {by}: {n}, faults: {len(faults)}{without}")
        lines += [f"  {fault}" for fault in faults]
    answer = {"folder": str(folder), "corpora": rows, "exit_status": int(any(row["faults"] for row in rows))}
    return answer, "\n".join(lines or [f"no corpus is in {folder}"])


if __name__ == "__main__":
    sys.exit(main())
