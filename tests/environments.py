"""Published notebooks, a copy of the last commit, a fresh environment, commands that say how they failed."""

from __future__ import annotations

import functools
import os
import subprocess
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TAG = "nbval-check-output"  # of cells whose outputs are compared


class Broken(Exception):
    """What did not work, with the end of what was printed."""


def run(*words: str | Path, **options: object) -> str:
    """Run a command, return what it printed.

    Raises
    ------
    Broken
        If it fails.
    """
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, **options)  # type: ignore[call-overload]
    if done.returncode:
        raise Broken(f"{' '.join(map(str, words))[-200:]}\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


@functools.cache
def published(lesson):
    """The notebook of a lesson as published; nobody may change it."""
    import nbformat

    return nbformat.read(ROOT / "notebooks" / f"{lesson.name}.ipynb", 4)


def copy_commit(folder: Path) -> Path:
    """Write what the last commit holds into a new folder; return it."""
    folder.mkdir(parents=True)
    archive = subprocess.run(("git", "archive", "HEAD"), cwd=ROOT, capture_output=True, check=True)
    subprocess.run(("tar", "-x", "-C", folder), input=archive.stdout, check=True)
    return folder


def new_environment(folder: Path, *packages: str) -> Path:
    """Make an environment without the course; return its Python."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    if packages:
        pins = ("-c", ROOT / "constraints.txt")
        alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # no checkout
        # not compiled: of torch and what it needs, a test imports one file in ten
        run(python, "-m", "pip", "install", "--quiet", "--no-compile", *pins, *packages, env=alone)
    return python
