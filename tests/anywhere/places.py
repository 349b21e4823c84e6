"""A fresh environment with the built wheel, in a folder with an awkward name, and ways to run it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from nbclient import NotebookClient
from nbformat import NotebookNode

from tinytx_course.building.elsewhere import first_cell, is_first_cell
from tinytx_course.building.notebooks import build_notebook
from tinytx_course.lessons import Lesson

ROOT = Path(__file__).resolve().parents[2]
#: Spaces, accents, an apostrophe, and over 200 characters in all.
AWKWARD = Path("d'été à l'école") / ("x" * 100) / ("ß" * 50)
COLAB = "def enable_custom_widget_manager():\n    print('widgets of others are allowed')\n"


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


def copy_commit(folder: Path) -> Path:
    """Write what the last commit holds into a new folder; return it."""
    folder.mkdir(parents=True)
    archive = subprocess.run(("git", "archive", "HEAD"), cwd=ROOT, capture_output=True, check=True)
    subprocess.run(("tar", "-x", "-C", folder), input=archive.stdout, check=True)
    return folder


def build_wheel(folder: Path) -> Path:
    """Build the wheel of the last commit."""
    source = copy_commit(folder / "source")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, source)
    (wheel,) = folder.glob("*.whl")
    return wheel


def new_environment(folder: Path, *packages: str) -> Path:
    """Make an environment without the course; return its Python."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    if packages:
        pins = ("-c", ROOT / "constraints.txt")
        alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # no checkout
        run(python, "-m", "pip", "install", "--quiet", *pins, *packages, env=alone)
    return python


def bare(home: Path, **more: str) -> dict[str, str]:
    """An environment with next to nothing in it: no checkout, no git, the user's folder where it is told."""
    network = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_", "SSL_"))}
    return {"HOME": str(home), "OMP_NUM_THREADS": "1", "TINYTX_BUDGET": "smoke", **network, **more}


class Colab:
    """Notebooks as in Colab: no checkout, `google.colab` importable; the first cell installs the course."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.folder = folder
        python = new_environment(folder / "venv", "ipykernel", "ipywidgets")
        (site_packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
        package = site_packages / "google" / "colab"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("from google.colab import output\n", encoding="utf-8")
        (package / "output.py").write_text(COLAB, encoding="utf-8")
        self._address = wheel.as_uri()
        kernel = folder / "jupyter" / "kernels" / "colab"
        kernel.mkdir(parents=True)
        argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        start = ["--IPKernelApp.exec_lines=import google.colab", "--IPKernelApp.log_level=40"]
        spec = {"argv": [*argv, *start], "display_name": "colab", "language": "python"}
        (kernel / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
        os.environ["JUPYTER_PATH"] = str(folder / "jupyter")

    def execute(self, lesson: Lesson) -> NotebookNode:
        """A notebook with the address of the wheel in its first cell, executed in an empty folder."""
        notebook = build_notebook(lesson, ROOT)
        (number,) = (i for i, cell in enumerate(notebook.cells) if is_first_cell(cell))
        notebook.cells[number] = first_cell(self._address)
        content = self.folder / "content"
        shutil.rmtree(content, ignore_errors=True)
        content.mkdir()
        client: NotebookClient = NotebookClient(
            notebook, kernel_name="colab", timeout=1800, resources={"metadata": {"path": str(content)}}
        )
        client.execute(env=bare(content, PATH=os.environ["PATH"]))
        return notebook
