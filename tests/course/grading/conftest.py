"""Copies of a notebook, written from the code of their cells, and workers that cost little."""

import json
import os

import pytest

from tests.fuzz.children import run_child


@pytest.fixture(scope="session")
def write_copy():
    """Write code cells as a notebook file."""

    def write(path, *cells, title="# A sheet of our own"):
        content = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}}
        content["cells"] = [{"cell_type": "markdown", "metadata": {}, "source": title}]
        content["cells"] += [
            {"cell_type": "code", "metadata": {}, "source": cell, "outputs": [], "execution_count": None}
            for cell in cells
        ]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content), encoding="utf-8")
        return path

    return write


@pytest.fixture
def forked_workers(tmp_path_factory, monkeypatch):
    """Fork workers off this process, so that not each imports torch; return where they are.

    True ones: test_running.
    """
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    from tinytx_course.grading import planning, running, worker  # noqa: F401  (so that no child has to)

    folder = tmp_path_factory.mktemp("worker") / "child"

    def run(job, walls):
        done = run_child(lambda _: worker.main(), [], folder, json.dumps(job).encode())
        assert done.printed.count("\n") == 2, (done.kind, done.said)
        return json.loads(done.printed.splitlines()[1])

    monkeypatch.setattr(running, "_run", run)
    return folder
