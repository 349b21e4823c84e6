"""The command ``tinytx``: pretrain, finetune, evaluate, translate, generate, count, data."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

Answer = tuple[dict[str, Any], str | None]  # what --json prints, and what a person reads
Command = Callable[[argparse.Namespace], Answer]

READING_FIELDS = ("text_column", "label_column", "label_names", "skip_bad_rows")
MODEL_FIELDS = ("vocab_size", "d_model", "n_heads", "n_layers", "d_ff", "max_len", "dropout")


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are one line, like all others."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message} (see {self.prog} --help)")


def add_command(commands: Any, name: str, function: Command) -> Parser:
    """A command whose help is the docstring of its function."""
    words = (function.__doc__ or "").strip()
    sub = commands.add_parser(name, help=words, description=words)
    sub.set_defaults(command=function)
    sub.add_argument("--json", action="store_true", help="print one JSON object on standard output")
    return sub


def add_group(commands: Any, name: str, words: str, metavar: str) -> Any:
    """A command that has commands of its own, such as ``tinytx data``."""
    return commands.add_parser(name, help=words).add_subparsers(required=True, metavar=metavar)


def add_device(sub: Parser) -> None:
    """Where to compute."""
    sub.add_argument("--device", default="auto", help="auto, cpu or cuda")


def add_corpus(sub: Parser, *, default: str | None = None) -> None:
    """Which text, and where it lies."""
    sub.add_argument(
        "--corpus", required=default is None, default=default, help="a name, a file of texts, or hf:NAME"
    )
    sub.add_argument("--data-dir", type=Path, help="folder that holds one folder a corpus")
    add_device(sub)


def add_reading(sub: Parser) -> None:
    """How texts of one's own are read."""
    sub.add_argument("--text-column", help="column of a .csv, .jsonl or .tsv that holds the texts")
    sub.add_argument("--label-column", help="column that holds the labels")
    sub.add_argument("--label-names", type=words, help="the known labels, such as bad,good for 0 and 1")
    sub.add_argument("--skip-bad-rows", action="store_true", help="pass over rows that cannot be used")


def corpus_from(args: argparse.Namespace) -> Any:
    """The corpus as it is named or, where the options say how to read it, as it is read."""
    asked = {name: getattr(args, name) for name in READING_FIELDS if getattr(args, name)}
    if not asked:
        return args.corpus
    from tinytx.text.corpora import load_corpus

    return load_corpus(args.corpus, args.data_dir, **asked)


def add_model(sub: Parser) -> None:
    """The fields of a configuration, one option each."""
    for name in MODEL_FIELDS:
        kind: type = float if name == "dropout" else int
        sub.add_argument(f"--{name.replace('_', '-')}", type=kind, help=f"{name} of the model")


def add_kept(sub: Parser, *, seeds: int | None) -> None:
    """How much an experiment spends, and where its results are kept."""
    sub.add_argument("--budget", help="smoke, laptop, study, gpu, or a number of seconds")
    sub.add_argument("--seeds", type=int, default=seeds, help="number of seeds")
    sub.add_argument("--results", type=Path, default=Path("results"), help="folder of the kept results")


def add_search(sub: Parser, *, beam: int = 1) -> None:
    """How translations are searched for."""
    sub.add_argument("--beam", type=int, default=beam, help="translations followed at once; 1 is greedy")
    sub.add_argument(
        "--length-penalty", type=float, default=1.0, help="log P is divided by length to this power"
    )


def numbers(text: str) -> list[int]:
    """Read ``50,200`` as a list."""
    return [int(part) for part in text.split(",")]


def words(text: str) -> list[str]:
    """Read ``bad,good`` as a list."""
    return [part.strip() for part in text.split(",")]


def search_from(args: argparse.Namespace) -> Any:
    """How to search for translations, as the options say."""
    from tinytx.training.beam import Search

    return Search(beam_size=args.beam, length_penalty=args.length_penalty)


def given(args: argparse.Namespace, fields: dict[str, str]) -> dict[str, Any]:
    """The options among these that were given, under the names of the settings they change."""
    values = {field: getattr(args, option, None) for option, field in fields.items()}
    return {field: value for field, value in values.items() if value is not None}


def reporter(args: argparse.Namespace) -> Callable[[str], None]:
    """Tells a line of progress."""
    # With --json standard output holds the one object and nothing else.
    stream = sys.stderr if args.json else sys.stdout
    return lambda line: print(line, file=stream, flush=True)


TRAINING_FIELDS = {
    "steps": "n_steps",
    "lr": "lr",
    "tokens_per_batch": "tokens_per_batch",
    "precision": "precision",
}


def add_training(commands: Any) -> None:
    """`pretrain` and `finetune`."""
    sub = add_command(commands, "pretrain", pretrain)
    _add_run(sub)
    sub.add_argument("--objective", default="causal", help="causal, masked, masked+nsp, or translation")
    sub.add_argument("--whole-words", action="store_true", help="masked: hide words, not pieces")
    add_model(sub)
    sub.add_argument("--steps", type=int, help="steps, in place of the budget's")
    sub.add_argument("--lr", type=float, help="highest learning rate")
    sub.add_argument("--tokens-per-batch", type=int, help="tokens of a batch at most, padding included")
    sub.add_argument("--precision", help="auto, fp32 or bf16")
    sub.add_argument("--shard", action="store_true", help="under torchrun: a part of the model a process")

    sub = add_command(commands, "finetune", finetune)
    sub.add_argument("checkpoint", type=Path, help="folder of a model, or a published name")
    _add_run(sub)
    sub.add_argument("--fresh", action="store_true", help="same tokenizer and configuration, new weights")
    sub.add_argument("--frozen", action="store_true", help="train the head alone, on the body as it is")
    sub.add_argument("--labels", type=int, help="learn from so many labelled texts only")
    sub.add_argument("--pooling", default="mean", help="mean, last or first")


def _add_run(sub: Parser) -> None:
    add_corpus(sub)
    add_reading(sub)
    sub.add_argument("--budget", help="smoke, laptop, study, gpu, or a number of seconds")
    sub.add_argument("--seed", type=int, default=0, help="equal seeds give equal bytes")
    sub.add_argument("--out", type=Path, required=True, help="new folder for the run")
    sub.add_argument("--resume", action="store_true", help="go on with the run in --out")
    sub.add_argument("--accumulate", type=int, default=1, help="parts of a batch computed in turn")


def pretrain(args: argparse.Namespace) -> Answer:
    """Train a model and a tokenizer on a corpus: of language, or on pairs of sentences a translator."""
    from tinytx.training.distributed import joined
    from tinytx.training.fit import pretrain, train_translator
    from tinytx.training.settings import Layout

    asked: dict[str, Any] = {
        "budget": args.budget,
        "seed": args.seed,
        "out": args.out,
        "resume": args.resume,
        "data_dir": args.data_dir,
        "device": args.device,
        "vocab_size": args.vocab_size,
        "model_changes": given(args, {name: name for name in MODEL_FIELDS if name != "vocab_size"}),
        "training_changes": given(args, TRAINING_FIELDS),
        "layout": Layout(accumulate=args.accumulate, shard=args.shard),
        "report": reporter(args),
    }
    if args.whole_words and not args.objective.startswith("masked"):
        raise ValueError(f"--whole-words goes with a masked objective, got {args.objective}")
    corpus = corpus_from(args)
    if args.objective == "translation":
        if corpus is not args.corpus:
            raise ValueError("columns, labels and rows may be told of texts, got pairs to translate")
        with joined(args.device):
            translator = train_translator(args.corpus, **asked)
        return translator.to_dict(), repr(translator)
    masking = {"whole_words": True} if args.whole_words else None
    with joined(args.device):
        result = pretrain(corpus, objective=args.objective, masking_changes=masking, **asked)
    return result.to_dict(), repr(result)


def finetune(args: argparse.Namespace) -> Answer:
    """Train a classifier on labelled texts, from a pretrained body or from scratch."""
    from tinytx.training.distributed import joined
    from tinytx.training.fit import finetune

    with joined(args.device):
        result = finetune(
            args.checkpoint,
            corpus_from(args),
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
            accumulate=args.accumulate,
            report=reporter(args),
        )
    return result.to_dict(), repr(result)


def translate(args: argparse.Namespace) -> Answer:
    """Translate lines of standard input, or of a file: one line out for each line in."""
    from tinytx.model.encoder_decoder import Translator
    from tinytx.training.checkpoint import load, load_tokenizer
    from tinytx.training.settings import choose_device
    from tinytx.training.translate import translate_lines

    if args.block < 1:
        raise ValueError(f"block must be at least 1, got {args.block}")
    search = search_from(args)
    model = load(args.checkpoint, choose_device(args.device))
    if not isinstance(model, Translator):
        raise ValueError(f"translating needs a translator, got a {type(model).__name__}")
    tokenizer = load_tokenizer(args.checkpoint)
    name = "standard input" if args.file is None else str(args.file)
    done = []
    with sys.stdin.buffer if args.file is None else args.file.open("rb") as stream:
        # A person who types waits for each line; files go in blocks, which is faster.
        block = 1 if stream.isatty() else args.block
        found = translate_lines(
            model,
            tokenizer,
            read_utf8(stream, name),
            lines_per_block=block,
            search=search,
            report=lambda line: print(f"tinytx: {line}", file=sys.stderr, flush=True),
        )
        for one in found:
            if args.json:
                done.append(one.to_dict())
            elif not write_line(one.text):
                break
    return {"search": search.to_dict(), "translations": done}, None


def read_utf8(stream: BinaryIO | Iterable[bytes], name: str) -> Iterator[str]:
    """Lines of a stream without their ends; one that is not UTF-8 is refused by its number."""
    for number, raw in enumerate(stream, start=1):
        line = raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            byte = line[error.start]
            raise ValueError(
                f"{name}, line {number}: must be UTF-8 text, got the byte 0x{byte:02x}"
            ) from error
        yield text.removesuffix("\n").removesuffix("\r")


def write_line(text: str) -> bool:
    """Write a line at once; False when nobody reads any more."""
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # What Python would still flush at its end must go somewhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True


def add_readers(commands: Any) -> None:
    """`evaluate`, `translate`, `generate` and `count`."""
    sub = add_command(commands, "evaluate", evaluate)
    sub.add_argument("checkpoint", type=Path, help="folder of a model, ours or of transformers")
    add_corpus(sub)
    add_reading(sub)
    sub.add_argument("--split", help="train, valid, test or all; by default test, or valid without a test")
    add_search(sub)

    sub = add_command(commands, "translate", translate)
    sub.add_argument("checkpoint", type=Path, help="folder of a translator, or a published name")
    sub.add_argument("file", type=Path, nargs="?", help="lines to translate; standard input by default")
    add_search(sub)
    sub.add_argument("--block", type=int, default=256, help="lines translated at once")
    add_device(sub)

    sub = add_command(commands, "generate", generate)
    sub.add_argument("checkpoint", type=Path, help="folder of a language model, or a published name")
    sub.add_argument("--prompt", default="", help="text to carry on")
    sub.add_argument("--max-new-tokens", type=int, default=50, help="pieces at most")
    sub.add_argument("--temperature", type=float, default=1.0, help="below 1 sharpens, above 1 flattens")
    sub.add_argument("--top-k", type=int, help="keep the k most probable pieces")
    sub.add_argument("--top-p", type=float, help="keep the most probable pieces that reach probability p")
    sub.add_argument("--seed", type=int, default=0, help="equal seeds give equal texts")
    add_device(sub)

    sub = add_command(commands, "count", count)
    sub.add_argument("--preset", help="a configuration by name, such as seed-lab")
    sub.add_argument("--config", type=Path, help="JSON file with fields of a configuration")
    heads = ("lm", "classifier", "translation", "masked", "masked+nsp")
    sub.add_argument("--head", default="lm", choices=heads, help="what stands on the body")
    sub.add_argument("--n-classes", type=int, default=2, help="classes of the classifier")
    sub.add_argument("--diagnose", type=int, metavar="N", help="say which mistake gives this wrong number")
    sub.add_argument("--part", default="total", help="what N is about: total, attention, feed_forward, ...")
    add_model(sub)


def evaluate(args: argparse.Namespace) -> Answer:
    """Loss of a language model, causal or masked, accuracy of a classifier, or BLEU of a translator."""
    from tinytx.training.evaluate import evaluate_checkpoint

    result = evaluate_checkpoint(
        args.checkpoint,
        corpus_from(args),
        split=args.split,
        data_dir=args.data_dir,
        device=args.device,
        search=search_from(args),
    )
    return result.to_dict(), str(result)


def generate(args: argparse.Namespace) -> Answer:
    """Carry on a prompt by sampling."""
    from tinytx.training.checkpoint import load, load_tokenizer
    from tinytx.training.generate import generate
    from tinytx.training.settings import choose_device

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
    from tinytx.model.diagnosis import count_report

    report = count_report(_config(args), args.head, args.n_classes, args.diagnose, args.part)
    return report.to_dict(), str(report)


def _config(args: argparse.Namespace) -> Any:
    from tinytx.model.config import PRESETS, TransformerConfig
    from tinytx.training.checkpoint import read_json

    fields: dict[str, Any] = {}
    if args.preset is not None:
        if args.preset not in PRESETS:
            raise ValueError(f"preset must be one of {', '.join(PRESETS)}, got {args.preset!r}")
        fields = PRESETS[args.preset].to_dict()
    if args.config is not None:
        fields |= read_json(args.config)
    try:
        return TransformerConfig.from_dict(fields | given(args, {name: name for name in MODEL_FIELDS}))
    except TypeError as error:  # a number written as a string in the file, say
        raise ValueError(str(error)) from error


def add_data(commands: Any) -> None:
    """`data ACTION`."""
    data = add_group(commands, "data", "Corpora to learn from.", "ACTION")
    sub = add_command(data, "list", data_list)
    sub.add_argument("name", nargs="?", help="tell all about this one: addresses, checksums, licence")
    _add_data_dir(sub)

    sub = add_command(data, "get", data_get)
    sub.add_argument("name", help="a corpus that `tinytx data list` names")
    _add_data_dir(sub)
    sub.add_argument(
        "--from", dest="source", type=Path, help="folder with the files, fetched elsewhere; no network then"
    )
    sub.add_argument("--mirror", metavar="URL", help="address with the same paths, in place of GitHub's")

    sub = add_command(data, "verify", data_verify)
    sub.add_argument("name", nargs="?", help="a corpus; all that are there when left out")
    _add_data_dir(sub)


def _add_data_dir(sub: Parser) -> None:
    sub.add_argument(
        "--data-dir",
        type=Path,
        help="folder that holds one folder a corpus (TINYTX_DATA, else the user's cache folder)",
    )


def data_list(args: argparse.Namespace) -> Answer:
    """Name the corpora that can be asked for, or tell all about one that can be downloaded."""
    from tinytx.text.corpora import list_corpora
    from tinytx.text.download import data_folder
    from tinytx.text.pairs import list_pair_corpora

    if args.name is not None:
        return _about(args.name)
    rows = [vars(info) for info in list_corpora(args.data_dir)]
    pairs = [vars(info) for info in list_pair_corpora(args.data_dir)]
    folder = data_folder(args.data_dir)
    lines = [
        f"{row['name']:<21}{'ready' if row['available'] else 'absent':<8}{row['description']}"
        for row in [*rows, *pairs]
    ]
    lines.append(f"absent ones: `tinytx data get NAME` brings them to {folder}")
    lines.append("any .txt (one document a line), .tsv (label, tab, text), .csv or .jsonl file can be named,")
    lines.append("a folder with train.csv and test.csv, or hf:NAME, a dataset of the library datasets;")
    lines.append("to translate, a .tsv (source, tab, target)")
    return {"corpora": rows, "pairs": pairs, "folder": str(folder)}, "\n".join(lines)


def _about(name: str) -> Answer:
    from tinytx.text.download import dataset

    known = dataset(name)
    files = {known.url(path): sha256 for path, sha256 in known.files.items()}
    about = {
        "name": name,
        "description": known.description,
        "licence": known.licence,
        "citation": known.citation,
        "rule": known.rule,
    }
    lines = [f"{key}: {value}" for key, value in about.items()]
    lines += ["sha256 and address of each upstream file:", *(f"{s}  {url}" for url, s in files.items())]
    return {**about, "files": files, "layout": dict(known.layout)}, "\n".join(lines)


def data_get(args: argparse.Namespace) -> Answer:
    """Bring a corpus here, from where it is published or from a folder; what is there already stays."""
    from tinytx.text.download import HOST, dataset, get

    if args.source is not None and args.mirror is not None:
        raise ValueError("--from goes without --mirror: nothing is downloaded then")
    got = get(
        dataset(args.name),
        args.data_dir,
        source=args.source,
        host=args.mirror or HOST,
        report=reporter(args),
    )
    lines = [
        f"{name}: " + (f"{facts['lines']:,} lines" if facts["lines"] else f"{facts['bytes']:,} bytes")
        for name, facts in got.state.files.items()
    ]
    if got.state.absent:
        lines.append(f"absent, not in the folder given: {', '.join(got.state.absent)}")
    lines += [f"licence: {got.dataset.licence}", f"please cite: {got.dataset.citation}"]
    return got.to_dict(), "\n".join([f"{args.name} is in {got.state.folder}", *lines])


def data_verify(args: argparse.Namespace) -> Answer:
    """Compare what lies here with its checksums or, where it has none, with the known numbers of lines."""
    from tinytx.text.download import corpus_folder, data_folder, dataset, datasets, inspect

    folder = data_folder(args.data_dir)
    if args.name is not None:
        chosen = [dataset(args.name)]
        corpus_folder(args.name, args.data_dir)
    else:
        chosen = [known for known in datasets().values() if (folder / known.name).is_dir()]
    rows, lines = [], []
    for known in chosen:
        state = inspect(folder / known.name, known)
        by = "checksum" if state.card is not None else "number of lines"
        rows.append(
            {
                "name": known.name,
                "by": by,
                "files": len(state.files),
                "absent": list(state.absent),
                "faults": list(state.faults),
            }
        )
        without = f", without {', '.join(state.absent)}" if state.absent else ""
        lines.append(f"{known.name}: sound by {by}: {len(state.files)}, faults: {len(state.faults)}{without}")
        lines += [f"  {fault}" for fault in state.faults]
    sound = not any(row["faults"] for row in rows)
    answer = {"folder": str(folder), "corpora": rows, "exit_status": 0 if sound else 1}
    return answer, "\n".join(lines or [f"no corpus lies in {folder}"])


# One that has lost another process is ended by torchrun, which names whoever ended first as the culprit.
SECONDS_TO_BE_ENDED = 10


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command of `tinytx`; see `run`."""
    return run(build_parser(), argv)


def run(parser: Parser, argv: Sequence[str] | None = None) -> int:
    """Parse the arguments, call the command they name, print its answer.

    Parameters
    ----------
    parser : Parser
        Its commands were added by `add_command`.
    argv : sequence of str, optional
        Arguments; those of the process by default.

    Returns
    -------
    int
        0 when done; 2 after bad input, told in one line on standard error; 130 when stopped by hand.
    """
    args = argparse.Namespace()
    try:
        args = parser.parse_args(argv)
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            answer, text = args.command(args)
    except KeyboardInterrupt as stop:
        happened = getattr(stop, "happened", "stopped by hand")
        if _process_number():
            return 130
        print(f"tinytx: {happened}{_how_to_go_on(args, argv)}", file=sys.stderr)
        return 130
    except (ValueError, OSError) as error:
        who = f"process {number}: " if (number := _process_number()) else ""
        print(f"tinytx: {who}error: {' '.join(str(error).split())}", file=sys.stderr, flush=True)
        if isinstance(error, ConnectionError):
            time.sleep(SECONDS_TO_BE_ENDED)
        return 2
    status = answer.pop("exit_status", 0)
    if _process_number():
        return status
    if args.json:
        print(json.dumps(answer, ensure_ascii=False))
    elif text is not None:  # None: the command has written line by line
        print(text)
    return status


def _show_warning(message: Warning | str, *where: Any, **more: Any) -> None:
    """A warning in one line, as errors are told."""
    if not _process_number():
        print(f"tinytx: warning: {' '.join(str(message).split())}", file=sys.stderr, flush=True)


def _process_number() -> int:
    """Which one this is of the processes that torchrun started; 0 for one alone."""
    return int(os.environ["RANK"]) if "TORCHELASTIC_RUN_ID" in os.environ else 0


def _how_to_go_on(args: argparse.Namespace, argv: Sequence[str] | None) -> str:
    """The command that goes on with a run, where there is one to go on with."""
    if not hasattr(args, "resume") or not any(args.out.glob("step-*")):
        return ""
    words = sys.argv[1:] if argv is None else list(argv)
    if not args.resume:
        words.append("--resume")
    program = ["python", "-m", "tinytx.cli"] if Path(sys.argv[0]).name == "cli.py" else ["tinytx"]
    if "TORCHELASTIC_RUN_ID" in os.environ:
        program = ["torchrun", f"--nproc-per-node={os.environ['LOCAL_WORLD_SIZE']}", "-m", "tinytx.cli"]
    return f"; to go on: {shlex.join([*program, *words])}"


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands; ``args.command`` of what it reads is the function to call."""
    parser = Parser(prog="tinytx", description="A small transformer to learn from.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for add in (add_training, add_readers, add_data):
        add(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
