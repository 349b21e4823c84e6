"""The file of progress: whole after each change, shared by processes, never a reason to stop."""

import json

import pytest

import tinytx_course as course
from tinytx_course.building.notebooks import kernel_environment
from tinytx_course.lessons import project_root
from tinytx_course.progress.record import Record, _record


def test_an_entry_is_read_back_by_another_record_and_removed(tmp_path):
    file = tmp_path / "a" / "progress.json"
    Record(file).change("exercises", "attention", {"passed": True})
    assert Record(file).entry("exercises", "attention") == {"passed": True}
    Record(file).change("predictions", "02.1", {"choice": "é"})
    assert Record(file).entry("predictions", "02.1") == {"choice": "é"}
    Record(file).change("exercises", "attention", None)
    assert Record(file).part("exercises") == {} and Record(file).entry("exercises", "attention") == {}
    assert [path.name for path in file.parent.iterdir()] == ["progress.json"]


def test_two_records_of_one_file_lose_nothing_of_each_other(tmp_path):
    first, second = Record(tmp_path / "p.json"), Record(tmp_path / "p.json")
    for i in range(3):
        first.change("questions", f"tokens/{i}", {"right": True})
        second.change("questions", f"positions/{i}", {"right": False})
    assert len(first.part("questions")) == len(second.part("questions")) == 6


@pytest.mark.parametrize("content", ["{", "[]", '{"exercises": []}', '{"predictions": {"02.1": 3}}', "\x00"])
def test_a_broken_file_is_reported_in_one_line_left_alone_and_replaced_by_memory(tmp_path, capsys, content):
    file = tmp_path / "progress.json"
    file.write_text(content)
    record = Record(file)
    for i in range(2):
        record.change("exercises", str(i), {"passed": True})
    assert set(record.part("exercises")) == {"0", "1"}
    assert file.read_text() == content
    (line,) = capsys.readouterr().err.splitlines()
    assert str(file) in line


def test_a_place_that_cannot_be_written_is_reported_in_one_line(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    record = Record(tmp_path / "file" / "progress.json")  # a file is no folder
    record.change("exercises", "attention", {"passed": True})
    assert record.entry("exercises", "attention") == {"passed": True}
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_variable_names_the_file_and_none_means_memory(tmp_path):
    assert _record("none").file is None
    assert _record(str(tmp_path / "p.json")).file == tmp_path / "p.json"
    assert _record(None).file == project_root() / "work" / "progress.json"


def test_notebooks_of_the_course_run_with_nothing_personal(monkeypatch, root):
    monkeypatch.setenv("TINYTX_PROGRESS", "/somewhere/mine.json")
    assert kernel_environment(root)["TINYTX_PROGRESS"] == "none"


def test_a_check_that_is_shown_is_recorded_and_passed_once_is_passed(mine, capsys):
    import torch

    def right(seq_len):
        return torch.ones(seq_len, seq_len).tril().bool()

    course.check("causal_mask", lambda seq_len: None, display=True)
    course.check("causal_mask", right, display=False)
    assert mine.part("exercises") == {}
    course.check("causal_mask", lambda seq_len: ~right(seq_len))
    assert mine.entry("exercises", "causal_mask") == {"passed": False, "mistake": "reversed", "tries": 1}
    course.check("causal_mask", right)
    course.check("causal_mask", lambda seq_len: ~right(seq_len))
    assert mine.entry("exercises", "causal_mask") == {"passed": True, "mistake": "reversed", "tries": 3}
    assert set(json.loads(mine.file.read_text())["exercises"]) == {"causal_mask"}
