"""Results: on disk at once or not at all, with where and when they were measured."""

import json
import re

import pytest
import torch

from tinytx_course.results import Results, read_results


def test_a_record_is_on_disk_as_soon_as_it_is_put(tmp_path):
    Results("demo", tmp_path).put("cell 1", {"seed": 3, "accuracy": 0.5})
    again = Results("demo", tmp_path)
    assert again.get("cell 1") == {"seed": 3, "accuracy": 0.5}
    assert again.get("cell 2") is None
    assert again.data == {"cell 1": {"seed": 3, "accuracy": 0.5}}


def test_records_that_another_process_stored_since_stay(tmp_path):
    ours, theirs = Results("demo", tmp_path), Results("demo", tmp_path)
    ours.put("a", {"seed": 1})
    theirs.put("b", {"seed": 2})
    ours.put("c", {"seed": 3})
    assert set(Results("demo", tmp_path).data) == {"a", "b", "c"} == set(ours.data)
    assert json.loads((tmp_path / "demo.json").read_text())["seeds"] == [1, 2, 3]


def test_nothing_is_written_before_the_first_record(tmp_path):
    Results("demo", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_record_can_be_replaced(tmp_path):
    store = Results("demo", tmp_path)
    store.put("a", {"x": 1})
    store.put("a", {"x": 2})
    assert Results("demo", tmp_path).data == {"a": {"x": 2}}


def test_machine_date_commit_and_seeds_are_kept(tmp_path):
    store = Results("demo", tmp_path)
    store.put("a", {"seed": 5, "inner": [{"seeds": [2, 3]}]})
    content = json.loads((tmp_path / "demo.json").read_text(encoding="utf-8"))
    (run,) = content["runs"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", run["date"])
    assert run["machine"]["torch"] == torch.__version__.split("+")[0]
    assert run["machine"]["threads"] == torch.get_num_threads()
    assert run["commit"]
    assert content["seeds"] == [2, 3, 5]
    assert content["measured_in_run"] == {"a": 0}
    assert run["date"] in store.source_line()


def test_each_record_keeps_the_run_that_measured_it(tmp_path, monkeypatch):
    Results("demo", tmp_path).put("old", {"x": 1})
    monkeypatch.setattr(
        "tinytx_course.results.provenance", lambda: {"machine": {}, "date": "later", "commit": "c"}
    )
    store = Results("demo", tmp_path)
    store.put("new", {"x": 2})
    content = json.loads(store.path.read_text(encoding="utf-8"))
    assert content["measured_in_run"] == {"old": 0, "new": 1}


def test_the_source_line_names_a_machine_once_and_no_run_whose_records_are_gone(tmp_path, monkeypatch):
    machine = {"gpu": None, "cpu": "A chip", "threads": 1, "torch": "2.0"}
    for commit, key in (("c1", "a"), ("c2", "b"), ("c3", "c"), ("c4", "b")):
        here = {"machine": machine, "date": "2020-01-02", "commit": commit}
        monkeypatch.setattr("tinytx_course.results.provenance", lambda here=here: here)
        store = Results("demo", tmp_path)
        store.put(key, {"x": 1})
    assert store.source_line() == "measured 2020-01-02, A chip, 1 thread, PyTorch 2.0, commits c1 c3 c4"


def test_what_comes_out_can_be_changed_without_changing_the_store(tmp_path):
    store = Results("demo", tmp_path)
    record = {"curve": [1, 2]}
    store.put("a", record)
    record["curve"].append(3)
    store.data["a"]["curve"].append(4)
    store.get("a")["curve"].append(5)
    assert store.get("a") == {"curve": [1, 2]}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), torch.tensor(1.0)])
def test_what_json_cannot_hold_leaves_the_file_as_it_was(tmp_path, value):
    store = Results("demo", tmp_path)
    store.put("a", {"x": 1})
    before = store.path.read_bytes()
    with pytest.raises((TypeError, ValueError)):
        store.put("b", {"x": value})
    assert store.path.read_bytes() == before
    assert store.data == {"a": {"x": 1}}


def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(tmp_path, monkeypatch):
    store = Results("demo", tmp_path)
    store.put("a", {"x": 1})
    before = store.path.read_bytes()

    def full_disk(*_):
        raise OSError("no space left")

    monkeypatch.setattr("os.replace", full_disk)
    with pytest.raises(OSError, match="no space"):
        store.put("b", {"x": 2})
    assert [path.name for path in tmp_path.iterdir()] == ["demo.json"]
    assert store.path.read_bytes() == before


@pytest.mark.parametrize("content", ["{", "[1]", "{}"])
def test_another_file_is_refused_by_name(tmp_path, content):
    (tmp_path / "demo.json").write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match="demo.json must"):
        Results("demo", tmp_path)


@pytest.mark.parametrize("name", ["", "a/b", ".."])
def test_a_name_has_no_folders(tmp_path, name):
    with pytest.raises(ValueError, match="plain file name"):
        Results(name, tmp_path)


def test_missing_results_name_the_command_that_makes_them(tmp_path):
    with pytest.raises(FileNotFoundError, match="`python -m experiments transfer` measures it"):
        read_results("transfer", tmp_path)
    Results("transfer", tmp_path).put("a", {"x": 1})
    assert read_results("transfer", tmp_path).data == {"a": {"x": 1}}
