"""Command lines, made from the parser itself: every command, every option, good and bad values."""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator

NUMBERS = ("0", "1", "2", "-1", "7", "0.5", "1e-9", "1e300", "nan", "inf", "-inf", "9" * 30)
NUMBERS += ("1_0", "٣", "0x10")
WORDS = ("", " ", "-", "--", "nowhere", "été", "a" * 3000, "../..", "a\nb", "🙂", "'; ls", "%s")
WORDS += ("{}", "\u202e")
PLACES = ("{m}/lm", "{m}/classifier", "{m}/run", "{m}/prose.txt", "{m}/reviews.tsv", "{m}", "/dev/null")
PLACES += ("{m}/reviews.csv", "{m}/reviews.jsonl", "{out}/new", "/proc/self/mem", "/")
#: Values that an option knows, so that some lines come far.
KNOWN = {
    "checkpoint": ("{m}/lm", "{m}/classifier", "{m}/run"),
    "corpus": ("world", "{m}/prose.txt", "{m}/reviews.tsv", "{m}/reviews.csv", "{m}/reviews.jsonl", "novels"),
    "out": ("{out}/new", "{m}/run", "{m}/lm"),
    "budget": ("smoke",),
    "steps": ("1", "2"),
    "device": ("cpu", "auto"),
    "objective": ("causal", "masked", "hybrid"),
    "precision": ("fp32", "bf16", "auto"),
    "preset": ("seed-lab", "gpt2"),
    "name": ("world", "cls-books", "tinyshakespeare", "imdb"),
    "split": ("train", "valid", "test"),
    "text_column": ("text",),
    "label_column": ("label",),
    "label_names": ("bad,good",),
    "max_new_tokens": ("1", "3"),
    "prompt": ("le chat", "été"),
}
#: They would read the network, or a terminal.
LEFT_OUT = ("mirror",)
TRAINING = ("pretrain", "finetune")


def leaves(
    parser: argparse.ArgumentParser, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], list]]:
    """Each command with its options."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, sub in action.choices.items():
                yield from leaves(sub, (*path, name))
            return
    yield path, [action for action in parser._actions if action.dest not in ("help", *LEFT_OUT)]


def command_line(parser: argparse.ArgumentParser, rng: random.Random) -> list[str]:
    """One line: most values known, some odd, some options absent, repeated or unknown."""
    path, options = rng.choice(list(leaves(parser)))
    oddness = rng.choice((0.0, 0.15, 0.15, 0.5))
    words: list[str] = []
    for option in options:
        needed = option.required or option.dest in ("budget", "steps", "device")
        for _ in range(1 if rng.random() < (0.97 if needed else 0.3) else 0):
            words += _words(option, rng, oddness)
    if path[0] in TRAINING and "smoke" not in words:
        words += ["--budget", "smoke"]
    if path[0] in TRAINING and rng.random() < 0.8:  # one that trains takes seconds
        words += (
            ["--seed", rng.choice(NUMBERS[3:])] if rng.random() < 0.5 else ["--device", rng.choice(WORDS)]
        )
    if rng.random() < oddness / 3:
        words.insert(rng.randrange(len(words) + 1), rng.choice(("--unknown", "-h", "--json=1", *WORDS)))
    return [*path, *words]


def _words(option: argparse.Action, rng: random.Random, oddness: float) -> list[str]:
    flag = option.option_strings[:1]
    if option.nargs == 0:
        return flag
    odd = rng.choice((NUMBERS, WORDS, PLACES))
    known = tuple(map(str, option.choices or ())) or KNOWN.get(option.dest, NUMBERS)
    value = rng.choice(odd if rng.random() < oddness else known)
    return [f"{flag[0]}={value}"] if flag and value.startswith("-") else [*flag, value]
