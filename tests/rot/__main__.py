"""Try the course with the lowest versions of what it needs, the newest, and those that Colab installs.

Each set is resolved by uv into an environment of its own; pins are ignored. There a sample of the tests runs,
and every notebook at the smallest budget. With the versions of Colab, the seconds from a press to the first
figure are measured first (`first_figure`). torch stays at the version of this environment: another one is a
download of gigabytes, and belongs to the weekly workflow.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from functools import partial
from importlib.metadata import version
from itertools import chain
from pathlib import Path

from packaging.requirements import Requirement

from tests.environments import ROOT, Broken, copy_commit, run
from tinytx_course.results import Results

EXTRAS = ("lessons", "course", "parity", "test")
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
SHOWN = ("numpy", "pandas", "ipywidgets", "jupyterlab", "transformers")
FIRST_FIGURE_S = 90.0  # at most, from a press to the first figure of notebook 00
COLAB = Path(__file__).with_name("colab.txt")
SETS: dict[str, tuple[str, ...]] = {  # how uv is asked; what Colab has is installed before
    "lowest": ("--resolution", "lowest-direct"),
    "newest": (),
    "colab": (),
}


def tried(name: str, interpreter: str, folder: Path, notebooks: list[str]) -> dict:
    """Install, test and run the notebooks on a copy of the last commit; say the first failure, or None."""
    checkout = copy_commit(folder / "checkout")
    python = folder / "venv" / "bin" / "python"
    environment = {**os.environ, "PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"}
    if links := os.environ.get("PIP_FIND_LINKS"):
        environment.setdefault("UV_FIND_LINKS", links)
    there = partial(run, cwd=checkout, env=environment)
    answer = subprocess.run((interpreter, "--version"), capture_output=True, text=True, check=True).stdout
    found: dict = {"set": name, "python": answer.split()[1], "first_failure": None}
    pinned = folder / "torch.txt"
    pinned.write_text(f"torch=={version('torch')}\n", encoding="utf-8")
    extras = [word for extra in EXTRAS for word in ("--extra", extra)]
    into = (*UV, "pip", "install", "--quiet", "--python", python)
    try:
        there(*UV, "venv", "--quiet", "--seed", "--python", interpreter, folder / "venv")
        if name == "colab":
            there(*into, "-r", COLAB, "-r", pinned)
            there(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, checkout)
            (wheel,) = folder.glob("*.whl")
            del environment["PYTHONPATH"]  # the course is not there, until a cell installs it
            found["first_figure_s"] = float(there(python, "-m", "tests.rot.first_figure", wheel))
            environment["PYTHONPATH"] = str(checkout)
            if found["first_figure_s"] > FIRST_FIGURE_S:
                raise Broken(f"first figure\nerror: after {found['first_figure_s']} s, over {FIRST_FIGURE_S}")
        there(*into, "-r", checkout / "pyproject.toml", *extras, "--override", pinned, *SETS[name])
        listed = json.loads(there(*UV, "pip", "list", "--quiet", "--format", "json", "--python", python))
        found["versions"] = _named({one["name"].lower(): one["version"] for one in listed})
        out = there(python, "-m", "pytest", "-q", "-x", "-m", MARKS, *SAMPLE)
        found["tests"] = out.strip().splitlines()[-1].strip("= ")
        there(python, "-m", "tinytx_course.cli", "run", *notebooks, "--budget", "smoke")
        ran = notebooks or sorted(path.name[:2] for path in (checkout / "notebooks").glob("*.ipynb"))
        found["notebooks"] = ", ".join(ran)
    except Broken as problem:
        print(f"{name}: {problem}", file=sys.stderr)
        found["first_failure"] = _first_error(str(problem))
    return found


def _named(listed: dict[str, str]) -> dict[str, str]:
    """What was installed of the packages that pyproject.toml names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [project["optional-dependencies"][name] for name in EXTRAS]
    named = {Requirement(line).name.lower() for line in chain(project["dependencies"], *extras)}
    return {name: listed[name].split("+")[0] for name in sorted(named & listed.keys())}


def _first_error(text: str) -> str:
    """The command, and the line that names the cause, as pytest, pip and tracebacks write it."""
    command, *lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [
        line for line in lines if re.match(r"(E  |FAILED|ERROR|error|Fatal|×|\w*(Error|Exception)\b)", line)
    ]
    return f"{command[-60:]}: {(errors or lines[-1:] or ['no output'])[0][:300]}"


def _outcome(record: dict) -> str:
    failure = record["first_failure"]
    if failure:
        return f"**failed:** {failure}"
    more = f"; first figure after {record['first_figure_s']} s" if "first_figure_s" in record else ""
    return f"{record['tests']}; notebooks {record['notebooks']} ran{more}"


def write_page(root: Path) -> None:
    """Write TRIED.md from what is stored, so that it cannot say more."""
    head, not_tried = (
        Path(__file__).with_name(name).read_text("utf-8") for name in ("head.md", "not_tried.md")
    )
    stored = Results("rot", root / "results")
    table = "## Versions\n\n| where | Python | outcome |\n|---|---|---|\n"
    tried_sets = (one for one in stored.data.values() if one["set"] in SETS)
    for record in sorted(tried_sets, key=lambda one: [*SETS].index(one["set"])):
        versions = record.get("versions", {})
        some = ", ".join(f"{name} {versions[name]}" for name in SHOWN if name in versions)
        table += f"| {record['set']} ({some}) | {record['python']} | {_outcome(record)} |\n"
    source = stored.source_line()
    text = f"{head}{table}\n{source[0].upper()}{source[1:]}.\n\n{not_tried}"
    (root / "TRIED.md").write_text(text, encoding="utf-8")


def main() -> int:
    """Read the options, try the sets, print a line each, store them."""
    parser = argparse.ArgumentParser(prog="python -m tests.rot", description=__doc__)
    parser.add_argument("--only", action="append", choices=list(SETS), help="a set; all by default")
    parser.add_argument("--python", default=sys.executable, help="the interpreter to install into")
    parser.add_argument("--notebooks", nargs="*", default=[], help="numbers of lessons; all by default")
    parser.add_argument("--results", type=Path, help="folder to store the table in, such as results")
    args = parser.parse_args()
    n_failed = 0
    for name in args.only or SETS:
        with tempfile.TemporaryDirectory(prefix="rot-") as folder:
            record = tried(name, args.python, Path(folder), args.notebooks)
        n_failed += record["first_failure"] is not None
        where = f"{name} on {record['python'].rpartition('.')[0]}"
        print(f"{where:<16}{_outcome(record)}", flush=True)
        if args.results:
            Results("rot", args.results).put(where, record)
    if args.results:
        write_page(ROOT)
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
