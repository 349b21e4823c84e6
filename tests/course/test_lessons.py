"""The table of lessons: in order, linked only to what is written, found by number, slug or name."""

import re

import pytest

from tinytx_course import results
from tinytx_course.lessons import (
    COURSES,
    LESSONS,
    course_table,
    lesson_table,
    pick_lessons,
    project_root,
)

SECOND = LESSONS[7]


@pytest.fixture
def two_lessons(tmp_path):
    (tmp_path / "notebooks" / "src").mkdir(parents=True)
    for lesson in (LESSONS[0], SECOND):
        (tmp_path / "notebooks" / "src" / f"{lesson.name}.py").write_text("# %%\n1 + 1\n")
    return tmp_path


def test_the_table_links_what_is_written_and_nothing_else(two_lessons):
    table = lesson_table("notebooks/", two_lessons)
    links = re.findall(r"\(([^)]+)\)", table)
    assert links == [f"notebooks/{lesson.name}.ipynb" for lesson in (LESSONS[0], SECOND)]
    assert all(lesson.question in table for lesson in LESSONS)


def test_each_lesson_is_in_one_of_the_short_courses_in_order():
    table = course_table("notebooks/")
    links = re.findall(r"\(notebooks/([^)]+)\.ipynb\)", table)
    assert links == [lesson.name for lesson in LESSONS] and all(name in table for _, name, _ in COURSES)
    hours = re.findall(r"\| (\d+) h \| (\d+) h \|$", table, re.M)
    assert len(hours) == len(COURSES) and all(0 < int(core) <= int(whole) for core, whole in hours)


def test_installed_without_notebooks_the_table_has_the_same_times_and_no_links(monkeypatch, root, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "lessons.json").write_bytes((root / "results" / "lessons.json").read_bytes())
    expected = re.sub(r"\[(.+?)\]\(.+?\)", r"\1", lesson_table(root=root))
    monkeypatch.setattr(results, "FOLDERS", (tmp_path / "none", tmp_path / "data"))
    monkeypatch.setattr("tinytx_course.lessons.__file__", str(tmp_path / "a" / "b" / "lessons.py"))
    assert lesson_table() == expected and expected.count(" to run |") == len(LESSONS)


@pytest.mark.parametrize("word", ["7", "07", SECOND.slug, SECOND.name, f"{SECOND.name}.ipynb"])
def test_a_lesson_is_found_by_any_of_its_names(two_lessons, word):
    assert pick_lessons([word], two_lessons) == (SECOND,)


def test_lessons_come_in_order_and_once(two_lessons):
    assert pick_lessons(["7", "0", SECOND.slug], two_lessons) == (LESSONS[0], SECOND)
    assert pick_lessons([], two_lessons) == (LESSONS[0], SECOND)


@pytest.mark.parametrize("word", ["8", LESSONS[8].slug, "-1", "x.py"])
def test_an_unknown_lesson_is_named_with_those_there_are(two_lessons, word):
    with pytest.raises(ValueError, match=f"00, 07, got '{word}'"):
        pick_lessons([word], two_lessons)


def test_a_package_without_notebooks_has_no_project_root(monkeypatch, tmp_path):
    monkeypatch.setattr("tinytx_course.lessons.__file__", str(tmp_path / "a" / "b" / "lessons.py"))
    with pytest.raises(ValueError, match="checkout"):
        project_root()
