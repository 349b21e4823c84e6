"""Notebooks as they are handed in: old ones, foreign ones, and files that are none."""

import json

import pytest

from tinytx_course.grading import submission
from tinytx_course.grading.submission import read_submission


def write(tmp_path, content, name="alice.ipynb"):
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def cell(source, kind="code"):
    return {"cell_type": kind, "source": source}


def test_code_is_read_whether_it_is_a_text_or_lines_and_the_lesson_from_the_title(tmp_path):
    cells = [cell("# 03 · Positions\n", "markdown"), cell("x = 1"), cell(["y = 2\n", "z = 3"])]
    found = read_submission(write(tmp_path, {"cells": cells}))
    assert found.cells == ("x = 1", "y = 2\nz = 3") and found.lesson == 3


@pytest.mark.parametrize("title", ["No number", "# 21 · Homework"])
@pytest.mark.parametrize(
    ("name", "lesson"), [("08_pretraining.ipynb", 8), ("alice.ipynb", None), ("22_ben.ipynb", None)]
)
def test_without_a_title_that_names_a_lesson_it_is_that_of_the_file_name(tmp_path, title, name, lesson):
    cells = [cell(title, "markdown"), cell("x = 1")]
    assert read_submission(write(tmp_path, {"cells": cells}, name)).lesson == lesson


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "must be a Jupyter notebook, got an empty file"),
        ("def f(): pass", "must be a Jupyter notebook, got another file .Expecting value"),
        ('{"cells": [', "must be a Jupyter notebook"),
        ("[" * 100_000, "must be a Jupyter notebook"),
        ("[1]", "got JSON without cells"),
        ('{"cells": 1}', "no code cell"),
        ('{"cells": [1, {"cell_type": "code", "source": 7}, {"source": [1]}]}', "no code cell"),
        ('{"cells": [{"cell_type": "markdown", "source": "x"}]}', "no code cell"),
        ('{"cells": [{"cell_type": "code", "source": " "}]}', "no code cell"),
    ],
)
def test_what_is_no_notebook_is_said_to_be_none(tmp_path, content, complaint):
    with pytest.raises(ValueError, match=f"alice.ipynb .*{complaint}"):
        read_submission(write(tmp_path, content))


def test_a_copy_with_more_code_than_anybody_writes_is_refused(tmp_path):
    fits = write(tmp_path, {"cells": [cell("x" * 150_000), cell("y" * 150_000), cell("z" * 9, "markdown")]})
    assert len(read_submission(fits).cells) == 2
    with pytest.raises(ValueError, match="300,000 letters of code, got 300,001"):
        read_submission(write(tmp_path, {"cells": [cell("x" * 150_000), cell("y" * 150_001)]}))


def test_outputs_of_25_megabytes_and_a_byte_order_mark_are_no_fault(tmp_path, monkeypatch):
    plotted = cell("x = 1") | {"outputs": [{"data": {"image/png": "A" * 25_000_000}}]}
    path = write(tmp_path, "\ufeff" + json.dumps({"cells": [plotted]}))
    assert read_submission(path).cells == ("x = 1",)
    monkeypatch.setattr(submission, "LARGEST_COPY", 25_000_000)
    with pytest.raises(ValueError, match="smaller than 25,000,000 bytes, .*alice.ipynb: .*clear its outputs"):
        read_submission(path)


def test_a_link_to_a_copy_is_no_copy(tmp_path):
    (tmp_path / "mine.ipynb").symlink_to(write(tmp_path, {"cells": [cell("x = 1")]}))
    with pytest.raises(ValueError, match="mine.ipynb must be a file of its own, got a link"):
        read_submission(tmp_path / "mine.ipynb")


def test_bytes_that_are_no_text_and_files_that_are_not_there(tmp_path):
    (tmp_path / "bad.ipynb").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="bad.ipynb must be a Jupyter notebook"):
        read_submission(tmp_path / "bad.ipynb")
    with pytest.raises(FileNotFoundError, match="must be a file"):
        read_submission(tmp_path / "none.ipynb")
