"""Teacher's notes: they follow their notebook section by section, and the wrong ideas in them exist."""

import re
from functools import cache

import pytest

from tests.solutions import SOLUTIONS
from tinytx_course.building.statements import statements
from tinytx_course.exercises.checking import EXERCISES
from tinytx_course.lessons import project_root, written_lessons
from tinytx_course.museum import FAULTS
from tinytx_course.quizzes.bank import questions

NOTEBOOKS = project_root() / "notebooks"
WRITTEN = {lesson.name: lesson for lesson in written_lessons(project_root())}
NOTES = sorted(path.stem for path in (NOTEBOOKS / "teaching").glob("*.md"))
BY_THEMSELVES = {"Set-up", "Questions", "Exercises", "Summary"}  # sections that need no notes
ABOUT_ALL = ["The question that wakes the room", "Wrong ideas", "Where people get stuck", "When late"]
each_note = pytest.mark.parametrize("name", NOTES)


def parts(text, level):
    """Text by heading of this level, in order."""
    found = re.split(rf"^{'#' * level} (.+)\n", text, flags=re.M)[1:]
    return dict(zip(found[::2], found[1::2], strict=True))


@cache
def sections(name, level):
    return parts((NOTEBOOKS / "teaching" / f"{name}.md").read_text(encoding="utf-8"), level)


def of_teaching(name):
    return parts(sections(name, 2)["Teaching"], 3)


def points(text):
    return re.findall(r"^- (.+)", text, flags=re.M)


@cache
def source_of(name):
    return (NOTEBOOKS / "src" / f"{name}.py").read_text(encoding="utf-8")


def names_of_wrong_ideas(name):
    known = {f"{one.exercise}/{one.slug}" for one in SOLUTIONS if one.slug}
    known |= {f"{one.name}/{mistake.slug}" for one in EXERCISES.values() for mistake in one.mistakes}
    known |= {f"quiz/{question.key}" for question in questions(WRITTEN[name])}
    return known | {f"museum/{fault}" for fault in FAULTS}


def test_every_lesson_has_its_notes():
    assert set(NOTES) == WRITTEN.keys()


@each_note
def test_the_sections_are_those_of_the_notebook_in_its_order(name):
    headings = re.findall(r"^# ## (.+)", source_of(name), flags=re.M)
    wanted = [one for one in headings if one not in BY_THEMSELVES and not one.startswith("Further:")]
    assert [*sections(name, 2)] == [*wanted, "Teaching"]


@each_note
def test_each_section_has_a_drawing_and_two_talking_points(name):
    for heading, text in sections(name, 2).items():
        if heading != "Teaching":
            assert len(re.findall(r"^\*\*Board:\*\* .", text, flags=re.M)) == 1, heading
            assert len(points(text)) == 2, heading


@each_note
def test_the_head_names_the_lesson_its_aim_and_what_to_run(name):
    (title,) = sections(name, 1)
    assert f"\n# # {title}\n" in source_of(name)
    head = sections(name, 1)[title].split("\n## ")[0]
    assert [point.split(":**")[0] for point in points(head)] == ["**Aim", "**Run before"]


@each_note
def test_three_wrong_ideas_are_answered_and_each_is_one_that_the_course_meets(name):
    assert [*of_teaching(name)] == ABOUT_ALL
    ideas = points(of_teaching(name)["Wrong ideas"])
    assert len(ideas) == 3 and all(" Answer: " in idea for idea in ideas)
    named = [re.match(r"`([a-z0-9_]+/[a-z0-9_+-]+)`: ", idea) for idea in ideas]
    assert {found.group(1) for found in named} <= names_of_wrong_ideas(name)


@each_note
def test_a_shortened_lesson_names_sections_of_the_notebook_or_of_its_exercises(name):
    cuts = points(of_teaching(name)["When late"])
    assert [cut.split(":**")[0] for cut in cuts] == ["**45 minutes", "**90 minutes"]
    known = re.findall(r"^# (?:##+ (?:Exercise: )?)(.+)", source_of(name), flags=re.M)
    known += [
        statement.title for statement in statements().values() if name.startswith(f"{statement.lesson:02d}")
    ]
    for cut in cuts:
        for part in re.findall(r"\*([^*]+)\*", cut.split(":**")[1]):
            assert any(heading.startswith(part) or part in heading for heading in known), part
