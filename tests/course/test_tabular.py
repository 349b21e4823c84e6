"""Printed text on pages: aligned columns are tables, all else stays as it was, and nothing is lost."""

import html
import re
from pathlib import Path

import nbformat
import pytest

from tinytx_course.building.notebooks import joined_streams
from tinytx_course.site.tabular import printed

ROOT = Path(__file__).resolve().parents[2]
HEADS_CROSS_COLUMNS = "loss        words   of them new\nfirst  0.25     3   1\nsecond   0.50   4   2"


def rows_of(found):
    return [
        [html.unescape(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)]
        for row in re.findall(r"<tr>(.*?)</tr>", found)
    ]


def test_columns_with_names_are_a_table_with_heads_and_values_at_the_right():
    found = printed("tokens   loss   kept\n     1   0.50   a few\n 1,000  -0.25   all < 3\n\ndone: 3")
    assert rows_of(found) == [
        ["tokens", "loss", "kept"],
        ["1", "0.50", "a few"],
        ["1,000", "-0.25", "all < 3"],
    ]
    assert re.findall(r'<th scope="col"( class="n")?>', found) == [' class="n"', ' class="n"', ""]
    assert found.endswith("\n<pre>done: 3</pre>")


def test_rows_with_names_need_no_head_and_an_empty_corner_is_no_heading():
    bare = printed("one head   0.50   0.25\ntwo heads  0.75   0.50\nfour       1.00   0.75")
    assert "<thead>" not in bare and bare.count('<th scope="row">') == 3
    corner = printed("        loss   steps\nfirst   0.25      10\nsecond  0.50      20")
    assert "<thead><tr><td></td>" in corner


@pytest.mark.parametrize(
    "text",
    [
        "loss 0.5\nloss 0.4\nloss 0.3",
        " 1.00   0.50   0.25\n 0.50   0.25   1.00\n 0.25   1.00   0.50",  # a matrix
        "one      2   3\ntwo      4   5",  # too few rows
        "a part   ███   30 %\nanother  █     10 %\na third  ██    20 %",
        "noun   390 seen, loss 1,   30 %\nverb    91 seen, loss 2,   26 %\nmark     9 seen, loss 3,   3 %",
        "def f(x):\n    y    = x   # as it is\n    zeta = y   # again\n    out  = z   # and out",
        HEADS_CROSS_COLUMNS,
    ],
)
def test_what_is_no_table_stays_as_it_was_printed(text):
    assert printed(text) == f"<pre>{html.escape(text)}</pre>"


def test_nothing_that_a_lesson_printed_is_lost_and_most_of_its_columns_are_tables():
    n_tables = n_left = 0
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for cell in nbformat.read(path, 4).cells:
            for output in joined_streams(cell.get("outputs", [])):
                text = output.get("text", "")
                found = printed(text)
                words = html.unescape(re.sub("<[^>]+>", " ", found))
                no_rules = r"(?m)^\s*[-─=]{3,}\s*$|\s+"
                assert re.sub(no_rules, "", words) == re.sub(no_rules, "", text)
                n_tables += found.count("<table")
                n_left += "<table" not in found and len(re.findall(r"\S {2,}\S.* {2,}\S", text)) > 2
    assert n_tables > 50 and n_left < n_tables
