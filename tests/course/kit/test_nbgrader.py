"""nbgrader takes the solved edition: an assignment is generated, handed in by two learners and autograded."""

import csv
import json
import os
import sys

import nbformat
import pytest

from tests.environments import Broken, new_environment, run
from tinytx_course.building.notebooks import build_notebook
from tinytx_course.lessons import pick_lessons

ASSIGNMENT = "06_counting_parameters"
WRONG = {"count_gpt2": "def count_gpt2(*sizes, **named):\n    return 7"}
CONFIG = """\
c = get_config()
c.CourseDirectory.course_id = "transformers"
c.ClearSolutions.code_stub = {"python": "..."}
c.Execute.timeout = 300
"""

pytestmark = pytest.mark.proof


@pytest.fixture(scope="module")
def nbgrader(tmp_path_factory):
    """Run a command of nbgrader in a new course; the kernel of its notebooks is this Python."""
    folder = tmp_path_factory.mktemp("nbgrader")
    try:
        python = new_environment(folder / "venv", "nbgrader==0.9.6")
    except Broken as problem:
        pytest.skip(f"nbgrader 0.9.6 cannot be installed here, so nothing was tried: {str(problem)[-300:]}")
    course = folder / "course"
    course.mkdir()
    (course / "nbgrader_config.py").write_text(CONFIG, encoding="utf-8")
    kernel = folder / "jupyter" / "kernels" / "python3"
    kernel.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "Python 3", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"  # nbgrader calls alembic by its name
    ours = {"PATH": path, "JUPYTER_PATH": str(folder / "jupyter")}
    ours |= {"TINYTX_BUDGET": "smoke", "TINYTX_PROGRESS": "none"}

    def command(*words):
        return run(python, "-m", "nbgrader", *words, cwd=course, env=os.environ | ours)

    command.course = course
    return command


def hand_in(course, learner, answers):
    """Write a copy of the released assignment with these functions in place of the stubs."""
    (released,) = (course / "release" / ASSIGNMENT).glob("*.ipynb")
    notebook = nbformat.read(released, 4)
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        cell.source = answers.get(name, cell.source)
    path = course / "submitted" / learner / ASSIGNMENT / released.name
    path.parent.mkdir(parents=True)
    nbformat.write(notebook, path)


def test_an_assignment_is_generated_handed_in_and_autograded(nbgrader, root):
    course = nbgrader.course
    (lesson,) = pick_lessons([ASSIGNMENT], root)
    solved = build_notebook(lesson, root, solved=True)
    (course / "source" / ASSIGNMENT).mkdir(parents=True)
    nbformat.write(solved, course / "source" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb")
    marked = {
        cell.metadata.nbgrader.grade_id: cell.source
        for cell in solved.cells
        if cell.metadata.get("nbgrader", {}).get("solution")
    }
    nbgrader("generate_assignment", ASSIGNMENT, "--create")
    (released,) = (course / "release" / ASSIGNMENT).glob("*.ipynb")
    text = released.read_text(encoding="utf-8")
    assert "SOLUTION" not in text and "HIDDEN" not in text and "def count_gpt2(" in text

    hand_in(course, "right", marked)
    hand_in(course, "wrong", marked | WRONG)
    hand_in(course, "idle", {})
    nbgrader("autograde", ASSIGNMENT, "--create")
    nbgrader("export", "--to", str(course / "grades.csv"))
    with (course / "grades.csv").open(encoding="utf-8") as file:
        score = {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}
    assert score == {"right": len(marked), "wrong": len(marked) - 1, "idle": 0}
