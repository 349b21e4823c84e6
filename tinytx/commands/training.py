"""The commands that train: `pretrain` and `finetune`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tinytx.commands.options import (
    MODEL_FIELDS,
    Answer,
    Parser,
    add_command,
    add_corpus,
    add_model,
    add_reading,
    corpus_from,
    given,
    reporter,
)

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
    from tinytx.training import pretrain
    from tinytx.training.parallel.distributed import joined
    from tinytx.training.settings import Layout
    from tinytx.training.translation.translators import train_translator

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
    from tinytx.training import finetune
    from tinytx.training.parallel.distributed import joined

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
