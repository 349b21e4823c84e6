"""Plan B: the notebooks under pytest-notebook, in place of nbval, which has had no release since March 2024.

``python -m tests.rot.plan_b 02 03`` runs copies of published notebooks and compares the cells that nbval
compares, as it does; first it makes sure that a wrong output is found.
"""

from __future__ import annotations

import configparser
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from tests.environments import ROOT, TAG
from tinytx_course.building.notebooks import kernel_environment

SANITIZE = ROOT / "tests" / "notebooks" / "sanitize.cfg"


def with_rules(notebook: NotebookNode) -> NotebookNode:
    """The notebook with what pytest-notebook is to ignore and to replace: it reads that from its metadata."""
    ignored = [f"{place}/metadata" for place in ("", "/cells/*", "/cells/*/outputs/*")]
    ignored += [f"{place}/execution_count" for place in ("/cells/*", "/cells/*/outputs/*")]
    for number, cell in enumerate(notebook.cells):
        if TAG not in cell.metadata.get("tags", []):
            ignored.append(f"/cells/{number}/outputs")
    rules = configparser.ConfigParser(interpolation=None)
    rules.read(SANITIZE, encoding="utf-8")
    pairs = ((rules[name]["regex"], rules[name]["replace"]) for name in rules.sections())
    replaced = [["/cells/*/outputs", regex, instead] for regex, instead in pairs]
    notebook.metadata["nbreg"] = {"diff_ignore": ignored, "diff_replace": replaced}
    return notebook


def run(notebooks: dict[str, NotebookNode]) -> subprocess.CompletedProcess[str]:
    """Run copies of notebooks, by name."""
    with tempfile.TemporaryDirectory() as folder:
        for name, notebook in notebooks.items():
            nbformat.write(with_rules(notebook), Path(folder) / name)
        command = [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", "--rootdir", folder, folder]
        command += ["--nb-test-files", "--nb-exec-timeout=1200", "-p", "no:cacheprovider", "-p", "no:nbval"]
        environment = kernel_environment(ROOT, budget="smoke") | {"IPYTHONDIR": f"{folder}/ipython"}
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def main() -> int:
    """Run what is named; print what pytest printed."""
    wrong = nbformat.v4.new_code_cell("print('now')", execution_count=1, metadata={"tags": [TAG]})
    wrong.outputs = [nbformat.v4.new_output("stream", name="stdout", text="then\n")]
    if "1 failed" not in run({"wrong.ipynb": nbformat.v4.new_notebook(cells=[wrong])}).stdout:
        print("a wrong output was not found")
        return 1
    paths = [path for path in sorted((ROOT / "notebooks").glob("*.ipynb")) if path.name[:2] in sys.argv[1:]]
    done = run({path.name: nbformat.read(path, 4) for path in paths})
    print(done.stdout[-6000:] + (done.stderr[-2000:] if done.returncode else ""))
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
