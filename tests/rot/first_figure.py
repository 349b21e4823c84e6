"""From a press to the first figure: ``python -m tests.rot.first_figure WHEEL`` in a simulated Colab.

It runs notebook 00 in a kernel of this Python, from the cell that installs the course, with this wheel in
place of the address, to the first figure that is drawn, and prints the seconds. What Colab takes to start a
machine, and to fetch the source of the course, is not in them.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from tinytx_course.building.elsewhere import first_cell, is_first_cell
from tinytx_course.building.notebooks import joined_streams

NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "00_start_here.ipynb"


def main() -> None:
    """Run the cells, print the seconds."""
    cells = [cell for cell in nbformat.read(NOTEBOOK, 4).cells if cell.cell_type == "code"]
    drawn = [
        any("image/png" in one.get("data", {}) for one in joined_streams(cell.outputs)) for cell in cells
    ]
    used = [
        first_cell(Path(sys.argv[1]).as_uri()),
        *(c for c in cells[: drawn.index(True) + 1] if not is_first_cell(c)),
    ]
    notebook = nbformat.v4.new_notebook(cells=used)
    with tempfile.TemporaryDirectory() as folder:  # where no checkout is found
        begin = time.monotonic()
        NotebookClient(notebook, timeout=600, resources={"metadata": {"path": folder}}).execute()
        seconds = time.monotonic() - begin
    assert any("image/png" in one.get("data", {}) for one in used[-1].outputs)
    print(f"{seconds:.1f}")


if __name__ == "__main__":
    main()
