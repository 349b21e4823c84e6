"""Pictures of explorers in published notebooks: ``python -m tinytx_course.building.stills`` renews them.

A code host shows the words of an explorer and no script, so its cell has a second output, the still picture.
Where the cell runs, its new outputs take the place of both; pages, slides and counts leave it out.
"""

from __future__ import annotations

import base64
import html
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from tinytx_course.building.elsewhere import STILL, is_still
from tinytx_course.lessons import project_root, written_lessons
from tinytx_course.site import bare

_WIDTH = 800  # of 1200 pixels, for sharp letters


def with_stills(notebook: NotebookNode, name: str) -> NotebookNode:
    """Give each explorer that a lesson shows its still picture, where there is one, in place."""
    name_of = bare.names_on(name)
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        cell.outputs = [output for output in cell.outputs if not is_still(output)]
        for output in list(cell.outputs):
            if found := bare.EXPLORER.search(output.get("data", {}).get("text/html", "")):
                kind, title, words = found.groups()
                if picture := bare.still_bytes(name_of(kind)):
                    alt = html.unescape(f"{title}: {bare.without_elsewhere(words)}")
                    texts = {STILL: True, "image/png": {"alt": alt, "width": _WIDTH}}
                    data = {"image/png": base64.b64encode(picture).decode()}
                    cell.outputs.append(nbformat.v4.new_output("display_data", data, metadata=texts))
    return notebook


def renew_stills(root: Path) -> None:
    """Renew the pictures in all published notebooks, which are not executed."""
    for lesson in written_lessons(root):
        path = root / "notebooks" / f"{lesson.name}.ipynb"
        notebook = with_stills(nbformat.read(path, 4), lesson.name)
        path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")


if __name__ == "__main__":
    renew_stills(project_root())
