"""Texts of other code are found, whatever may vary between two runs of the same code is not."""

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from tinytx_course.building.stale import other_cells, stale_cells
from tinytx_course.machine import this_machine
from tinytx_course.results import Results

MACHINE = replace(this_machine(), cores=2, gpu=None)


def notebook(text, kind="text/plain"):
    output = new_output("display_data", data={kind: text})
    return new_notebook(cells=[new_code_cell("show()", id="shown", outputs=[output])])


SPEEDS = (
    "0.8 to 1.25 times as long",
    "more than 1.25 times as long",
    "with the cache",
    "both within 10 %",
    "within a tenth",
    "larger by more than a tenth",
)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("loss 2.31 after 1,000 steps", "loss -0.9 after 20 steps"),
        ("| 12 | 3.0e-4 |\n|----|--------|", "|  3 | 1 |\n|--|---|"),
        ("<object at 0x7f30827ef6c0>", "<object at 0x55d0c32b1b80>"),
        ('{"float32":"AACAPw=="}', '{"float32":"AAAAAAAA"}'),
        ("<img src='data:image/png;base64,iVBORw0KGgo='>", "<img src='data:image/png;base64,AAAA'>"),
        ("2 threads, bfloat16  fast, in bf16", "1 thread, bfloat16  works, slowly, in float32"),
        ("1.1 times as fast: faster in every round", "0.9 times as fast: slower in every round"),
        ("no difference that all rounds share", "faster in every round"),
        (
            str(MACHINE),
            str(replace(MACHINE, system="Windows", cpu="Core i5", cores=1, memory_gib=None, gpu="A5")),
        ),
        ('{"answer":"slower","choice":""}', '{"answer":"about as fast","choice":""}'),
        (
            "Result of 13.4. Answer: “faster”. It takes 2 ms.",
            "Result of 13.4. Answer: “slower”. It takes 9 ms.",
        ),
        ("Result of 13.4. Answer: “faster”.", "Result of 13.4. Answer: “0.9 to 1.1 times as fast”."),
        *itertools.pairwise(f"Result of 13.1. Answer: “{speed}”." for speed in SPEEDS),
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
        ("one line", "one line\nand another"),
    ],
)
def test_one_word_of_other_code_is_found_where_the_budget_changes_nothing(tmp_path, before, after):
    published, executed, store = notebook(before), notebook(after), Results("varying", tmp_path / "results")
    assert stale_cells("lesson", published, executed, tmp_path) == []  # never published by this version
    store.put("lesson", {"cells": []})
    assert stale_cells("lesson", published, executed, tmp_path) == ["show()"]
    assert stale_cells("lesson", published, new_notebook(), tmp_path) == ["show()"]
    store.put("lesson", {"cells": ["shown"]})
    assert stale_cells("lesson", published, executed, tmp_path) == []
