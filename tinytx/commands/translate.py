"""The command `translate`: lines in, lines out."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from tinytx.commands.options import Answer, search_from


def translate(args: argparse.Namespace) -> Answer:
    """Translate lines of standard input, or of a file: one line out for each line in."""
    from tinytx.model import Translator
    from tinytx.training import choose_device, load, load_tokenizer
    from tinytx.training.translation.translating import translate_lines

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
