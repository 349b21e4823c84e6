"""The line, the row and the table that grades make."""

import csv
import io

import pytest

from tinytx_course.grading.grade import Report
from tinytx_course.grading.grades import (
    CopyGrades,
    Grade,
    as_csv,
    commonest_mistakes,
    mistakes_table,
    printable,
)


def failed(exercise, mistake, message="It differs.\nMore."):
    return Grade(exercise=exercise, status="failed", mistake=mistake, message=message)


def passed(exercise):
    return Grade(exercise=exercise, status="passed")


COPIES = (
    CopyGrades(name="a.ipynb", grades=(failed("causal_mask", "transposed"), passed("padding_mask"))),
    CopyGrades(name="b.ipynb", grades=(failed("causal_mask", "transposed"), failed("attention", None))),
    CopyGrades(name="c.ipynb", grades=(Grade(exercise="causal_mask", status="not attempted"),)),
    CopyGrades(name="=cmd()", problem="c must be a Jupyter notebook, got an empty file"),
)


@pytest.mark.parametrize(
    "wrong",
    [
        {"exercise": "nothing-of-ours"},
        {"exercise": ["causal_mask"]},
        {"status": "excellent"},
        {"status": {}},
        {"mistake": ["x"]},
        {"mistake": "\x1b[2Jx"},
        {"message": 5},
        {"message": "\ud800"},
        {"finding": None},
    ],
)
def test_a_grade_takes_only_what_a_report_can_hold(wrong):
    with pytest.raises(ValueError):
        Grade(**{"exercise": "causal_mask", "status": "failed", "mistake": "transposed", **wrong})


def test_the_commonest_mistake_comes_first_with_its_explanation():
    rows = commonest_mistakes(COPIES)
    assert [(row["exercise"], row["mistake"], row["copies"]) for row in rows] == [
        ("causal_mask", "transposed", 2),
        ("attention", "not recognised", 1),
    ]
    assert "Rows and columns are exchanged" in rows[0]["explanation"]
    lines = mistakes_table(COPIES).splitlines()
    assert lines[0].split()[:3] == ["copies", "exercise", "mistake"] and lines[1].split()[0] == "2"
    assert mistakes_table(COPIES[2:]) == "no mistakes"


def test_a_row_a_copy_a_column_an_exercise_and_no_formulas():
    rows = list(csv.DictReader(io.StringIO(as_csv(COPIES))))
    assert list(rows[0]) == ["copy", "passed", "of", "problem", "causal_mask", "padding_mask", "attention"]
    assert rows[0]["causal_mask"] == "transposed" and rows[0]["padding_mask"] == "passed"
    assert rows[1]["attention"] == "failed" and rows[1]["padding_mask"] == ""
    assert rows[2]["causal_mask"] == "not attempted" and (rows[0]["passed"], rows[0]["of"]) == ("1", "2")
    assert rows[3]["copy"] == "'=cmd()" and "empty file" in rows[3]["problem"]


def test_one_line_an_exercise_whatever_the_message_holds():
    message = "First \x1b[31mline\r\nSecond line"
    copy = CopyGrades(name="x", grades=(failed("attention", "unscaled", message), passed("perplexity")))
    lines = str(copy).splitlines()
    assert lines[0].split(None, 1) == ["attention", "failed (unscaled): First [31mline"]
    assert lines[1].split() == ["perplexity", "passed"] and lines[2] == "1 of 2 passed"
    assert copy.to_dict()["exercises"][0]["message"] == message
    assert printable("a\x07\u202eb\tc") == "a b c"


def test_a_line_names_the_mistake_where_it_is_known_and_is_cut_between_words():
    known = Grade(
        exercise="attention",
        status="failed",
        mistake="unscaled",
        message="Expected: ...",
        finding="The scores are not scaled.",
    )
    assert str(known).endswith("failed (unscaled): The scores are not scaled.")
    line = str(failed("attention", None, "Expected: " + "words " * 100))
    assert line.endswith(" words …") and len(line) < 240


def test_a_report_shows_a_line_a_copy_then_the_mistakes(tmp_path):
    lines = str(Report(copies=COPIES, csv=tmp_path / "g.csv")).splitlines()
    assert lines[0].split()[:4] == ["a.ipynb", "1", "of", "2"] and "causal_mask: transposed" in lines[0]
    assert "not graded" in lines[3] and lines[-1].endswith("g.csv")
