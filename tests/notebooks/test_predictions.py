"""Every prediction of the course: its own number, resolved within two code cells, with an output."""

import ast
import functools
from collections import Counter
from pathlib import Path

import jupytext
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_output

from tinytx_course.lessons import LESSONS, written_lessons

ROOT = Path(__file__).resolve().parents[2]
WRITTEN = written_lessons(ROOT)
WITHIN = 2  # code cells after the prediction
FEWEST = 2  # in a lesson that has any
each_lesson = pytest.mark.parametrize("lesson", WRITTEN, ids=lambda lesson: lesson.slug)


@functools.cache
def sources(lesson):
    path = ROOT / "notebooks" / "src" / f"{lesson.name}.py"
    if not path.is_file():  # a release of the course holds notebooks alone
        path = ROOT / "notebooks" / f"{lesson.name}.ipynb"
    cells = jupytext.read(path).cells
    return [cell.source for cell in cells if cell.cell_type == "code"]


def calls(source, name):
    """Return the calls of ``course.<name>`` in a cell."""
    nodes = ast.walk(ast.parse(source)) if f"course.{name}(" in source else ()
    return [
        node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) == f"course.{name}"
    ]


def last_call(source, name):
    """Return the call of ``course.<name>`` whose value a cell shows, its last line."""
    last = ast.parse(source).body[-1]
    shown = isinstance(last, ast.Expr) and ast.unparse(last.value).startswith(f"course.{name}(")
    return last.value if shown and not source.rstrip().endswith(";") else None


def number_of(call):
    """Return the number that a call names, if it is written out."""
    first = call.args[0] if call.args else None
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None


def complaints(lesson, cells):
    """Return what is wrong with the predictions in the code cells of a lesson."""
    asked = [(i, number_of(call)) for i, cell in enumerate(cells) for call in calls(cell, "predict")]
    resolved = [(i, number_of(call)) for i, cell in enumerate(cells) for call in calls(cell, "resolve")]
    found = []
    for name, pairs in (("predict", asked), ("resolve", resolved)):
        found += [
            f"{number}: {name} must end its cell" for i, number in pairs if not last_call(cells[i], name)
        ]
        twice = [number for number, times in Counter(number for _, number in pairs).items() if times > 1]
        found += [f"{number}: {name} is called twice" for number in twice]
    wanted = [f"{lesson.number:02d}.{i + 1}" for i in range(len(asked))]
    if [number for _, number in asked] != wanted:
        found.append(f"predictions must be numbered {wanted}, got {[number for _, number in asked]}")
    if 0 < len(asked) < FEWEST:
        found.append(f"a lesson with predictions has at least {FEWEST}, got {len(asked)}")
    places = {number: i for i, number in resolved}
    for i, number in asked:
        if not 1 <= places.get(number, i) - i <= WITHIN:
            found.append(f"{number}: not resolved within {WITHIN} code cells")
    unasked = places.keys() - {number for _, number in asked}
    return [*found, *(f"{number}: resolved and never asked" for number in unasked)]


def unshown(cells):
    """Return the predictions and outcomes that executed cells do not show."""
    found = []
    for cell in cells:
        for name, begin in (("predict", "Predict"), ("resolve", "Result of")):
            call = last_call(cell.source, name) if calls(cell.source, name) else None
            texts = [output.get("data", {}).get("text/plain", "") for output in cell.outputs]
            if call and not any(text.startswith(f"{begin} {number_of(call)}.") for text in texts):
                found.append(f"{number_of(call)}: {name} shows nothing")
    return found


@each_lesson
def test_predictions_are_numbered_and_resolved(lesson):
    assert complaints(lesson, sources(lesson)) == []


@each_lesson
def test_committed_outputs_show_predictions_without_a_choice(lesson):
    path = ROOT / "notebooks" / f"{lesson.name}.ipynb"
    if not path.is_file():
        pytest.skip("not published yet")
    cells = [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    assert unshown(cells) == []
    outputs = [output.get("data", {}).get("text/plain", "") for cell in cells for output in cell.outputs]
    assert not any(text.startswith("Result of") and " predicted “" in text for text in outputs)


@each_lesson
def test_a_lesson_recalls_those_before_it(lesson):
    found = [call for cell in sources(lesson) for call in calls(cell, "recall")]
    assert len(found) <= 1
    assert [int(number_of(call)) for call in found] == [lesson.number] * len(found)


GOOD = [
    'course.predict("02.1", "?", ["a", "b"])',
    "x = 1",
    'y = x\ncourse.resolve("02.1", "a" if y else "b", f"{y}")',
    'course.predict("02.2", "?", ["a", "b"])',
    'course.resolve("02.2", "b", "So.")',
]


def edited(place, old, new):
    cells = list(GOOD)
    assert old in cells[place]
    cells[place] = cells[place].replace(old, new)
    return cells


@pytest.mark.parametrize(
    ("cells", "complaint"),
    [
        ([*GOOD[:2], "z = 1", *GOOD[2:]], "02.1: not resolved"),
        (GOOD[:2], "02.1: not resolved"),
        (GOOD[:3], "at least 2"),
        (edited(3, "02.2", "02.1"), "02.1: predict is called twice"),
        (edited(3, "02.2", "03.2"), "numbered"),
        (edited(4, "02.2", "02.3"), "02.3: resolved and never asked"),
        ([*GOOD, GOOD[4]], "02.2: resolve is called twice"),
        (edited(2, 'f"{y}")', 'f"{y}")\nprint(y)'), "02.1: resolve must end"),
        (edited(0, '"b"])', '"b"]);'), "02.1: predict must end"),
        ([GOOD[0] + "\n" + GOOD[2], *GOOD[3:]], "02.1: not resolved"),
    ],
)
def test_the_guard_sees_what_is_wrong(cells, complaint):
    lesson = LESSONS[2]
    assert complaints(lesson, GOOD) == complaints(lesson, []) == []
    assert complaints(lesson, ["model.predict(x)", "sklearn.resolve()"]) == []
    assert any(line.startswith(complaint) or complaint in line for line in complaints(lesson, cells))


def test_the_guard_sees_an_outcome_that_is_not_shown():
    def cell(text):
        shown = new_output("execute_result", data={"text/plain": text}, execution_count=1)
        return new_code_cell(GOOD[4], outputs=[shown] if text else [])

    assert unshown([cell("Result of 02.2. So.")]) == []
    for text in ("", "Result of 02.1. So."):
        assert unshown([cell(text)]) == ["02.2: resolve shows nothing"]
