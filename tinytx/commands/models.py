"""The commands that use a model: `evaluate`, `translate`, `generate`, `count`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tinytx.commands.options import (
    MODEL_FIELDS,
    Answer,
    add_command,
    add_corpus,
    add_device,
    add_model,
    add_reading,
    add_search,
    corpus_from,
    given,
    search_from,
)
from tinytx.commands.translate import translate


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
    from tinytx.training import evaluate_checkpoint

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


def _config(args: argparse.Namespace) -> Any:
    from tinytx.model import PRESETS, TransformerConfig
    from tinytx.training.runs.files import read_json

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
