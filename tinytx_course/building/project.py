"""Files that follow from others: environment.yml, constraints.txt and the tables in the README.

``python -m tinytx_course.building.project environment|constraints|readme`` writes one of them.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from importlib.metadata import distributions
from itertools import chain
from pathlib import Path

from tinytx_course.lessons import lesson_table, project_root

# Extras that learners need, as opposed to the authors of the course.
_LEARNER_EXTRAS = ("course", "parity")
# Ours, the installer itself, and what only one kind of machine has.
_NOT_PINNED = re.compile(r"tinytx|pip|setuptools|wheel|triton|nvidia-.*|cuda-.*")


def environment_text(pyproject: dict) -> str:
    """Return environment.yml: Python from conda-forge, everything else through pip as in pyproject.toml."""
    project = pyproject["project"]
    extras = (project["optional-dependencies"][name] for name in _LEARNER_EXTRAS)
    needed = [*project["dependencies"], *chain(*extras)]
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
    names = {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in installed.items()}
    pinned = [
        f"{name}=={version.split('+')[0]}"
        for name, version in sorted(names.items())
        if not _NOT_PINNED.fullmatch(name)
    ]
    head = "# Exact versions that were tested, written by `make constraints`; floors are in pyproject.toml."
    return "\n".join([head, *pinned]) + "\n"


def readme_text(readme: str, results: Path) -> str:
    """Return the README with its tables as they are now; `results` is the folder of stored results."""
    from benchmarks.report import bench_table

    tables = {"lessons": lesson_table("notebooks/"), "bench": bench_table(results)}
    for name, table in tables.items():
        begin, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
        before, found_begin, rest = readme.partition(begin)
        _, found_end, after = rest.partition(end)
        if not found_begin or not found_end:
            raise ValueError(f"README.md must hold <!-- {name} --> and <!-- end of {name} -->, got neither")
        readme = f"{before}{begin}\n{table}\n{end}{after}"
    return readme


def main() -> int:
    """Write one of the files; `make environment` and `make constraints` call it."""
    parser = argparse.ArgumentParser(prog="python -m tinytx_course.building.project", description=__doc__)
    parser.add_argument("what", choices=["environment", "constraints", "readme"])
    what, root = parser.parse_args().what, project_root()
    if what == "environment":
        pyproject = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
        target, text = root / "environment.yml", environment_text(pyproject)
    elif what == "constraints":
        here = {found.metadata["Name"]: found.version for found in distributions()}
        target, text = root / "constraints.txt", constraints_text(here)
    else:
        target = root / "README.md"
        text = readme_text(target.read_text(encoding="utf-8"), root / "results")
    target.write_text(text, encoding="utf-8")
    print(f"wrote {target.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
