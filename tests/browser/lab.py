"""A JupyterLab with settings, workspaces and kernels of its own, and what to ask of it through a page."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat

from experiments.chromium import Page

ROOT = Path(__file__).resolve().parents[2]
_NOTEBOOK = "window.jupyterapp.shell.currentWidget"
_SETTINGS = {
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
}


@dataclass(frozen=True)
class Lab:
    """A running JupyterLab."""

    address: str
    token: str
    folder: Path

    def write(self, name: str, *sources: str) -> nbformat.NotebookNode:
        """Write a notebook with these code cells, and return it."""
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in sources])
        notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(notebook, self.folder / name)
        return notebook

    def open(self, page: Page, name: str, *, run: bool = True) -> None:
        """Open a notebook in a page and, if asked to, run all its cells."""
        page.open(f"{self.address}/lab/tree/{name}?token={self.token}&reset")
        page.wait(f"window.jupyterapp && {_NOTEBOOK}?.context?.isReady", 90)
        page.wait(f"{_NOTEBOOK}.sessionContext?.session?.kernel?.status === 'idle'", 90)
        if run:
            page.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells').then(() => 1)")

    def ask(self, page: Page, expression: str) -> object:
        """Return the value of a Python expression in the notebook's kernel, through JSON."""
        wrapped = f"__import__('json').dumps({expression})"
        answer = page.evaluate(
            f"{_NOTEBOOK}.sessionContext.session.kernel.requestExecute({{code: '', store_history: false, "
            f"user_expressions: {{x: {json.dumps(wrapped)}}}}}).done.then(r => r.content.user_expressions.x)"
        )
        assert answer["status"] == "ok", answer
        return json.loads(eval(answer["data"]["text/plain"]))  # the repr of a JSON text

    def n_cells(self, page: Page) -> int:
        """Return how many cells the open notebook has."""
        return page.evaluate(f"{_NOTEBOOK}.content.widgets.length")


@contextlib.contextmanager
def lab(folder: Path) -> Iterator[Lab]:
    """Start JupyterLab on a free port and end it afterwards."""
    port, token, home = free_port(), secrets.token_hex(16), folder / "home"
    notebooks = folder / "notebooks"
    notebooks.mkdir(parents=True)
    for name, values in _SETTINGS.items():
        place = home / "settings" / f"{name.replace(':', '/')}.jupyterlab-settings"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(values))
    folders = {
        **{f"JUPYTERLAB_{name}_DIR": home / name.lower() for name in ("SETTINGS", "WORKSPACES")},
        **{f"JUPYTER_{name}_DIR": home / name.lower() for name in ("RUNTIME", "CONFIG", "DATA")},
        "IPYTHONDIR": home / "ipython",
    }
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | {key: str(path) for key, path in folders.items()}
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1",
        f"--port={port}", "--ServerApp.port_retries=0",
        f"--IdentityProvider.token={token}", f"--notebook-dir={notebooks}",
        "--LabApp.expose_app_in_browser=True",
    ]  # fmt: skip
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    running = Lab(f"http://127.0.0.1:{port}", token, notebooks)
    try:
        wait_until_open(running, process, folder / "log")
        yield running
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()


def free_port() -> int:
    """Return a port that nobody uses."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def wait_until_open(running: Lab, process: subprocess.Popen, log: Path) -> None:
    """Wait until JupyterLab answers."""
    end = time.monotonic() + 90
    while True:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"{running.address}/api?token={running.token}", timeout=5).close()
            return
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"JupyterLab did not start: {log.read_text()[-1500:]}")
        time.sleep(0.2)
