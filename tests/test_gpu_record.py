"""What `python -m tests.gpu` makes of reports, tried without a GPU."""

import os
import subprocess
import sys
from unittest.mock import Mock

import pytest
import torch

from tests.gpu import __main__ as gpu
from tests.gpu import outcomes
from tinytx_course import results
from tinytx_course.building.gpu import NONE, gpu_line, gpu_table
from tinytx_run.cli import build_parser

NOTEBOOK = {
    "cells_passed": 3,
    "cells_failed": 0,
    "seconds": 1.0,
    "steps": 5,
    "placed_steps": 5,
    "on_gpu": True,
}

TESTS = """
import os
import pytest
def test_right(): pass
def test_wrong(): assert 1 == 2
def test_two(): pytest.skip("needs two GPUs")
@pytest.mark.skipif(True, reason="no wheel")
def test_other(): pass
@pytest.fixture
def broken(): raise OSError("gone")
def test_broken(broken): pass
def test_killed(): os._exit(1)
"""


def report(tmp_path, source, *words):
    (tmp_path / "test_some.py").write_text(source, encoding="utf-8")
    file = tmp_path / "outcomes"
    file.touch()
    command = [sys.executable, "-m", "pytest", "-q", "--rootdir", tmp_path, "-p", "no:cacheprovider"]
    command += ["-p", outcomes.__name__, *words, tmp_path]
    environment = {**os.environ, outcomes.FILE: str(file), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment.pop("PYTEST_XDIST_WORKER", None)
    subprocess.run(command, capture_output=True, env=environment)
    return outcomes.read(file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("words", [(), ("-p", "xdist", "-n", "2")], ids=str)
def test_what_becomes_of_each_test_becomes_a_record(tmp_path, words):
    record = report(tmp_path, TESTS, *words)
    assert record["passed"] == ["test_some.py::test_right"]
    failed = {name.partition("::")[2]: why for name, why in record["failed"].items()}
    assert failed["test_wrong"] == "assert 1 == 2" and failed["test_broken"] == "OSError: gone"
    assert failed["test_killed"] == "did not end" or "crashed" in failed["test_killed"]  # as xdist says
    assert set(failed) == {"test_wrong", "test_broken", "test_killed"}
    assert record["skipped"] == {
        "test_some.py::test_two": "needs two GPUs",
        "test_some.py::test_other": "no wheel",
    }
    faults = gpu.faults_of_tests(record)
    assert len(faults) == 4 and any("assert 1 == 2" in fault for fault in faults)
    assert faults[-1] == "skipped: test_some.py::test_other: no wheel"


def test_tests_without_time_are_cut_short_and_a_fault(monkeypatch, tmp_path):
    (tmp_path / "tests").mkdir()
    monkeypatch.setattr(gpu, "ROOT", tmp_path)
    monkeypatch.setitem(gpu.MOST_SECONDS, "tests", 0)
    record, (fault,) = gpu.tests(tmp_path)
    assert not record["passed"] and "0 collected" in fault


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({}, None),
        ({"on_gpu": False}, "trains, and no tensor was on the GPU"),
        ({"on_gpu": False, "placed_steps": 0}, None),
        ({"cells_failed": 1}, "1 cells failed"),
        ({"cells_passed": 0}, "0 passed"),
    ],
)
def test_a_notebook_that_trains_is_on_the_gpu_and_all_its_cells_pass(change, fault):
    faults = gpu.faults_of_notebooks({"01_some": NOTEBOOK | change})
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
    assert (some["cells_passed"], some["cells_failed"]) == (2, 1)
    assert (some["steps"], some["placed_steps"], some["on_gpu"]) == (1, 0, False)
    assert len(faults) == 1 and "1 cells failed" in faults[0]


def test_what_takes_longer_than_the_budget_allows_is_a_fault(monkeypatch, tmp_path):
    lessons = {"01_some": NOTEBOOK | {"seconds": 121.0}}
    monkeypatch.setattr(gpu, "notebooks", lambda folder, budget, **how: (lessons, []))
    monkeypatch.setitem(gpu.MOST_SECONDS, "finetune", -1)
    ran = Mock(return_value=Mock(returncode=0))
    monkeypatch.setattr(subprocess, "run", ran)
    record, faults = gpu.world(tmp_path)
    asked = [build_parser().parse_args(call.args[0][3:]) for call in ran.call_args_list]
    assert [*record] == [one.command.__name__ for one in asked] == ["pretrain", "finetune"]
    slow = [fault.partition(" must")[0] for fault in faults + gpu.lessons(tmp_path)[1]]
    assert slow == ["finetune", "01_some"]


def test_a_part_that_breaks_is_a_fault_and_the_others_are_run_and_shown(monkeypatch, tmp_path, root):
    def broken(folder):
        raise OSError("no room")

    parts = {"tests": broken, "notebooks": lambda folder: ({"01_some": NOTEBOOK}, [])}
    monkeypatch.setattr(gpu, "PARTS", parts)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(results, "provenance", lambda: {"machine": {}, "date": "", "commit": ""})
    where = {"commit": "abc1234", "date": "2026-12-01", "card": "H100", "torch": "2.13.0"}
    monkeypatch.setattr(gpu, "machine", lambda commit: where)
    for folder in ("docs", "results"):
        (tmp_path / folder).mkdir()
    for page in ("README.md", "docs/speed.md"):
        (tmp_path / page).write_text((root / page).read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(gpu, "ROOT", tmp_path)
    monkeypatch.setattr(gpu, "RESULTS", tmp_path / "results")
    assert gpu.main(["--results", str(tmp_path / "results")]) == 1
    stored = results.Results("gpu", tmp_path / "results").data
    assert stored["tests"]["faults"] == ["OSError: no room"] and not stored["notebooks"]["faults"]
    for page in ("README.md", "docs/speed.md"):
        text = (tmp_path / page).read_text(encoding="utf-8")
        assert "abc1234" in text and "2026-12-01" in text and NONE not in text


def test_the_pages_show_the_record_or_say_that_there_is_none(root):
    again = "run `python -c 'from tinytx_course.building.gpu import *; write_pages(Path())'`"
    readme, speed = (root / page for page in ("README.md", "docs/speed.md"))
    assert gpu_line(root / "results") in readme.read_text(encoding="utf-8").splitlines(), again
    assert gpu_table(root / "results") in speed.read_text(encoding="utf-8"), again


def test_a_process_that_hangs_ends_and_says_where():
    words = ["pretrain", "--corpus", "world", "--budget", "smoke", "--steps", "9999999", "--out", os.devnull]
    command = [sys.executable, "-m", "tests.gpu.limited", *words]
    seconds = {"TINYTX_TEST_SECONDS": "0.01"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=gpu.ROOT, env=os.environ | seconds)
    assert done.returncode and "Timeout" in done.stderr and "most recent call first" in done.stderr


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so_and_ends_with_2(capsys, tmp_path):
    assert gpu.main(["tests", "--results", str(tmp_path)]) == 2
    assert capsys.readouterr().err == gpu.NO_GPU + "\n" and not list(tmp_path.iterdir())
    with pytest.raises(SystemExit):
        gpu.main(["nothing"])
