"""The first cell of a notebook: it does nothing where the course is installed, and installs it elsewhere.

Colab, Kaggle and a bare JupyterHub open a notebook without the package that it imports.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

_TAG = "tx-elsewhere"

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


def _project(root: Path) -> dict[str, Any]:
    file = root / "pyproject.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))["project"] if file.is_file() else {}


def first_cell(address: str) -> NotebookNode:
    """Return the cell, folded where the viewer can fold.

    Parameters
    ----------
    address : str
        Of an archive or a wheel that pip can install; where it is empty, the cell only says what is missing.
    """
    what = "it installs this version" if address else "it says what is missing"
    source = _LOOK.format(what=what) + (_INSTALL.format(address=address) if address else _REFUSE)
    return new_code_cell(source, id=_TAG, metadata={"tags": [_TAG], "jupyter": {"source_hidden": True}})


def is_first_cell(cell: NotebookNode) -> bool:
    """Whether a cell is this one, which is no part of the lesson: pages leave it out, and nobody reads it."""
    return _TAG in cell.metadata.get("tags", [])
