"""Try the built wheel as in Colab, in awkward folders and with next to no environment; write TRIED.md."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.anywhere.page import write_page
from tests.anywhere.places import AWKWARD, ROOT, Colab, bare, build_wheel, new_environment, run
from tinytx_course.lessons import Lesson, pick_lessons
from tinytx_course.results import Results
from tinytx_run.corpora import label_subset, load_corpus
from tinytx_run.finetune import Body, finetune
from tinytx_run.intervals import paired_interval
from tinytx_run.pretrain import pretrain
from tinytx_run.training import RunOptions

TRAIN = ("pretrain", "--corpus", "world", "--budget", "smoke", "--out", "run")
WRITE = ("generate", "run", "--prompt", "le", "--seed", "1", "--max-new-tokens", "5")


class Places:
    """What is tried, each once, in one temporary folder."""

    def __init__(self, folder: Path, lessons: list[Lesson]) -> None:
        self.folder, self.lessons = folder, lessons
        self.wheel = build_wheel(folder / "wheel")
        self._python: Path | None = None

    def python(self) -> Path:
        """An environment with the wheel and what it needs, in an awkward folder."""
        if self._python is None:
            self._python = new_environment(self.folder / AWKWARD / "venv", str(self.wheel))
        return self._python

    def _trains_and_writes(self, name: str, **environment: str) -> str:
        """Train for seconds, resume, write, with these variables alone."""
        here = self.folder / AWKWARD / name
        here.mkdir(parents=True)
        command = (self.python(), "-m", "tinytx_run.cli")
        for words in (TRAIN, (*TRAIN, "--resume"), WRITE):
            run(*command, *words, cwd=here, env=bare(here, **environment))
        return "trained, resumed and wrote"

    def awkward_folder(self) -> str:
        """a folder of over 200 characters with spaces, accents and an apostrophe"""
        return self._trains_and_writes("plain")

    def plain_locale(self) -> str:
        """`LANG=C`, `PYTHONUTF8=0`, output as UTF-8; torch lies in a plain folder then"""
        plain = self.folder / "venv"
        plain.symlink_to(self.python().parents[1])
        self._python = plain / "bin" / "python"
        return self._trains_and_writes(
            "locale", LANG="C", LC_ALL="C", PYTHONUTF8="0", PYTHONIOENCODING="utf-8"
        )

    def no_home_no_git(self) -> str:
        """no home folder, no git, no PATH"""
        return self._trains_and_writes("homeless", HOME="/nonexistent", PATH="")

    def read_only_installation(self) -> str:
        """an installation that nobody can write to"""
        here = self.folder / AWKWARD / "read-only"
        here.mkdir(parents=True)
        script = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'
        walls = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh")
        venv = self.python().parents[1]
        for words in (TRAIN, WRITE):
            command = (*walls, venv, self.python(), "-m", "tinytx_run.cli", *words)
            run(*command, cwd=here, env=bare(here, PATH="/usr/bin:/bin"))
        return "trained and wrote"

    def colab(self) -> str:
        """Colab, simulated: no checkout, the first cell installs the wheel, `google.colab` importable"""
        colab = Colab(self.folder / "colab", self.wheel)
        for lesson in self.lessons:
            colab.execute(lesson)
        names = ", ".join(f"{one.number:02d}" for one in self.lessons)
        return f"notebooks {names} ran from top to bottom at the smallest budget"

    def uv(self) -> str:
        """uv in place of pip"""
        folder = self.folder / "uv"
        environment = bare(folder, PATH=f"{Path(sys.executable).parent}:/usr/bin:/bin")
        environment |= (
            {"UV_FIND_LINKS": environment["PIP_FIND_LINKS"]} if "PIP_FIND_LINKS" in environment else {}
        )
        uv = (sys.executable, "-m", "uv")
        run(*uv, "venv", "--quiet", folder / "venv", env=environment)
        pins = ("-c", ROOT / "constraints.txt")
        run(*uv, "pip", "install", "--quiet", "--python", folder / "venv", *pins, self.wheel, env=environment)
        return run(folder / "venv" / "bin" / "tinytx", "--version", env=bare(folder)).strip()

    def two_precisions(self) -> str:
        """the question of lesson 09, pretrained minus scratch with 50 labels, in float32 and in bfloat16"""
        corpus = load_corpus("world")
        fewer = replace(corpus, test=label_subset(corpus.test, 500, seed=0))
        options = RunOptions(progress=False, report=lambda line: None)
        quiet: dict[str, Any] = {"budget": "laptop", "options": options}
        found = []
        for precision in ("fp32", "bf16"):
            how = quiet | {"training_changes": {"precision": precision}}
            start = pretrain(corpus, **how)

            def accuracy(seed: int, body: Body, start=start, how=how) -> float:
                more = {"body": body, "seed": seed, "n_labels": 50, "n_scored": 10}
                return finetune(start, fewer, **more, **how).evaluation.score.accuracy

            gain = paired_interval(
                [accuracy(seed, "pretrained") - accuracy(seed, "fresh") for seed in range(5)]
            )
            found.append(f"{precision} {gain.mean:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]")
        return ", ".join(found) + ", 5 seeds"


def tried(folder: Path, lessons: list[Lesson], only: list[str]) -> list[tuple[str, dict]]:
    """Try each place; a record names what was done, or the failure."""
    places, found = Places(folder, lessons), []
    every: dict[str, Callable[[], str]] = {
        name: getattr(places, name)
        for name in (
            "awkward_folder",
            "plain_locale",
            "no_home_no_git",
            "read_only_installation",
            "uv",
            "colab",
            "two_precisions",
        )
    }
    for name, attempt in every.items():
        if only and name not in only:
            continue
        begin = time.monotonic()
        record = {"what": attempt.__doc__, "python": sys.version.split()[0], "ok": True}
        try:
            record["done"] = attempt()
        except Exception as problem:  # whatever it is, it is a finding, and the other places are tried
            record |= {"ok": False, "done": str(problem)[-1500:]}
        print(f"{name}: {record['done']} ({time.monotonic() - begin:.0f} s)", flush=True)
        found.append((name, record))
    return found


def main() -> int:
    """Read the options, try, store, write the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.anywhere", description=__doc__)
    parser.add_argument("--only", action="append", default=[], help="the name of a place; all by default")
    parser.add_argument("--notebooks", nargs="*", help="numbers of lessons, such as 02; all by default")
    parser.add_argument("--results", type=Path, help="folder to store the table in, such as results")
    args = parser.parse_args()
    lessons = pick_lessons(args.notebooks or [], ROOT)
    with tempfile.TemporaryDirectory(prefix="anywhere-") as folder:
        found = tried(Path(folder), lessons, args.only)
    if args.results:
        for name, record in found:
            Results("anywhere", args.results).put(name, record)
        print(f"wrote {write_page(ROOT)}")
    return 0 if all(record["ok"] for _, record in found) else 1


if __name__ == "__main__":
    sys.exit(main())
