"""Published outputs that no longer belong to the code: their texts against those of a new run."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from nbformat import NotebookNode

from tinytx_course.building.notebooks import normalise
from tinytx_course.machine import this_machine
from tinytx_course.results import Results

#: A cell with this tag says how fast a machine is: its words are not compared.
TAG = "varies"
_PACKAGES = ("torch", "sentencepiece", "numpy", "scipy", "scikit-learn", "pandas", "transformers")

#: What differs between two runs of the same code: pictures, addresses and ids, numbers, the room they take,
#: what a machine has.
_VARIES = (
    (re.compile(r"data:image/[\w+]+;base64,[\w+/=]+"), "PICTURE"),
    (re.compile(r'("(?:float|u?int)\d+"): ?"[\w+/=]+"'), r"\1"),  # numbers of explorers
    (re.compile(r"\b(0x)?(?=[a-f]*\d)[0-9a-f]{6,}\b"), "ID"),
    (re.compile(r"^(system|processor|memory|GPU) {2,}.*$", re.M), r"\1"),  # of `this_machine`
    (re.compile(r"\b(1 thread|(?!1 )\d+ threads)\b"), "THREADS"),
    (re.compile(r"\bb?f(loat|p)?(16|32)(\s+(fast|works, slowly))?\b"), "PRECISION"),
    (re.compile(r"[-+−]?\d+([.,]\d+)*(e[-+]?\d+)?"), "#"),
    (re.compile(r"([-─═=█▏▎▍▌▋▊▉·.])\1+"), r"\1"),
    (re.compile(r"\s+"), " "),
)


def texts(notebook: NotebookNode) -> dict[str, list[str]]:
    """Return what each code cell of a normalised notebook shows as text, by cell id, numbers masked.

    Examples
    --------
    >>> from nbformat.v4 import new_code_cell, new_notebook, new_output
    >>> output = new_output("stream", text="loss  2.31 after 10 steps\\n")
    >>> texts(new_notebook(cells=[new_code_cell(id="a", outputs=[output])]))
    {'a': ['loss # after # steps ']}
    """
    return {
        cell.id: list(map(_masked, _texts(cell.outputs)))
        for cell in notebook.cells
        if cell.cell_type == "code"
    }


def _texts(outputs: Iterable[NotebookNode]) -> Iterable[str]:
    """Return what is printed, in one, as figures may divide it; then the texts of each other output."""
    printed = "".join(output.text for output in outputs if "text" in output)
    shown = [sorted(output.get("data", {}).items()) for output in outputs]
    others = [text for kinds in shown for kind, text in kinds if kind.startswith("text/")]
    return [printed, *others] if printed else others


def _masked(text: str) -> str:
    for pattern, word in _VARIES:
        text = pattern.sub(word, text)
    return text


def versions() -> dict[str, str | bool | None]:
    """Return what decides how words are cut, how sums are rounded and how tables are laid out."""
    machine = this_machine()
    found = {"gpu": machine.gpu, "bf16": machine.bf16, "system": machine.system}
    for name in _PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name).partition("+")[0]
    return found


def other_cells(published: NotebookNode, executed: NotebookNode, root: Path) -> list[str]:
    """Return the ids of the published cells whose text differs from that of a run in more than numbers.

    Those that are named as varying, by the tag ``varies``, are left out.
    """
    new = texts(normalise(executed, root))
    named = {cell.id for cell in published.cells if TAG in cell.metadata.get("tags", [])}
    return [name for name, old in texts(published).items() if new.get(name) != old and name not in named]


def stale_cells(name: str, published: NotebookNode, executed: NotebookNode, root: Path) -> list[str]:
    """Return the sources of the cells of a lesson whose published text is not what its code gives now.

    Cells whose words depend on the budget are left out. `publish` finds them by a second, small run, and
    stores them in ``results/varying.json``, with the `versions` at which both ran. With others the same code
    may segment, translate and decide otherwise, so nothing is known; nor of a lesson that is not there.
    """
    known = Results("varying", root / "results").get(name)
    if known is None or known.get("versions") != versions():
        return []
    other = set(other_cells(published, executed, root)) - set(known["cells"])
    return [cell.source for cell in published.cells if cell.id in other]
