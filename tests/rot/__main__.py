"""Try the course with the newest versions of what it needs, the lowest it allows, and those of past months.

Each set is resolved by uv into an environment of its own; pins are ignored. There a sample of the tests runs,
and every notebook at the smallest budget. torch stays at the version of this environment: another one is a
download of gigabytes, and belongs to the weekly workflow.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import chain
from pathlib import Path

from packaging.requirements import Requirement

from tests.environments import copy_commit
from tinytx_course.results import Results

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = ("lessons", "course", "parity", "test")
N_MONTHS = 6
#: Where other people's packages are met most: conversion, tokenizers, downloads, pages, figures, checkpoints.
SAMPLE = (
    "tests/tinytx_run/hf",
    "tests/tinytx/test_tokenizer.py",
    "tests/tinytx_run/test_download.py",
    "tests/course/test_site.py",
    "tests/course/test_plots.py",
    "tests/course/widgets/test_base.py",
    "tests/tinytx_run/test_checkpoint.py",
)
UV = (sys.executable, "-m", "uv")
MARKS = "not slow and not notebook and not browser and not proof"


@dataclass(frozen=True)
class VersionSet:
    """A set of versions, by how uv is asked for it."""

    name: str
    how: tuple[str, ...] = ()


def version_sets(today: datetime.date) -> list[VersionSet]:
    """The newest, the lowest allowed, and those of the first days of the last months.

    Examples
    --------
    >>> [one.name for one in version_sets(datetime.date(2026, 2, 14))][:4]
    ['newest', 'lowest', '2026-02-01', '2026-01-01']
    """
    months = [today.year * 12 + today.month - 1 - k for k in range(N_MONTHS)]
    days = [datetime.date(n // 12, n % 12 + 1, 1).isoformat() for n in months]
    dated = [VersionSet(day, ("--exclude-newer", day)) for day in days]
    return [VersionSet("newest"), VersionSet("lowest", ("--resolution", "lowest-direct")), *dated]


class Trial:
    """One set in an environment of its own, tried on a copy of the last commit."""

    def __init__(self, one: VersionSet, folder: Path, notebooks: Sequence[str] = ()) -> None:
        self.one, self.folder, self.wanted = one, folder, notebooks
        self.python = folder / "venv" / "bin" / "python"
        self.checkout = folder / "checkout"

    def record(self) -> dict:
        """Install, test, run the notebooks; the first failure in words, None where there is none."""
        found: dict = {"set": self.one.name, "how": " ".join(self.one.how), "python": sys.version.split()[0]}
        try:
            self._install()
            found["versions"] = self._versions()
            found["tests"] = self._sample()
            found["notebooks"] = self._notebooks()
        except Failed as problem:
            return {**found, "first_failure": str(problem)}
        return {**found, "first_failure": None}

    def _install(self) -> None:
        copy_commit(self.checkout)
        pinned = self.folder / "torch.txt"
        pinned.write_text(f"torch=={version('torch')}\n", encoding="utf-8")
        self._run(*UV, "venv", "--quiet", "--python", sys.executable, self.folder / "venv", what="venv")
        extras = [word for name in EXTRAS for word in ("--extra", name)]
        into = (*UV, "pip", "install", "--quiet", "--python", self.python)
        wanted = ("-r", self.checkout / "pyproject.toml", *extras, "--override", pinned)
        self._run(*into, *wanted, *self.one.how, what="installing")

    def _versions(self) -> dict[str, str]:
        """What was installed of the packages that pyproject.toml names."""
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        extras = [project["optional-dependencies"][name] for name in EXTRAS]
        named = {Requirement(line).name.lower() for line in chain(project["dependencies"], *extras)}
        command = (*UV, "pip", "list", "--quiet", "--format", "json", "--python", self.python)
        listed = {x["name"].lower(): x["version"] for x in json.loads(self._run(*command, what="listing"))}
        return {name: listed[name].split("+")[0] for name in sorted(named & listed.keys())}

    def _sample(self) -> str:
        out = self._run(self.python, "-m", "pytest", "-q", "-x", "-m", MARKS, *SAMPLE, what="tests")
        return out.strip().splitlines()[-1].strip("= ")

    def _notebooks(self) -> str:
        """Which ran from top to bottom."""
        command = (self.python, "-m", "tinytx_course.cli", "run", *self.wanted, "--budget", "smoke", "--json")
        out = self._run(*command, what="notebooks", may_fail=True)
        runs = json.loads(out)["notebooks"]
        for run in runs:
            if not run["ok"]:
                raise Failed(f"{run['name']}: {_first_error(run['failure'])}")
        return ", ".join(run["name"].partition("_")[0] for run in runs)

    def _run(self, *words: str | Path, what: str, may_fail: bool = False) -> str:
        environment = {**os.environ, "PYTHONPATH": str(self.checkout), "OMP_NUM_THREADS": "1"}
        if links := os.environ.get("PIP_FIND_LINKS"):
            environment.setdefault("UV_FIND_LINKS", links)
        done = subprocess.run(
            list(map(str, words)), cwd=self.checkout, env=environment, capture_output=True, text=True
        )
        if done.returncode and not (may_fail and done.stdout.strip()):
            print(f"{self.one.name}, {what}:\n{(done.stdout + done.stderr)[-6000:]}", file=sys.stderr)
            raise Failed(f"{what}: {_first_error(done.stdout + done.stderr)}")
        return done.stdout


class Failed(Exception):
    """What did not work, in one line."""


def _first_error(text: str) -> str:
    """The line that names the cause, as pytest, pip and tracebacks write it."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    errors = [
        line for line in lines if re.match(r"(E  |FAILED|ERROR|error|Fatal|×|\w*(Error|Exception)\b)", line)
    ]
    return (errors or lines[-1:] or ["no output"])[0][:300]


def write_page(root: Path) -> None:
    """Write TRIED.md from what is stored, so that it cannot say more."""
    here = Path(__file__).parent
    head, not_tried = ((here / name).read_text(encoding="utf-8") for name in ("head.md", "not_tried.md"))
    (root / "TRIED.md").write_text(head + _versions(root) + not_tried, encoding="utf-8")


def _versions(root: Path) -> str:
    stored = Results("rot", root / "results")
    head = "## Versions\n\n| where | Python | outcome |\n|---|---|---|\n"
    source = stored.source_line()
    return head + "\n".join(map(_row, stored.data.values())) + f"\n\n{source[0].upper()}{source[1:]}.\n\n"


def _row(record: dict) -> str:
    some = ", ".join(
        f"{name} {record['versions'][name]}"
        for name in ("numpy", "pandas", "jupyterlab", "transformers")
        if name in record.get("versions", {})
    )
    failure = record["first_failure"]
    outcome = (
        f"**failed:** {failure}" if failure else f"{record['tests']}; notebooks {record['notebooks']} ran"
    )
    return f"| {record['set']} ({some}) | {record['python']} | {outcome} |"


def main() -> int:
    """Read the options, try the sets, print a line each, store them."""
    parser = argparse.ArgumentParser(prog="python -m tests.rot", description=__doc__)
    parser.add_argument("--only", action="append", help="the name of a set; all by default")
    parser.add_argument("--notebooks", nargs="*", default=[], help="numbers of lessons; all by default")
    parser.add_argument("--results", type=Path, help="folder to store the table in, such as results")
    args = parser.parse_args()
    sets = version_sets(datetime.datetime.now(datetime.UTC).date())
    if unknown := set(args.only or ()) - {one.name for one in sets}:
        parser.error(f"a set must be one of {', '.join(one.name for one in sets)}, got {', '.join(unknown)}")
    n_failed = 0
    for one in sets:
        if args.only and one.name not in args.only:
            continue
        with tempfile.TemporaryDirectory(prefix="rot-") as folder:
            record = Trial(one, Path(folder), args.notebooks).record()
        n_failed += record["first_failure"] is not None
        outcome = record["first_failure"] or f"{record['tests']}; notebooks {record['notebooks']} ran"
        print(f"{one.name:<12}{outcome}", flush=True)
        if args.results:
            Results("rot", args.results).put(one.name, record)
    if args.results:
        write_page(ROOT)
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
