"""What `python -m tests.gpu` makes of reports, tried without a GPU."""

import subprocess
import sys

import pytest
import torch

from tests.gpu import __main__ as gpu

TESTS = """
import pytest
def test_right(): pass
def test_wrong(): assert 1 == 2
def test_two(): pytest.skip("needs two GPUs")
@pytest.mark.skipif(True, reason="no wheel")
def test_other(): pass
@pytest.fixture
def broken(): raise OSError("gone")
def test_broken(broken): pass
"""


def report(tmp_path, source, *words):
    (tmp_path / "test_some.py").write_text(source, encoding="utf-8")
    xml = tmp_path / "some.xml"
    command = [sys.executable, "-m", "pytest", "-q", "--rootdir", tmp_path, "-p", "no:cacheprovider"]
    subprocess.run([*command, f"--junitxml={xml}", *words, tmp_path], capture_output=True, cwd=tmp_path)
    return gpu.read_junit(xml.read_text(encoding="utf-8"))


def test_a_report_of_pytest_becomes_a_record(tmp_path):
    record = report(tmp_path, TESTS)
    assert record["passed"] == ["test_some::test_right"]
    assert set(record["failed"]) == {"test_some::test_wrong", "test_some::test_broken"}
    assert record["skipped"] == {"test_some::test_two": "needs two GPUs", "test_some::test_other": "no wheel"}
    faults = gpu.faults_of_tests(record)
    assert len(faults) == 3 and any("assert 1 == 2" in fault for fault in faults)
    assert faults[-1] == "skipped: test_some::test_other: no wheel"


def test_nothing_collected_is_a_fault(tmp_path):
    (fault,) = gpu.faults_of_tests(report(tmp_path, TESTS, "-k", "nobody"))
    assert "0 collected" in fault


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({}, None),
        ({"on_gpu": False}, "trains, and no tensor was on the GPU"),
        ({"on_gpu": False, "steps": 0}, None),
        ({"cells_failed": 1}, "1 cells failed"),
        ({"cells_passed": 0}, "0 passed"),
    ],
)
def test_a_notebook_that_trains_is_on_the_gpu_and_all_its_cells_pass(change, fault):
    good = {"cells_passed": 3, "cells_failed": 0, "seconds": 1.0, "steps": 5, "on_gpu": True, "peak_mib": 7}
    faults = gpu.faults_of_notebooks({"01_some": good | change})
    assert [fault is not None and fault in one for one in faults] == [True] * (fault is not None)
    assert gpu.faults_of_notebooks({}) == ["no notebook was run"]


def test_a_missing_nbval_is_a_fault(monkeypatch, tmp_path):
    monkeypatch.setattr(gpu.importlib.util, "find_spec", lambda name: None)
    assert "need nbval" in gpu.notebooks(tmp_path)[1][0]


def test_a_kernel_writes_down_what_a_notebook_does(monkeypatch, tmp_path):
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("nbval")
    (tmp_path / "notebooks").mkdir()
    source = "import torch\nw = torch.nn.Parameter(torch.ones(1))\noptimizer = torch.optim.SGD([w], lr=1.0)"
    cells = [source, "w.sum().backward()\noptimizer.step()", "1 / 0"]
    notebook = nbformat.v4.new_notebook(cells=list(map(nbformat.v4.new_code_cell, cells)))
    nbformat.write(notebook, tmp_path / "notebooks" / "some.ipynb")
    monkeypatch.setattr(gpu, "ROOT", tmp_path)
    monkeypatch.setenv("TINYTX_BUDGET", "smoke")
    record, faults = gpu.notebooks(tmp_path / "runs")
    some = record["some"]
    assert (some["cells_passed"], some["cells_failed"], some["steps"]) == (2, 1, 1)
    assert some["on_gpu"] == (torch.cuda.is_available() and some["peak_mib"] > 0) and len(faults) == 2


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so_and_ends_with_2(capsys, tmp_path):
    assert gpu.main(["tests", "--results", str(tmp_path)]) == 2
    assert capsys.readouterr().err == gpu.NO_GPU + "\n" and not list(tmp_path.iterdir())
    with pytest.raises(SystemExit):
        gpu.main(["nothing"])
