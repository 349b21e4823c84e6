"""Thousands of generated command lines and damaged files: no traceback, no hang, no silent wrong result."""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tqdm.auto import tqdm

from tests.fuzz.children import run_child
from tests.fuzz.commands import command_line
from tests.fuzz.material import damaged, write_material
from tinytx_course.results import Results
from tinytx_run.cli import build_parser
from tinytx_run.cli import main as tinytx

GENERATE = (
    "generate",
    "{f}",
    "--prompt",
    "le chat",
    "--seed",
    "1",
    "--max-new-tokens",
    "5",
    "--device",
    "cpu",
)
EVALUATE = ("evaluate", "{m}/{model}", "--corpus", "{f}", "--device", "cpu")
#: What reads each file. Where a damaged model still answers, its answer must be that of the whole one.
READERS = {
    "lm": GENERATE,
    "run": GENERATE,
    "prose.txt": tuple(x.replace("{model}", "lm") for x in EVALUATE),
    "reviews.tsv": tuple(x.replace("{model}", "classifier") for x in EVALUATE),
    "reviews.csv": tuple(x.replace("{model}", "classifier") for x in EVALUATE),
    "reviews.jsonl": tuple(x.replace("{model}", "classifier") for x in EVALUATE),
}
STDIN = (b"", b"le chat\n", b"\xff\xfe\n", b"un\0livre\n", b"a" * 5000, b"\r\n\r\n")
BAD = ("traceback", "hang", "killed", "noise", "silent")


class Rounds:
    """Both kinds of rounds in one temporary folder; what went wrong is printed as it is found."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.material, self.copy, self.out = (folder / name for name in ("material", "copy", "out"))
        self.material.mkdir()
        write_material(self.material)
        self.child = folder / "child"

    def _run(self, words: list[str], stdin: bytes = b"", material: Path | None = None):
        shutil.rmtree(self.out, ignore_errors=True)
        self.out.mkdir()
        places = {"{m}": str(material or self.copy), "{out}": str(self.out)}
        for name, place in places.items():
            words = [word.replace(name, place) for word in words]
        return run_child(tinytx, words, self.child, stdin), words

    def commands(self, n: int) -> Counter[str]:
        """Run lines made from the parser; the material is whole again before each that may write into it."""
        parser, found = build_parser(), Counter[str]()
        for _ in tqdm(range(n), desc="command lines", disable=None):
            self._renew()
            outcome, words = self._run(command_line(parser, self.rng), self.rng.choice(STDIN))
            found[outcome.kind] += 1
            self._tell(outcome.kind, words, outcome.said)
        return found

    def files(self, n: int) -> Counter[str]:
        """Damage one file of a model, a run or a corpus, and read it."""
        whole = {name: self._run(self._reader(name), material=self.material)[0] for name in READERS}
        found: Counter[str] = Counter()
        for _ in tqdm(range(n), desc="damaged files", disable=None):
            self._renew()
            name = self.rng.choice(list(READERS))
            place = self.copy / name
            files = [place] if place.is_file() else sorted(x for x in place.rglob("*") if x.is_file())
            path = self.rng.choice(files)
            data = path.read_bytes()
            path.write_bytes(damaged(data, self.rng))
            outcome, words = self._run(self._reader(name))
            kind = outcome.kind
            if kind == "done" and place.is_dir() and outcome.printed != whole[name].printed:
                kind = "silent"
            found[kind] += 1
            self._tell(
                kind, [*words, f"with {path.relative_to(self.copy)} damaged"], outcome.said + outcome.printed
            )
        return found

    def _reader(self, name: str) -> list[str]:
        return [word.replace("{f}", f"{{m}}/{name}") for word in READERS[name]]

    def _renew(self) -> None:
        shutil.rmtree(self.copy, ignore_errors=True)
        shutil.copytree(self.material, self.copy)

    @staticmethod
    def _tell(kind: str, words: list[str], said: str) -> None:
        if kind in BAD:
            tqdm.write(f"{kind}: {[word[:80] for word in words]}\n{said[-900:]!r}", file=sys.stderr)


def main() -> int:
    """Read the options, run the rounds, print and store the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--commands", type=int, default=5000)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path, help="folder to store the table in, such as results")
    args = parser.parse_args()
    os.environ["TINYTX_BUDGET"] = "smoke"
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    rounds, n_bad = Rounds(folder, args.seed), 0
    for name, n in (("command lines", args.commands), ("damaged files", args.files)):
        if not n:
            continue
        found = rounds.commands(n) if name == "command lines" else rounds.files(n)
        n_bad += sum(found[kind] for kind in BAD)
        row = {"n": n, "seed": args.seed, **{kind: found[kind] for kind in ("done", "refused", *BAD)}}
        print(f"{name}: {', '.join(f'{value} {key}' for key, value in row.items())}", flush=True)
        if args.results:
            Results("fuzz", args.results).put(name, row)
    shutil.rmtree(folder)
    return 1 if n_bad else 0


if __name__ == "__main__":
    sys.exit(main())
