"""Notebooks where the course is not installed: the cell that installs it, and links that open them there.

Colab, Kaggle and a bare JupyterHub open a notebook without the package that it imports. All that names an
address follows from one line of pyproject.toml, which `set_address` writes.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

_TAG = "tx-elsewhere"
STILL = "tx-still"

_LOOK = """\
# Does nothing where the course is installed; elsewhere, as in Colab, {what}.
import importlib.util

if importlib.util.find_spec("tinytx_course") is None:
"""
_INSTALL = """\
    import subprocess, sys

    wanted = "tinytx[lessons,parity] @ {address}"
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", wanted], check=True)"""
_REFUSE = """\
    raise ModuleNotFoundError("this notebook needs the course: README.md says how it is installed")"""


def archive_of(root: Path) -> str:
    """Address of the source of this version, empty as long as the repository has none.

    Examples
    --------
    >>> archive_of(Path("nowhere"))
    ''
    """
    source = source_of(root)
    return f"{source}/archive/refs/tags/v{_project(root)['version']}.tar.gz" if source else ""


def source_of(root: Path) -> str:
    """Address of the repository, empty as long as it has none."""
    return _project(root).get("urls", {}).get("Source", "")


def raw_file(root: Path, name: str) -> str:
    """Address of a file of the repository as it is, empty as long as the repository has none."""
    owner = source_of(root).removeprefix("https://github.com/")
    return f"https://raw.githubusercontent.com/{owner}/main/{name}" if owner else ""


def _project(root: Path) -> dict[str, Any]:
    file = root / "pyproject.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))["project"] if file.is_file() else {}


def first_cell(address: str) -> NotebookNode:
    """Return the cell that installs an archive or a wheel from this address, folded where a viewer can fold.

    Where the address is empty, the cell only says what is missing.
    """
    what = "it installs this version" if address else "it says what is missing"
    source = _LOOK.format(what=what) + (_INSTALL.format(address=address) if address else _REFUSE)
    return new_code_cell(source, id=_TAG, metadata={"tags": [_TAG], "jupyter": {"source_hidden": True}})


def open_links(source: str, notebook: str) -> dict[str, tuple[str, str]]:
    """Addresses that open a notebook, and their badges, by name; none without an address.

    Examples
    --------
    >>> open_links("https://github.com/owner/tinytx", "00_start_here")["Colab"][0]
    'https://colab.research.google.com/github/owner/tinytx/blob/main/notebooks/00_start_here.ipynb'
    """
    if not source:
        return {}
    repository = source.removeprefix("https://github.com/")
    file = f"notebooks/{notebook}.ipynb"
    on_main = f"{repository}/blob/main/{file}"
    colab, binder = "https://colab.research.google.com", "https://mybinder.org"
    kaggle = f"https://kaggle.com/kernels/welcome?src=https://github.com/{on_main}"
    codespaces = f"https://codespaces.new/{repository}"
    return {
        "Colab": (f"{colab}/github/{on_main}", f"{colab}/assets/colab-badge.svg"),
        "Kaggle": (kaggle, "https://kaggle.com/static/images/open-in-kaggle.svg"),
        "Binder": (f"{binder}/v2/gh/{repository}/HEAD?labpath={file}", f"{binder}/badge_logo.svg"),
        "Codespaces": (codespaces, "https://github.com/codespaces/badge.svg"),
    }


def cells_elsewhere(root: Path, name: str) -> list[NotebookNode]:
    """Return what follows the title of a notebook: links, once there is an address, and the first cell."""
    links = [f"[{where}]({address})" for where, (address, _) in open_links(source_of(root), name).items()]
    text = new_markdown_cell(f"*Open in* {' · '.join(links)}", id=f"{_TAG}-links", metadata={"tags": [_TAG]})
    return [*([text] if links else []), first_cell(archive_of(root))]


def badges(source: str) -> str:
    """The badges of the README, in a line; "" without an address."""
    first = open_links(source, "00_start_here")
    return " ".join(f"[![Open in {where}]({badge})]({address})" for where, (address, badge) in first.items())


def set_address(root: Path, address: str) -> list[str]:
    """Write the address of the repository into pyproject.toml and CITATION.cff; return the files.

    Raises
    ------
    ValueError
        If it is not the address of a repository on GitHub.
    """
    if not re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+", address):
        raise ValueError(f"the address must be https://github.com/OWNER/NAME, got {address!r}")
    pyproject = root / "pyproject.toml"
    text = re.sub(r"^\[project\.urls\]\nSource = .*\n\n", "", pyproject.read_text("utf-8"), flags=re.M)
    urls = f'[project.urls]\nSource = "{address}"\n\n'
    pyproject.write_text(text.replace("[project.scripts]\n", f"{urls}[project.scripts]\n"), encoding="utf-8")
    (root / "CITATION.cff").write_text(
        f"""cff-version: 1.2.0
message: If you teach or learn with it, cite it as below.
title: "tinytx: a course on transformers, computed in front of you"
authors:
  - name: the authors of tinytx
version: {_project(root)["version"]}
license: Apache-2.0
repository-code: {address}
""",
        encoding="utf-8",
    )
    return ["pyproject.toml", "CITATION.cff"]


def is_first_cell(cell: NotebookNode) -> bool:
    """Whether a cell is one of these, which are no part of the lesson: pages leave them out."""
    return _TAG in cell.metadata.get("tags", [])


def is_still(output: NotebookNode) -> bool:
    """Whether an output is the picture of an explorer, for where no script runs: pages leave it out too."""
    return STILL in output.get("metadata", {})
