"""The published notebooks run from top to bottom without a network, and the way this is ensured works."""

import re
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

pytest.importorskip("nbval")
pytest.importorskip("jupytext")
pytestmark = pytest.mark.notebook

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))

# 192.0.2.1 is set aside for documentation (RFC 5737), .invalid never resolves (RFC 2606): nobody is there.
NO_WAY_OUT = """
import asyncio, socket
for attempt in (
    lambda: socket.create_connection(("192.0.2.1", 9), timeout=1),
    lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 9)),
    lambda: socket.getaddrinfo("tinytx.invalid", 443),
):
    try:
        attempt()
    except TimeoutError:
        raise AssertionError("a connection was tried and waited for: there is a way out")
    except OSError as refused:
        print(type(refused).__name__)
    else:
        raise AssertionError("a way out of this machine is open")
"""
LOOPBACK = """
with socket.create_server(("127.0.0.1", 0)) as server:
    client = socket.create_connection(server.getsockname())
    there, _ = server.accept()
    client.sendall(b"hello")
    assert there.recv(5) == b"hello"
    there.close()
    client.close()
"""


def write(folder, *sources):
    path = folder / "probe.ipynb"
    nbformat.write(new_notebook(cells=[new_code_cell(source.strip()) for source in sources]), path)
    return path


def counts(finished):
    """Return how many cells passed and failed."""
    found = {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|error|skipped)", finished.stdout)}
    return found.get("passed", 0), found.get("failed", 0) + found.get("error", 0)


def test_a_kernel_finds_no_way_out_but_loopback_works(each_offline, tmp_path):
    finished = each_offline.nbval(write(tmp_path, NO_WAY_OUT, LOOPBACK))
    assert counts(finished) == (2, 0), finished.stdout + finished.stderr


def test_what_a_kernel_starts_finds_no_way_out_either(each_offline, tmp_path):
    child = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {NO_WAY_OUT!r}], check=True)"
    finished = each_offline.nbval(write(tmp_path, child))
    assert counts(finished) == (1, 0), finished.stdout + finished.stderr


def test_a_failing_cell_is_seen(each_offline, tmp_path):
    finished = each_offline.nbval(write(tmp_path, "1 + 1", "raise ValueError('seen')"))
    assert finished.returncode == 1
    assert counts(finished) == (1, 1)
    assert "seen" in finished.stdout


def test_a_changed_output_is_seen_where_it_is_checked(each_offline, tmp_path):
    path = write(tmp_path, "print('now')\n# NBVAL_CHECK_OUTPUT")
    notebook = nbformat.read(path, 4)
    notebook.cells[0].outputs = [nbformat.v4.new_output("stream", name="stdout", text="then\n")]
    notebook.cells[0].execution_count = 1
    nbformat.write(notebook, path)
    finished = each_offline.nbval(path)
    assert counts(finished) == (0, 1), finished.stdout


def test_there_are_notebooks_to_run():
    assert NOTEBOOKS


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_offline_and_gives_its_checked_outputs(path, offline):
    cells = [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    finished = offline.nbval(path)
    assert counts(finished) == (len(cells), 0), finished.stdout[-6000:] + finished.stderr[-2000:]
