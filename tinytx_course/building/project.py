"""Files that follow from others: environment.yml, constraints.txt, its hashes, parts of README.md and docs/.

``python -m tinytx_course.building.project environment|constraints|hashes|readme`` writes one of them,
``licences`` prints the licence of every package that the course needs, ``address URL`` says where the
repository is: badges, links of notebooks and pages, CITATION.cff and the code for phones follow from it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Callable, Iterable
from html import escape
from importlib.metadata import distribution, distributions
from itertools import chain
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tinytx_course.building.elsewhere import badges, set_address, source_of
from tinytx_course.building.picture import THEMES, alt_text, draw_picture
from tinytx_course.lessons import course_table, lesson_table, project_root
from tinytx_course.results import Results, with_table

# Extras that learners need, as opposed to the authors of the course.
_LEARNER_EXTRAS = ("lessons", "course", "parity")
# Ours, the installer itself, and what only one kind of machine has.
_NOT_PINNED = re.compile(r"tinytx|pip|setuptools|wheel|triton|nvidia-.*|cuda-.*")
_WIDTH = 92  # of a line of code that GitHub shows without scrolling
_PICTURE = "figures/mask-off-{theme}.svg"
_SHOWN = """<picture>
  <source media="(prefers-color-scheme: dark)" srcset="{dark}">
  <img src="{light}" width="830" alt="{alt}">
</picture>"""


def environment_text(pyproject: dict) -> str:
    """Return environment.yml: Python from conda-forge, everything else through pip as in pyproject.toml."""
    project = pyproject["project"]
    extras = (project["optional-dependencies"][name] for name in _LEARNER_EXTRAS)
    needed = [x for x in (*project["dependencies"], *chain(*extras)) if not x.startswith("tinytx[")]
    lines = [
        "# Written by `make environment` from pyproject.toml: change it there.",
        "name: tinytx",
        "channels:",
        "  - conda-forge",
        "dependencies:",
        f"  - python {project['requires-python']}",
        "  - pip",
        "  - pip:",
        *(f"      - {requirement}" for requirement in needed),
        "      - -e .",
    ]
    return "\n".join(lines) + "\n"


def constraints_text(installed: dict[str, str]) -> str:
    """Return constraints.txt for installed versions by name, without build labels such as ``+cpu``."""
    names = {canonicalize_name(name): version for name, version in installed.items()}
    pinned = [
        f"{name}=={version.split('+')[0]}"
        for name, version in sorted(names.items())
        if not _NOT_PINNED.fullmatch(name)
    ]
    head = "# Exact versions that were tested, written by `make constraints`; floors are in pyproject.toml."
    return "\n".join([head, *pinned]) + "\n"


def hashes_text(report: dict[str, Any]) -> str:
    """Return a requirements file with the SHA-256 of each package, from a report of ``pip install``."""
    rows = {}
    for one in report["install"]:
        archive = one["download_info"].get("archive_info")
        if archive is not None:  # all but this project itself
            name = canonicalize_name(one["metadata"]["name"])
            rows[name] = f"{name}=={one['metadata']['version']} --hash=sha256:{archive['hashes']['sha256']}"
    head = "# Exact files for this platform and Python, written by `make constraints HASHES=1`."
    return "\n".join([head, *(rows[name] for name in sorted(rows))]) + "\n"


def _pip_report(root: Path) -> dict[str, Any]:
    """What pip would install with all extras, as a dry run; the network is needed."""
    options = ("--quiet", "--disable-pip-version-check", "--dry-run", "--ignore-installed", "--report", "-")
    command = [sys.executable, "-m", "pip", "install", *options, "-c", "constraints.txt", ".[all]"]
    return json.loads(subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout)


def licence_of(metadata: Any) -> str:
    """The licence that a package states: its expression, its classifiers, or the first line of its text."""
    if expression := metadata.get("License-Expression"):
        return expression
    known = [one for one in metadata.get_all("Classifier", []) if one.startswith("License ::")]
    if known:
        return ", ".join(one.rpartition(" :: ")[2] for one in known)
    return (metadata.get("License") or "").strip().partition("\n")[0] or "not stated"


def needed_packages(extras: Iterable[str]) -> dict[str, Any]:
    """Metadata of the installed packages that this project needs, directly or not; `extras` are its own."""
    found: dict[str, Any] = {}
    waiting = [Requirement(f"tinytx[{','.join(extras)}]")]
    seen = set()
    while waiting:
        wanted = waiting.pop()
        key = (wanted.name, *sorted(wanted.extras))
        if key in seen:
            continue
        seen.add(key)
        try:
            package = distribution(wanted.name)
        except ImportError:  # of another platform or Python
            continue
        found[package.metadata["Name"]] = package.metadata
        for line in package.requires or ():
            needed = Requirement(line)
            environments = [{"extra": extra} for extra in (*wanted.extras, "")]
            if needed.marker is None or any(needed.marker.evaluate(one) for one in environments):
                waiting.append(needed)
    del found["tinytx"]
    return dict(sorted(found.items(), key=lambda pair: pair[0].lower()))


def readme_files(root: Path) -> dict[str, str]:
    """Return the README, docs/lessons.md and the two pictures as they should be, by their place."""
    record = Results("mask-off", root / "results").data["seed 0"]
    places = {theme: _PICTURE.format(theme=theme) for theme in THEMES}
    readme = (root / "README.md").read_text(encoding="utf-8")
    parts = {
        "picture": _SHOWN.format(**places, alt=escape(alt_text(record))),
        "verdict": f"```\n{verdict_on(program_in(readme), root)}\n```",
        "courses": course_table("notebooks/", root),
    }
    for name, part in parts.items():
        readme = with_table(readme, name, part)
    line = badges(source_of(root))
    readme = re.sub(r"\A(# .*\n)\n(?:\[!\[.*\n\n)?", rf"\1\n{line}\n\n" if line else r"\1\n", readme)
    lessons = (root / "docs" / "lessons.md").read_text(encoding="utf-8")
    lessons = with_table(lessons, "lessons", lesson_table("../notebooks/", root))
    pictures = {place: draw_picture(record, theme) for theme, place in places.items()}
    return {"README.md": readme, "docs/lessons.md": lessons, **pictures}


def program_in(page: str) -> str:
    """The first Python program of a page in Markdown."""
    found = re.search(r"^```python\n(.*?)^```", page, re.M | re.S)
    if found is None:
        raise ValueError("the README must show a program that begins with ```python, got none")
    return found[1]


def verdict_on(program: str, root: Path) -> str:
    """What a program prints, with long lines broken; it changes nobody's progress."""
    environment = {**os.environ, "TINYTX_PROGRESS": "none", "PYTHONPATH": str(root), "PYTHONUTF8": "1"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, encoding="utf-8")
    return "\n".join(
        textwrap.fill(line, _WIDTH) if len(line) > _WIDTH else line for line in done.stdout.splitlines()
    )


def main() -> int:
    """Write one of the files; `make environment` and `make constraints` call it."""
    root = project_root()
    pyproject = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    here = {one.metadata["Name"]: one.version for one in distributions()}
    writers: dict[str, Callable[[], dict[str, str]]] = {
        "environment": lambda: {"environment.yml": environment_text(pyproject)},
        "constraints": lambda: {"constraints.txt": constraints_text(here)},
        "hashes": lambda: {"build/constraints-hashes.txt": hashes_text(_pip_report(root))},
        "readme": lambda: readme_files(root),
        "address": lambda: readme_files(root),
        "licences": dict,
    }
    parser = argparse.ArgumentParser(prog="python -m tinytx_course.building.project", description=__doc__)
    parser.add_argument("what", choices=writers)
    parser.add_argument("address", nargs="?", help="with `address`: https://github.com/OWNER/NAME")
    args = parser.parse_args()
    what = args.what
    if (what == "address") != (args.address is not None):
        parser.error("`address`, and it alone, must have an address behind it, https://github.com/OWNER/NAME")
    if what == "address":
        try:
            print(*(f"wrote {name}" for name in set_address(root, args.address)), sep="\n")
        except ValueError as problem:
            parser.exit(2, f"{problem}\n")
    for one in needed_packages(["all"]).values() if what == "licences" else ():
        print(f"{one['Name']:<28}{one['Version']:<18}{licence_of(one)}")
    for name, text in writers[what]().items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
        print(f"wrote {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
