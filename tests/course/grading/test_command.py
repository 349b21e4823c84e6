"""`tinytx-course check` on notebooks and folders, and on the editions of the course themselves."""

import csv
import json

import pytest

from tinytx_course.cli import main
from tinytx_course.exercises import EXERCISES
from tinytx_course.lessons import written_lessons

SETUP = "import torch\nimport tinytx as tx"
CHECK = "course.check('causal_mask', causal_mask)"
GOOD = ["def causal_mask(n):\n    return torch.ones(n, n).tril() > 0", CHECK]
WRONG = ["def causal_mask(n):\n    return torch.ones(n, n).triu() > 0", CHECK]


@pytest.mark.slow
def test_a_notebook_is_graded_in_a_line_an_exercise_or_as_json(tmp_path, write_copy, capsys):
    renamed = ["def mine(*, token_ids, pad_id):\n    return token_ids != pad_id"]
    stub = ["def attention(q, k, v, mask):\n    ...", "course.check('attention', attention)"]
    renamed.append("course.check('padding_mask', mine)")
    path = write_copy(tmp_path / "bob.ipynb", SETUP, *WRONG, *renamed, *stub)
    assert main(["check", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("causal_mask             failed (transposed): Rows and columns are exchanged")
    assert lines[1].split() == ["padding_mask", "passed"]
    assert lines[2].split() == ["attention", "not", "attempted"] and lines[3] == "1 of 3 passed"
    assert main(["check", str(path), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["passed"], answer["of"], answer["problem"]) == (1, 3, None)
    assert answer["exercises"][0]["mistake"] == "transposed" and answer["exercises"][0]["message"]


@pytest.mark.slow
def test_a_folder_gives_a_row_a_copy_and_the_commonest_mistakes(tmp_path, write_copy, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_copy(tmp_path / "class" / "anna.ipynb", SETUP, *GOOD)
    write_copy(tmp_path / "class" / "ben" / "sheet.ipynb", SETUP, *WRONG)
    write_copy(tmp_path / "class" / "cora.ipynb", SETUP, "def causal_mask(n:\n  return", WRONG[1], *GOOD[:1])
    write_copy(tmp_path / "class" / "dan.ipynb", "print('no exercises')")
    (tmp_path / "class" / "empty.ipynb").write_text("")
    write_copy(tmp_path / "class" / ".ipynb_checkpoints" / "anna-checkpoint.ipynb", SETUP, *GOOD)
    assert main(["check", "class", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [(copy["copy"], copy["passed"], copy["of"]) for copy in answer["copies"]] == [
        ("anna.ipynb", 1, 1),
        ("ben/sheet.ipynb", 0, 1),
        ("cora.ipynb", 1, 1),
        ("dan.ipynb", 0, 0),
        ("empty.ipynb", 0, 0),
    ]
    assert "no exercises found" in answer["copies"][3]["problem"]
    assert "an empty file" in answer["copies"][4]["problem"]
    (row,) = answer["commonest_mistakes"]
    assert (row["exercise"], row["mistake"], row["copies"]) == ("causal_mask", "transposed", 1)
    assert answer["csv"] == "class-grades.csv"
    text = (tmp_path / "class-grades.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    assert [row["causal_mask"] for row in rows] == ["passed", "transposed", "passed", "", ""]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["class", "class-grades.csv"]


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("none.ipynb", None, "must be a file"),
        ("empty.ipynb", "", "got an empty file"),
        ("text.ipynb", "def f(): pass", "must be a Jupyter notebook"),
        ("folder/notes.txt", "no notebooks here", "must hold notebooks"),
    ],
)
def test_what_cannot_be_graded_ends_in_one_clear_line(tmp_path, capsys, name, content, complaint):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    if content is not None:
        path.write_text(content)
    asked = path.parent if name.startswith("folder") else path
    assert main(["check", str(asked)]) == 2
    err = capsys.readouterr().err
    assert complaint in err and err.count("\n") == 1 and "Traceback" not in err


@pytest.mark.slow
def test_a_notebook_without_exercises_is_refused(tmp_path, write_copy, capsys):
    path = write_copy(tmp_path / "x.ipynb", "1 + 1")
    assert main(["check", str(path)]) == 2
    assert "no exercises found" in capsys.readouterr().err


def test_options_are_checked_before_anything_is_run(tmp_path, write_copy, capsys):
    path = write_copy(tmp_path / "class" / "x.ipynb", *GOOD)
    for wrong in (["--seconds", "0"], ["--memory", "1"], ["--report", "x.csv"]):
        assert main(["check", str(path), *wrong]) == 2
    assert main(["check", str(path.parent), "--report", str(tmp_path / "no" / "x.csv")]) == 2
    assert "folder that exists" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("solved", [False, True], ids=["learner", "solved"])
def test_the_solved_edition_earns_everything_and_the_learners_is_not_attempted(tmp_path, root, solved):
    """Every lesson with exercises is graded as a whole notebook, as a learner would hand it in."""
    pytest.importorskip("jupytext")
    import nbformat

    from tinytx_course.building.notebooks import build_notebook
    from tinytx_course.grading.grade import grade_notebook

    n_graded = 0
    for lesson in written_lessons(root):
        notebook = build_notebook(lesson, root, solved=solved)
        text = "\n".join(cell.source for cell in notebook.cells)
        checked = [name for name in EXERCISES if f'course.check("{name}"' in text]
        if not checked:
            continue
        path = tmp_path / f"{lesson.name}.ipynb"
        nbformat.write(notebook, path)
        grades = {grade.exercise: grade for grade in grade_notebook(path).grades}
        for name in checked:
            assert grades[name].status == ("passed" if solved else "not attempted"), grades[name]
        n_graded += len(checked)
    assert n_graded
