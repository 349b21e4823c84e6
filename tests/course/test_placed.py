"""Exercises and quizzes stand in the lessons they belong to, and pointers to sections lead somewhere."""

import ast
import re
from collections import Counter
from functools import cache

import pytest

pytest.importorskip("jupytext")

import jupytext

from tinytx_course.building.editions import check_calls, has_solution
from tinytx_course.exercises.checking import EXERCISES
from tinytx_course.exercises.telling import where_to_read
from tinytx_course.lessons import LESSONS, project_root, written_lessons
from tinytx_course.quizzes import QUIZZES

WRITTEN = written_lessons(project_root())
WITH_QUIZ = [lesson for lesson in WRITTEN if lesson.slug in QUIZZES]
PLACED = [exercise for exercise in EXERCISES.values() if LESSONS[exercise.lesson] in WRITTEN]
POINTER = re.compile(r'Where to read: lesson (\d\d), section "(.+)"\.')


@cache
def cells_of(root, lesson):
    text = (root / "notebooks" / "src" / f"{lesson.name}.py").read_text(encoding="utf-8")
    return jupytext.reads(text, fmt="py:percent").cells


def headings_of(root, lesson):
    """Return the headings of a lesson, in order."""
    texts = [cell.source for cell in cells_of(root, lesson) if cell.cell_type == "markdown"]
    return re.findall(r"^#{1,4} (.+)$", "\n".join(texts), re.M)


def place_of(cells, beginning):
    """Return the index of the one cell in which a line begins so."""
    (place,) = [i for i, cell in enumerate(cells) if re.search(f"^{beginning}", cell.source, re.M)]
    return place


@pytest.mark.parametrize("exercise", PLACED, ids=lambda exercise: exercise.name)
def test_every_exercise_of_a_written_lesson_stands_there_once_and_nowhere_else(root, exercise):
    found = []
    for lesson in WRITTEN:
        cells = cells_of(root, lesson)
        for place, cell in enumerate(cells):
            if cell.cell_type != "code" or "course.check(" not in cell.source:
                continue
            names = [call.name for call in check_calls(ast.parse(cell.source))]
            if exercise.name in names:
                found.append((lesson.number, has_solution(cells[place - 1].source)))
    assert found == [(exercise.lesson, True)]


@pytest.mark.parametrize("lesson", WITH_QUIZ, ids=lambda lesson: lesson.slug)
def test_every_quiz_is_asked_once_before_the_exercises_and_the_summary(root, lesson):
    cells = cells_of(root, lesson)
    asked = [i for i, cell in enumerate(cells) if cell.cell_type == "code" and "course.quiz(" in cell.source]
    assert [cells[i].source for i in asked] == [f'course.quiz("{lesson.slug}")']
    (quiz,) = asked
    assert cells[quiz - 1].source.startswith("## Questions\n")
    assert place_of(cells, "## What this does not show") < quiz < place_of(cells, "## Summary")
    solutions = [i for i, cell in enumerate(cells) if cell.cell_type == "code" and has_solution(cell.source)]
    assert all(quiz < place for place in solutions)
    if solutions:
        assert quiz < place_of(cells, "## Exercises") < min(solutions)
        assert max(solutions) < place_of(cells, "## Summary")


def test_exercises_of_a_lesson_say_what_they_train(root):
    for lesson in WRITTEN:
        cells = cells_of(root, lesson)
        for place, cell in enumerate(cells):
            if cell.cell_type == "code" and has_solution(cell.source):
                assert cells[place - 1].source.count("*It trains* ") == 1, (lesson.name, cell.source)


@pytest.mark.parametrize("exercise", PLACED, ids=lambda exercise: exercise.name)
def test_where_to_read_leads_to_a_heading_of_a_written_lesson(root, exercise):
    said = {where_to_read(exercise), *(where_to_read(exercise, mistake) for mistake in exercise.mistakes)}
    for pointer in said:
        read = POINTER.fullmatch(pointer)
        assert read, pointer
        lesson = LESSONS[int(read[1])]
        assert lesson in WRITTEN, pointer
        assert Counter(headings_of(root, lesson))[read[2]] == 1, pointer
