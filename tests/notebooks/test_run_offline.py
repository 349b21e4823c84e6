"""The published notebooks run from top to bottom without a network, and the way this is ensured works."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from tests.environments import ROOT, TAG
from tests.notebooks.offline import namespaces_allowed, nbval
from tinytx_course.building.stale import other_cells, stale_cells

pytest.importorskip("nbval")
pytestmark = [pytest.mark.notebook, pytest.mark.timeout(3600)]

# 192.0.2.1 is set aside for documentation (RFC 5737), .invalid never resolves (RFC 2606): nothing is there.
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
IN_A_CHILD = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {NO_WAY_OUT!r}], check=True)"
LOOPBACK = """
with socket.create_server(("127.0.0.1", 0)) as server:
    client = socket.create_connection(server.getsockname())
    there, _ = server.accept()
    client.sendall(b"hello")
    assert there.recv(5) == b"hello"
    there.close()
    client.close()
"""


@pytest.mark.parametrize("mechanism", ["namespace", "guard"])
def test_no_kernel_and_no_child_of_one_finds_a_way_out_and_failures_are_seen(mechanism, tmp_path):
    if mechanism == "namespace" and not namespaces_allowed():
        pytest.skip("this machine allows no network namespaces: the guard replaces them")
    sources = [NO_WAY_OUT, IN_A_CHILD, LOOPBACK, "print('now')", "print('now')", "raise ValueError('seen')"]
    cells = [new_code_cell(source.strip(), execution_count=1) for source in sources]
    for cell, text in zip(cells[3:5], ("now\n", "then\n"), strict=True):
        cell.outputs = [new_output("stream", name="stdout", text=text)]
        cell.metadata["tags"] = [TAG]
    published = new_notebook(cells=cells)
    nbformat.write(published, tmp_path / "probe.ipynb")
    n_passed, n_failed, printed = nbval(tmp_path / "probe.ipynb", tmp_path, mechanism)
    assert (n_passed, n_failed) == (4, 2), printed
    assert "seen" in printed and "then" in printed
    stale = other_cells(published, nbformat.read(tmp_path / "probe.ipynb", 4), ROOT)
    assert cells[4].id in stale and cells[3].id not in stale


def test_notebook_runs_offline_and_gives_its_checked_outputs(lesson, tmp_path):
    path = ROOT / "notebooks" / f"{lesson.name}.ipynb"
    published = nbformat.read(path, 4)
    n_passed, n_failed, printed = nbval(path, tmp_path)
    assert (n_passed, n_failed) == (sum(cell.cell_type == "code" for cell in published.cells), 0), printed
    stale = stale_cells(lesson.name, published, nbformat.read(tmp_path / path.name, 4), ROOT)
    assert not stale, "\n\n".join(("outputs are of other code: run `make publish`", *stale))
