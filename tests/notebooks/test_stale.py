"""Texts of other code are found, whatever may vary between two runs of the same code is not."""

from dataclasses import replace
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from tinytx_course.building import stale
from tinytx_course.building.stale import other_cells, stale_cells, versions
from tinytx_course.machine import this_machine
from tinytx_course.results import Results

MACHINE = replace(this_machine(), cores=2, gpu=None)


def notebook(text, kind="text/plain"):
    output = new_output("display_data", data={kind: text})
    return new_notebook(cells=[new_code_cell("show()", id="shown", outputs=[output])])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("loss 2.31 after 1,000 steps", "loss -0.9 after 20 steps"),
        ("| 12 | 3.0e-4 |\n|----|--------|", "|  3 | 1 |\n|--|---|"),
        ("<object at 0x7f30827ef6c0>", "<object at 0x55d0c32b1b80>"),
        ('{"float32":"AACAPw=="}', '{"float32":"AAAAAAAA"}'),
        ("<img src='data:image/png;base64,iVBORw0KGgo='>", "<img src='data:image/png;base64,AAAA'>"),
        ("2 threads, bfloat16  fast, in bf16", "1 thread, bfloat16  works, slowly, in float32"),
        (
            str(MACHINE),
            str(replace(MACHINE, system="Windows", cpu="Core i5", cores=1, memory_gib=8.0, gpu="A5")),
        ),
        ("written to build/x.json", "written to /somewhere/build/x.json"),
    ],
)
def test_numbers_machines_and_pictures_may_vary(before, after):
    found = other_cells(notebook(before, "text/html"), notebook(after, "text/html"), Path("/somewhere"))
    assert found == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("rule: A boolean tensor of shape (T, T)", "rule: a boolean tensor of shape (T, T)"),
        ("AMD EPYC, 1 threads, PyTorch 2.13.0", "AMD EPYC, 1 thread, PyTorch 2.13.0"),
        ("pretrained minus scratch excludes zero", "pretrained minus scratch does not exclude zero"),
        ("Result of 02.1. Answer: “falls”.", "Result of 02.1. Answer: “rises”."),
        ('{"answer":"slower","choice":""}', '{"answer":"about as fast","choice":""}'),
        ("one line", "one line\nand another"),
    ],
)
def test_one_word_of_other_code_is_found_where_the_budget_changes_nothing(tmp_path, before, after):
    published, executed, store = notebook(before), notebook(after), Results("varying", tmp_path / "results")
    assert stale_cells("lesson", published, executed, tmp_path) == []  # never published by this version
    store.put("lesson", {"cells": [], "versions": versions()})
    assert stale_cells("lesson", published, executed, tmp_path) == ["show()"]
    assert stale_cells("lesson", published, new_notebook(), tmp_path) == ["show()"]
    store.put("lesson", {"cells": ["shown"], "versions": versions()})
    assert stale_cells("lesson", published, executed, tmp_path) == []


@pytest.mark.parametrize("change", [{"torch": "2.11.0+cu130"}, {"sentencepiece": "0.1.99"}, {"gpu": "H100"}])
def test_other_versions_and_devices_may_segment_translate_and_decide_otherwise(tmp_path, change, monkeypatch):
    published, executed = notebook("le chat mange"), notebook("le cha t mange")
    store = Results("varying", tmp_path / "results")
    store.put("lesson", {"cells": [], "versions": versions()})
    assert stale_cells("lesson", published, executed, tmp_path) == ["show()"]
    monkeypatch.setattr(stale, "versions", lambda: versions() | change)
    assert stale_cells("lesson", published, executed, tmp_path) == []


def test_a_cell_that_says_how_fast_a_machine_is_names_itself():
    published, executed = notebook("faster in every round"), notebook("slower in every round")
    assert other_cells(published, executed, Path("/somewhere")) == ["shown"]
    published.cells[0].metadata["tags"] = [stale.TAG]
    assert other_cells(published, executed, Path("/somewhere")) == []
