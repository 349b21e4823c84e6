"""Sources of lessons: exercises and quizzes are in their lessons, solutions pass, pointers lead somewhere."""

import ast
import math
import re
from collections import Counter
from functools import cache

import pytest
import torch

import tinytx as tx
import tinytx_course as course
from tinytx_course.building.editions import check_calls, program_of
from tinytx_course.building.notebooks import read_source
from tinytx_course.building.statements import statements, statements_in
from tinytx_course.exercises.checking import EXERCISES, check
from tinytx_course.exercises.telling import where_to_read
from tinytx_course.lessons import LESSONS, project_root

WIDTH = 88  # columns of code that a page shows without scrolling


@cache
def cells_of(lesson):
    return read_source(project_root() / "notebooks" / "src" / f"{lesson.name}.py").cells


def code_of(lesson):
    return [cell for cell in cells_of(lesson) if cell.cell_type == "code"]


def exercises_in(lesson):
    """Return (task, stub, check) for each exercise: the cell with the stub and its neighbours."""
    cells = cells_of(lesson)
    places = [i for i, c in enumerate(cells) if c.cell_type == "code" and program_of(c.source)]
    return [cells[i - 1 : i + 2] for i in places]


def checked(cell):
    return [call.name for call in check_calls(ast.parse(cell.source))]


def test_code_is_not_wider_than_a_page(lesson):
    cells = [program_of(cell.source) or cell.source for cell in code_of(lesson)]
    assert [line for cell in cells for line in cell.splitlines() if len(line) > WIDTH] == []


def test_every_exercise_is_checked_once_in_its_own_lesson_and_nowhere_else():
    found = Counter(
        (name, lesson.number) for lesson in LESSONS for cell in code_of(lesson) for name in checked(cell)
    )
    assert found == Counter((one.name, one.lesson) for one in EXERCISES.values())


def test_every_exercise_has_the_format_of_the_course(lesson):
    found = exercises_in(lesson)
    assert len(found) == sum(one.lesson == lesson.number for one in EXERCISES.values())
    for task, stub, call in found:
        (name,) = checked(call)
        assert [EXERCISES[name].statement] == statements_in(task.source, lesson.number)
        plain = f'course.check("{name}", {name})'
        assert call.source in (plain, f"verdict = {plain}\nverdict")
        assert stub.source == EXERCISES[name].stub


def test_what_exercises_ask_is_in_the_lesson_once_and_trains_one_of_its_outcomes(lesson):
    cells = cells_of(lesson)
    texts = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    n_outcomes = len(re.findall(r"^\d\. ", cells[0].source + cells[1].source, re.M))
    own = [statement for statement in statements().values() if statement.lesson == lesson.number]
    assert Counter(map(str, statements_in(texts, lesson.number))) == Counter(map(str, own))
    for statement in own:
        assert str(statement) in texts and statement.outcome <= n_outcomes
        assert 15 <= len(statement.statement.split()) <= 110, statement.title
        assert all(len(hint.split()) >= 8 for hint in statement.hints), statement.title


def test_its_quiz_is_asked_once_before_the_last_exercises(lesson):
    cells = cells_of(lesson)
    asked = [i for i, c in enumerate(cells) if c.cell_type == "code" and "course.quiz(" in c.source]
    assert [cells[i].source for i in asked] == [f'course.quiz("{lesson.slug}")']
    stubs = [i for i, c in enumerate(cells) if c.cell_type == "code" and program_of(c.source)]
    assert all(quiz < max(stubs) for quiz in asked if stubs)


def names_bound(tree):
    """Return the names that a cell gives a value at its top level."""
    definitions = (ast.FunctionDef, ast.ClassDef)
    bound = {node.name for node in tree.body if isinstance(node, definitions)}
    plain = [node for node in tree.body if not isinstance(node, definitions)]
    names = [name for node in plain for name in ast.walk(node) if isinstance(name, ast.Name)]
    return bound | {name.id for name in names if isinstance(name.ctx, ast.Store)}


def test_no_later_cell_uses_what_an_exercise_defines(lesson):
    """But where the lesson has its own for those whose check has not passed."""
    answers = set()
    for cell in code_of(lesson):
        tree = ast.parse(program_of(cell.source) or cell.source)
        if program_of(cell.source):
            answers |= names_bound(tree)
        elif not checked(cell) and "if not verdict.passed:" not in cell.source:
            names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
            used = {name.id for name in names if isinstance(name.ctx, ast.Load)}
            assert not (answers & used) - names_bound(tree), cell.source
            answers -= names_bound(tree)


def test_solutions_pass_their_own_checks_and_stubs_are_not_attempted(lesson):
    """The cells in which the editions differ, run with the imports of a set-up cell."""
    for _, stub, call in exercises_in(lesson):
        space = {"torch": torch, "nn": torch.nn, "tx": tx, "course": course, "math": math}
        space["F"] = torch.nn.functional
        (name,) = checked(call)
        exec(program_of(stub.source), space)
        verdict = check(name, space[name], display=False)
        assert verdict.passed, verdict
        exec(stub.source, space)
        verdict = check(name, space[name], display=False)
        assert not verdict.passed and not verdict.attempted and verdict.mistake is None


def test_where_to_read_leads_to_one_heading_of_a_written_lesson(exercise):
    for pointer in {where_to_read(exercise), *(where_to_read(exercise, m) for m in exercise.mistakes)}:
        number, heading = re.search(r'lesson (\d\d), section "(.+)"', pointer).groups()
        texts = [c.source for c in cells_of(LESSONS[int(number)]) if c.cell_type == "markdown"]
        headings = re.findall(r"^#{1,4} (.+)$", "\n".join(texts), re.M)
        assert headings.count(heading) == 1, pointer


@pytest.mark.parametrize(
    ("number", "name", "said", "n_lines"),
    [
        (5, "Block", "in 15 lines", range(15, 16)),
        (8, "learn", "in under 20 lines", range(1, 20)),
        (12, "chain_to", "Five lines find it", range(5, 6)),
    ],
)
def test_code_has_as_many_lines_as_the_text_says(number, name, said, n_lines):
    cells, lines = cells_of(LESSONS[number]), []
    assert any(said in cell.source for cell in cells)
    for cell in code_of(LESSONS[number]):
        for node in ast.parse(cell.source).body if f" {name}(" in cell.source else []:
            if getattr(node, "name", "") == name:
                lines += cell.source.splitlines()[node.lineno - 1 : node.end_lineno]
    assert len([line for line in lines if line.strip()]) in n_lines
