"""Results: on disk at once or not at all, with the machine, date and commit of their measurement."""

import dataclasses
import getpass
import json
import platform
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from tinytx_course import results
from tinytx_course.machine import PeakMemory, shortcomings, this_machine
from tinytx_course.results import Results, read_results


def test_a_record_is_on_disk_as_soon_as_it_is_put_and_not_before_and_can_be_replaced(tmp_path):
    first = Results("demo", tmp_path / "new")
    assert not (tmp_path / "new").exists()
    first.put("cell 1", {"seed": 3, "accuracy": 0.5})
    again = Results("demo", tmp_path / "new")
    assert again.get("cell 1") == {"seed": 3, "accuracy": 0.5} and again.get("cell 2") is None
    again.put("cell 1", {"x": 2})
    assert Results("demo", tmp_path / "new").data == {"cell 1": {"x": 2}}


def test_records_that_another_process_stored_since_stay(tmp_path):
    ours, theirs = Results("demo", tmp_path), Results("demo", tmp_path)
    ours.put("a", {"seed": 1})
    theirs.put("b", {"seed": 2})
    ours.put("c", {"seed": 3})
    assert set(Results("demo", tmp_path).data) == {"a", "b", "c"} == set(ours.data)


def test_machine_date_and_commit_are_stored(tmp_path):
    store = Results("demo", tmp_path)
    store.put("a", {"seed": 5})
    content = json.loads(store.path.read_text(encoding="utf-8"))
    (run,) = content["runs"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", run["date"]) and run["commit"]
    assert run["machine"] == this_machine().to_dict()
    assert content["measured_in_run"] == {"a": 0}
    assert run["date"] in store.source_line()


def test_each_record_points_to_its_run_and_a_run_goes_with_its_last_record(tmp_path, monkeypatch):
    machine = {"gpu": None, "cpu": "A chip", "threads": 1, "torch": "2.0"}
    for commit, key in (("c1", "a"), ("c2", "b"), ("c3", "c"), ("c4", "b")):
        here = {"machine": machine, "date": "2020-01-02", "commit": commit}
        monkeypatch.setattr(results, "provenance", lambda here=here: here)
        store = Results("demo", tmp_path)
        store.put(key, {"x": 1})
    content = json.loads(store.path.read_text())
    assert content["measured_in_run"] == {"a": 0, "b": 2, "c": 1}
    assert [run["commit"] for run in content["runs"]] == ["c1", "c3", "c4"], "none that nothing came from"
    assert store.source_line() == "measured 2020-01-02, A chip, 1 thread, PyTorch 2.0, commits c1 c3 c4"


def test_what_comes_out_can_be_changed_without_changing_the_store(tmp_path):
    store, record = Results("demo", tmp_path), {"curve": [1, 2]}
    store.put("a", record)
    for curve in (record["curve"], store.data["a"]["curve"], store.get("a")["curve"]):
        curve.append(3)
    assert store.get("a") == {"curve": [1, 2]}


def full_disk(*_):
    raise OSError("no space left")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), torch.tensor(1.0), "full disk"])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, value):
    store = Results("demo", tmp_path)
    store.put("a", {"x": 1})
    before = store.path.read_bytes()
    if value == "full disk":
        monkeypatch.setattr("os.replace", full_disk)
    with pytest.raises((TypeError, ValueError, OSError)):
        store.put("b", {"x": value})
    assert [path.name for path in tmp_path.iterdir()] == ["demo.json"]
    assert store.path.read_bytes() == before


@pytest.mark.parametrize("content", ["{", "[1]", "{}"])
def test_another_file_is_refused_by_name(tmp_path, content):
    (tmp_path / "demo.json").write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match="demo.json"):
        Results("demo", tmp_path)


@pytest.mark.parametrize("name", ["", "a/b", "..", "a\\b"])
def test_a_name_has_no_folders(tmp_path, name):
    with pytest.raises(ValueError, match=re.escape(repr(name))):
        Results(name, tmp_path)


def test_lessons_read_the_checkout_first_and_then_what_was_installed(tmp_path, monkeypatch):
    folders = (tmp_path / "checkout", tmp_path / "package")
    monkeypatch.setattr(results, "FOLDERS", folders)
    for name, command in {
        "transfer": "experiments transfer`",
        "translation-multi30k-en-fr": "experiments translation --corpus multi30k-en-fr`",
        "bench-steps": "benchmarks steps`",
    }.items():
        with pytest.raises(FileNotFoundError, match=f"`python -m {command}"):
            read_results(name)
    for folder in reversed(folders):
        Results("transfer", folder).put("a", {"from": folder.name})
        assert read_results("transfer").get("a") == {"from": folder.name}
    assert read_results("transfer", tmp_path / "package").get("a") == {"from": "package"}


def test_a_table_takes_the_place_of_the_one_between_its_marks_and_of_nothing_else():
    page = "a\n<!-- one -->\n\nold\n\n<!-- end of one -->\nb <!-- end of two -->\n"
    new = results.with_table(page, "one", "| new |")
    assert new == page.replace("\nold\n", "\n| new |\n") and results.with_table(new, "one", "old") == page
    for name in ("two", "three"):
        with pytest.raises(ValueError, match=f"<!-- {name} --> and <!-- end of {name} -->"):
            results.with_table(page, name, "")


# ---- the machine


def test_the_report_agrees_with_python_and_torch_and_names_no_host_user_or_folder():
    here = this_machine()
    assert here.python == platform.python_version() and torch.__version__.startswith(here.torch)
    assert here.threads == torch.get_num_threads()
    assert (here.gpu is not None) == (torch.cuda.is_available() or torch.backends.mps.is_available())
    for secret in (platform.node(), str(Path.home()), str(Path(__file__).parent)):
        assert not secret or secret not in json.dumps(here.to_dict())
    assert getpass.getuser() not in here.to_dict().values()


def test_shortcomings_name_the_value_and_the_remedy():
    good = dataclasses.replace(this_machine(), cores=2, threads=2, memory_gib=8.0)
    assert shortcomings(good) == []
    (memory,) = shortcomings(dataclasses.replace(good, memory_gib=1.5))
    (threads,) = shortcomings(dataclasses.replace(good, threads=8))
    assert "1.5" in memory and "OMP_NUM_THREADS=2" in threads


def test_the_report_can_be_read_without_a_gpu():
    bare = dataclasses.replace(this_machine(), gpu=None, gpu_memory_gib=None, cores=1, threads=2)
    for words in ("1 core\n", "2 threads", "none"):
        assert words in str(bare)


def test_the_peak_of_a_process_is_at_least_what_it_held():
    code = "held = bytearray(60 * 2**20); print('ready', flush=True); input()"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        memory = PeakMemory()
        memory.watch(process.pid)
        while memory.peak == 0:
            time.sleep(0.01)
        process.communicate(b"\n")
    assert 60 * 2**20 <= memory.stop() < 2**30


def test_results_measured_before_make_no_commit_dirty_and_other_edits_do(tmp_path):
    def git(*words):
        identity = ("-c", "user.name=n", "-c", "user.email=n@n.example")
        subprocess.run(("git", *identity, *words), cwd=tmp_path, check=True, capture_output=True)

    git("init")
    (tmp_path / "results").mkdir()
    (tmp_path / "inner").mkdir()
    code, record, table = (tmp_path / name for name in ("code.py", "results/one.json", "inner/records.md"))
    code.write_text("1")
    record.write_text("1")
    table.write_text("1")
    git("add", ".")
    git("commit", "-m", "first")
    clean = results._commit(tmp_path)
    assert re.fullmatch("[0-9a-f]{7,}", clean)
    record.write_text("2")
    table.write_text("2")
    assert results._commit(tmp_path) == clean
    code.write_text("2")
    assert results._commit(tmp_path) == f"{clean}-dirty"
    assert results._commit(tmp_path / "results") == f"{clean}-dirty"
