"""Teacher's notes: they follow their notebook section by section, and the wrong ideas in them exist."""

import re

import pytest

from tests.solutions import SOLUTIONS
from tinytx_course.building.statements import statements
from tinytx_course.exercises.checking import EXERCISES
from tinytx_course.kit.teaching import read_teaching
from tinytx_course.lessons import LESSONS
from tinytx_course.museum import FAULTS
from tinytx_course.quizzes.bank import questions

BY_THEMSELVES = {"Set-up", "Questions", "Exercises", "Summary"}  # sections that need no notes
ABOUT_ALL = ["The question that wakes the room", "Wrong ideas", "Where people get stuck", "When late"]


@pytest.fixture
def notes(root, lesson):
    return read_teaching(lesson, root)


@pytest.fixture
def source(root, lesson):
    return (root / "notebooks" / "src" / f"{lesson.name}.py").read_text(encoding="utf-8")


def points(text):
    return re.findall(r"^- (.+)", text, flags=re.M)


def names_of_wrong_ideas(lesson):
    known = {f"{one.exercise}/{one.slug}" for one in SOLUTIONS if one.slug}
    known |= {f"{one.name}/{mistake.slug}" for one in EXERCISES.values() for mistake in one.mistakes}
    known |= {f"quiz/{question.key}" for question in questions(lesson)}
    return known | {f"museum/{fault}" for fault in FAULTS}


def test_every_lesson_has_its_notes_under_its_title_with_one_drawing_a_section(root):
    files = sorted((root / "notebooks" / "teaching").glob("*.md"))
    assert [file.stem for file in files] == [lesson.name for lesson in LESSONS]
    for lesson, text in zip(LESSONS, (file.read_text("utf-8") for file in files), strict=True):
        assert text.startswith(f"# {lesson.number:02d} · {lesson.title}\n")
        assert text.count("\n**Board:** ") == text.count("\n## ") - 1  # the last is about all


def test_the_sections_are_those_of_the_notebook_each_with_two_talking_points(notes, source):
    headings = re.findall(r"^# ## (.+)", source, flags=re.M)
    wanted = [one for one in headings if one not in BY_THEMSELVES and not one.startswith("Further:")]
    assert [*notes.sections] == wanted
    assert {len(section.points) for section in notes.sections.values()} == {2}


def test_three_wrong_ideas_are_answered_and_each_is_one_that_the_course_meets(notes, lesson):
    assert [*notes.about_all] == ABOUT_ALL
    ideas = points(notes.about_all["Wrong ideas"])
    assert len(ideas) == 3 and all(" Answer: " in idea for idea in ideas)
    named = [re.match(r"`([a-z0-9_]+/[a-z0-9_+-]+)`: ", idea) for idea in ideas]
    assert {found.group(1) for found in named} <= names_of_wrong_ideas(lesson)


def test_a_shortened_lesson_names_sections_of_the_notebook_or_of_its_exercises(notes, source, lesson):
    cuts = points(notes.about_all["When late"])
    assert [cut.split(":**")[0] for cut in cuts] == ["**45 minutes", "**90 minutes"]
    known = re.findall(r"^# (?:##+ (?:Exercise: )?)(.+)", source, flags=re.M)
    known += [one.title for one in statements().values() if one.lesson == lesson.number]
    for cut in cuts:
        for part in re.findall(r"\*([^*]+)\*", cut.split(":**")[1]):
            assert any(part in heading for heading in known), part
