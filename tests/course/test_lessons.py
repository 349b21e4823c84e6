"""The table of lessons: in order, linked only to what is written, found by number, slug or name."""

import re

import pytest

from tinytx_course.lessons import LESSONS, lesson_table, pick_lessons, project_root, written_lessons


@pytest.fixture
def two_lessons(tmp_path):
    (tmp_path / "notebooks" / "src").mkdir(parents=True)
    for name in ("00_start_here", "07_pretraining"):
        (tmp_path / "notebooks" / "src" / f"{name}.py").write_text("# %%\n1 + 1\n")
    return tmp_path


def test_lessons_are_numbered_from_zero_without_gaps():
    assert [lesson.number for lesson in LESSONS] == list(range(len(LESSONS)))
    assert len({lesson.slug for lesson in LESSONS}) == len(LESSONS)


def test_every_source_is_a_lesson_of_the_table(root):
    names = {path.stem for path in (root / "notebooks" / "src").glob("*.py")}
    assert names == {lesson.name for lesson in written_lessons(root)}


def test_the_table_links_what_is_written_and_nothing_else(two_lessons):
    table = lesson_table("notebooks/", two_lessons)
    assert re.findall(r"\(([^)]+)\)", table) == [
        "notebooks/00_start_here.ipynb",
        "notebooks/07_pretraining.ipynb",
    ]
    assert table.count("in preparation") == len(LESSONS) - 2
    assert all(lesson.question in table for lesson in LESSONS)


@pytest.mark.parametrize("word", ["7", "07", "pretraining", "07_pretraining", "07_pretraining.ipynb"])
def test_a_lesson_is_found_by_any_of_its_names(two_lessons, word):
    assert [lesson.number for lesson in pick_lessons([word], two_lessons)] == [7]


def test_lessons_come_in_order_and_once(two_lessons):
    assert [lesson.number for lesson in pick_lessons(["7", "start_here", "pretraining"], two_lessons)] == [
        0,
        7,
    ]
    assert [lesson.number for lesson in pick_lessons([], two_lessons)] == [0, 7]


@pytest.mark.parametrize("word", ["8", "transfer", "-1", "x.py"])
def test_an_unknown_lesson_is_named_with_those_there_are(two_lessons, word):
    with pytest.raises(ValueError, match=f"one of 00, 07, got '{word}'"):
        pick_lessons([word], two_lessons)


def test_a_package_without_notebooks_says_what_is_missing(monkeypatch, tmp_path):
    monkeypatch.setattr("tinytx_course.lessons.__file__", str(tmp_path / "a" / "b" / "lessons.py"))
    with pytest.raises(ValueError, match="needs a checkout"):
        project_root()
