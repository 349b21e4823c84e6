"""The solved edition runs from top to bottom without a network, and every check of it is green."""

import ast
import re
from pathlib import Path

import nbformat
import pytest

pytest.importorskip("nbval")
pytest.importorskip("jupytext")

from tinytx_course.building.editions import check_calls, checks_in
from tinytx_course.building.notebooks import build_notebook
from tinytx_course.exercises.checking import EXERCISES
from tinytx_course.grading.planning import make_plan
from tinytx_course.lessons import written_lessons

pytestmark = pytest.mark.notebook
ROOT = Path(__file__).resolve().parents[2]
#: The learner's edition of each is what is published; `test_run_offline.py` runs it as it is.
LESSONS = [
    lesson
    for lesson in written_lessons(ROOT)
    if "course.check(" in (ROOT / "notebooks" / "src" / f"{lesson.name}.py").read_text(encoding="utf-8")
]


#: Laptop seconds up to which a solved notebook is run whole. In longer ones the cells that no exercise reads
#: are left out: the learner's edition has the very same ones, and tests/course/test_editions.py proves that
#: none of them reads what an exercise defines.
WHOLE = 20


def solved_with_assertions(lesson):
    """Build the solved edition, with a cell after each check that fails if the check does not pass."""
    notebook = build_notebook(lesson, ROOT, solved=True)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    plan = make_plan([cell.source for cell in code], list(EXERCISES), [])
    needs = [statement.cell for found in plan.attempts.values() for one in found for statement in one.needs]
    wanted = {code[number - 1].id for number in needs}
    cells = []
    for cell in code:
        checked = "course.check(" in cell.source and checks_in(cell.source)
        set_up = "import tinytx as tx" in cell.source  # a check needs it, even if no exercise does
        if checked or set_up or cell.id in wanted or lesson.seconds <= WHOLE:
            cells.append(cell)
        for call in check_calls(ast.parse(cell.source)) if checked else []:
            asked = f"course.check({call.name!r}, {ast.unparse(call.function)}, display=False)"
            cells.append(nbformat.v4.new_code_cell(f"assert {asked}.passed, {asked}"))
    notebook.cells = cells
    return notebook


def test_there_are_lessons_with_exercises():
    assert LESSONS


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)
def test_solved_edition_runs_offline_and_every_check_passes(lesson, offline, tmp_path):
    notebook = solved_with_assertions(lesson)
    n_code = sum(cell.cell_type == "code" for cell in notebook.cells)
    assert n_code > sum(cell.source.startswith("assert course.check(") for cell in notebook.cells) > 0
    path = tmp_path / f"{lesson.name}.ipynb"
    nbformat.write(notebook, path)
    finished = offline.nbval(path)
    told = re.search(r"(\d+) passed", finished.stdout)
    assert finished.returncode == 0, finished.stdout[-6000:] + finished.stderr[-2000:]
    assert told and int(told[1]) == n_code
