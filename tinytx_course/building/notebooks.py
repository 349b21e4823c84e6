"""Notebooks as files: built from sources, executed in a kernel of their own, made fit to be committed."""

from __future__ import annotations

import copy
import hashlib
import os
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbformat import NotebookNode

from tinytx_course.building.editions import make_edition, mark_further
from tinytx_course.building.elsewhere import cells_elsewhere, is_still
from tinytx_course.building.minutes import last_times, write_times
from tinytx_course.building.statements import with_statement
from tinytx_course.lessons import Lesson
from tinytx_course.machine import PeakMemory, usable_cores
from tinytx_course.progress.record import NOWHERE
from tinytx_course.progress.record import VARIABLE as PROGRESS

_KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}
_WIDGET = "application/vnd.jupyter.widget-view+json"
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, kw_only=True)
class Run:
    """One executed notebook, with its outputs."""

    lesson: Lesson
    notebook: NotebookNode
    seconds: float | None = None  # how long it ran; None for a published one, which is not executed again
    peak_bytes: int = 0  # the memory it took at most
    failure: str | None = None  # the cell that raised and the end of its traceback, indented for a terminal


def _plain_metadata() -> NotebookNode:
    """Return the little that Jupyter needs to pick a kernel."""
    return NotebookNode(kernelspec=NotebookNode(_KERNEL), language_info=NotebookNode(name="python"))


def build_notebook(lesson: Lesson, root: Path, *, solved: bool = False) -> NotebookNode:
    """Turn ``notebooks/src/NN_slug.py`` into a notebook without outputs.

    Cell ids are hashes of the learner's cells: building twice gives equal notebooks, an inserted cell changes
    no other id, and both editions share them. The title says how long the lesson takes, as counted when it
    was last published; the cell after it installs the course where it is missing. Where there are no sources,
    as in what ``tinytx-course release`` wrote, the notebook itself is taken.

    Raises
    ------
    ValueError
        If its exercises are not written as an edition needs them; the file is named.
    """
    place = root / "notebooks" / "src" / f"{lesson.name}.py"
    if not place.parent.is_dir() and not solved:
        return without_outputs(nbformat.read(root / "notebooks" / f"{lesson.name}.ipynb", 4))
    try:
        notebook = read_source(place)
        notebook.metadata = _plain_metadata()
        notebook.nbformat, notebook.nbformat_minor = 4, 5
        _name_cells(notebook)
        write_times(notebook.cells, last_times(lesson, notebook.cells, root))
        make_edition(notebook, solved=solved)
        notebook.cells[1:1] = cells_elsewhere(root, lesson.name)
    except (ValueError, SyntaxError) as problem:
        raise ValueError(f"notebooks/src/{place.name}: {problem}") from None
    nbformat.validate(notebook)
    return notebook


def read_source(place: Path) -> NotebookNode:
    """Return the cells of a source; its text cells hold what their exercises ask.

    Raises
    ------
    ValueError
        If there is no exercise of a name.
    """
    notebook = jupytext.reads(place.read_text(encoding="utf-8"), fmt="py:percent")
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = with_statement(cell.source)
    notebook.cells = mark_further(notebook.cells)
    return notebook


def without_outputs(notebook: NotebookNode) -> NotebookNode:
    """Return the notebook as a learner begins with it."""
    empty = copy.deepcopy(notebook)
    for cell in empty.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return empty


def _name_cells(notebook: NotebookNode) -> None:
    """Give each cell its id; equal cells are numbered."""
    taken: dict[str, int] = {}
    for cell in notebook.cells:
        digest = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:10]
        taken[digest] = taken.get(digest, 0) + 1
        cell.id = digest if taken[digest] == 1 else f"{digest}-{taken[digest]}"


def kernel_environment(
    root: Path, *, figures: Path | None = None, budget: str | None = None, at_once: int = 1
) -> dict[str, str]:
    """Return the environment notebooks run in: this checkout importable, threads set, nothing personal.

    The learner's IPython and progress are not used. Notebooks write the figures of the course into `figures`,
    or nowhere; `budget` is their TINYTX_BUDGET. As many as run `at_once` share the cores.
    """
    paths = [str(root), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    ours = {
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)),
        "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "32",  # of 1,024 kernels: up to 400 MB less, and 4 % slower
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS") or str(max(1, usable_cores() // at_once)),
        "IPYTHONDIR": str(root / "build" / "ipython"),
        "PYTHONHASHSEED": "0",
        "TQDM_DISABLE": "1",
        PROGRESS: NOWHERE,
        "TINYTX_FIGURES": None if figures is None else str(figures),
        "TINYTX_BUDGET": budget or os.environ.get("TINYTX_BUDGET"),
    }
    return {name: value for name, value in {**os.environ, **ours}.items() if value is not None}


def _failure(notebook: NotebookNode, problem: Exception) -> str:
    """Describe the cell that raised, or the first that did not end where a dead kernel left no traceback."""

    def errors(cell: NotebookNode) -> list[NotebookNode]:
        return [output for output in cell.outputs if output.output_type == "error"]

    code = [(i, cell) for i, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
    stopped = [(i, cell) for i, cell in code if cell.execution_count is None or errors(cell)]
    number, cell = stopped[0] if stopped else code[-1]
    trace = [f"{type(problem).__name__}: {str(problem)[-600:]}"]
    if raised := errors(cell):
        trace = _ANSI.sub("", "\n".join(raised[0].traceback)).strip().splitlines()[-8:]
    source, end = ("\n".join(f"    {line}" for line in lines) for lines in (cell.source.splitlines(), trace))
    return f"  cell {number}:\n{source}\n  ended with:\n{end}"


def execute(
    lesson: Lesson,
    notebook: NotebookNode,
    folder: Path,
    environment: dict[str, str],
    *,
    on_cell: Callable[[], None] = lambda: None,
) -> Run:
    """Run a notebook from top to bottom in a new kernel; the outputs are written into it.

    The kernel works in a folder, with an environment of `kernel_environment`; `on_cell` is called after each
    code cell. After the first failure no further cell is run.
    """
    memory = PeakMemory()
    began = time.perf_counter()
    client: NotebookClient = NotebookClient(
        notebook,
        kernel_name=_KERNEL["name"],
        resources={"metadata": {"path": str(folder)}},
        extra_arguments=["--IPKernelApp.log_level=40"],  # or each kernel warns that loopback is not encrypted
        on_cell_execute=lambda **_: memory.watch(
            getattr(getattr(client.km, "provisioner", None), "pid", None)
        ),
        on_cell_executed=lambda **_: on_cell(),
        store_widget_state=False,
    )
    # No Output widget of nbclient: it would send its state through the socket that waits for a reply, and the
    # wake-up of that reply can be lost for ever. What a control prints is an output of its cell.
    client.widget_registry = {}
    failure = None
    try:
        client.execute(env=environment)
    except (CellExecutionError, DeadKernelError) as problem:
        failure = _failure(notebook, problem)
    seconds = time.perf_counter() - began
    return Run(lesson=lesson, notebook=notebook, seconds=seconds, peak_bytes=memory.stop(), failure=failure)


def normalise(notebook: NotebookNode, root: Path) -> NotebookNode:
    """Leave out of an executed notebook what differs from machine to machine, in place.

    Removed are execution times, kernel versions, widget state and the paths of this checkout and environment;
    consecutive outputs of one stream are joined, as where a stream is cut depends on timing.
    """

    def without_paths(text: str) -> str:
        return text.replace(f"{root}{os.sep}", "").replace(f"{sys.prefix}{os.sep}", "")

    notebook.metadata = _plain_metadata()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type != "code":
            continue
        cell.outputs = joined_streams(cell.outputs)
        for output in cell.outputs:
            output.pop("transient", None)
            output.get("data", {}).pop(_WIDGET, None)
            if "text" in output:
                output.text = without_paths(output.text)
            for kind, value in output.get("data", {}).items():
                if kind.startswith("text/") and isinstance(value, str):
                    output.data[kind] = without_paths(value)
    return notebook


def joined_streams(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Return outputs as a page can show them: what a stream printed in pieces is joined.

    A bare progress bar or slider is left out, as there is nothing to read without a kernel, and so are still
    pictures of explorers.
    """
    joined: list[NotebookNode] = []
    for output in outputs:
        last = joined[-1] if joined else NotebookNode(output_type="nothing")
        if output.output_type == "stream" == last.output_type and output.name == last.name:
            last.text += output.text
        elif not is_still(output) and (_WIDGET not in output.get("data", {}) or "text/html" in output.data):
            joined.append(output)
    return joined
