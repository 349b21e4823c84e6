"""`tinytx-course check` on notebooks and folders, and the line, the row and the table that grades make."""

import csv
import io
import json
import os
import re
import unicodedata
from pathlib import Path

import pytest

from tinytx_course.cli import main
from tinytx_course.exercises.checking import EXERCISES
from tinytx_course.grading import grade, running
from tinytx_course.grading.grade import Report, class_page, grade_folder, grade_notebook, grade_submission
from tinytx_course.grading.grades import (
    CopyGrades,
    Grade,
    as_csv,
    commonest_mistakes,
    mistakes_table,
    printable,
)
from tinytx_course.grading.running import Limits
from tinytx_course.lessons import written_lessons

pytestmark = pytest.mark.usefixtures("forked_workers")
SETUP = "import torch\nimport tinytx as tx"
CHECK = "course.check('causal_mask', causal_mask)"
GOOD = ["def causal_mask(n):\n    return torch.ones(n, n).tril() > 0", CHECK]
WRONG = ["def causal_mask(n):\n    return torch.ones(n, n).triu() > 0", CHECK]


def test_a_notebook_is_graded_in_a_line_an_exercise_and_as_json(tmp_path, write_copy, capsys):
    renamed = ["def mine(*, token_ids, pad_id):\n    return token_ids != pad_id"]
    renamed.append("course.check('padding_mask', mine)")
    path = write_copy(tmp_path / "bob.ipynb", SETUP, *WRONG, *renamed)
    assert main(["check", str(path), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["passed"], answer["of"], answer["problem"]) == (1, 2, None)
    assert [(one["status"], one["mistake"]) for one in answer["exercises"]] == [
        ("failed", "transposed"), ("passed", None),
    ]  # fmt: skip
    assert answer["exercises"][0]["message"]


def test_a_folder_gives_a_row_a_copy_and_the_commonest_mistakes(tmp_path, write_copy):
    folder = tmp_path / "class"
    write_copy(folder / "anna.ipynb", SETUP, *GOOD, title="# 02 · Masks")
    write_copy(folder / "ben" / "sheet.ipynb", SETUP, *WRONG)  # no lesson named: that of most others
    write_copy(folder / "cora.ipynb", "def causal_mask(n:\n  return", SETUP, *GOOD, title="# 01 · Tokens")
    write_copy(folder / "dan.ipynb", "print('no exercises')")
    (folder / "empty.ipynb").write_text("")
    write_copy(folder / ".ipynb_checkpoints" / "anna-checkpoint.ipynb", SETUP, *GOOD)
    report = grade_folder(folder, report=tmp_path / "grades.csv").to_dict()
    of_lesson = sum(exercise.lesson == 2 for exercise in EXERCISES.values())
    assert [(copy["copy"], copy["passed"], copy["of"]) for copy in report["copies"]] == [
        ("anna.ipynb", 1, of_lesson),
        ("ben/sheet.ipynb", 0, of_lesson),
        ("cora.ipynb", 1, of_lesson),  # the lesson is that of most copies, never what one copy claims
        ("dan.ipynb", 0, 0),
        ("empty.ipynb", 0, 0),
    ]
    assert json.dumps(report, ensure_ascii=False).encode()
    problems = [copy["problem"] for copy in report["copies"]]
    assert problems[0] is None is problems[1]
    assert problems[2] == "names lesson 01, graded as a copy of lesson 02"
    assert "no exercises found" in problems[3] and "an empty file" in problems[4]
    found = [(row["exercise"], row["mistake"], row["copies"]) for row in report["commonest_mistakes"]]
    assert found == [("causal_mask", "transposed", 1)]
    rows = list(csv.DictReader((tmp_path / "grades.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["causal_mask"] for row in rows] == ["passed", "transposed", "passed", "", ""]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["class", "grades.csv"]


def test_what_is_graded_when_the_teacher_stops_it_is_written(tmp_path, write_copy, monkeypatch):
    for name in ("anna", "ben"):
        write_copy(tmp_path / "class" / f"{name}.ipynb", SETUP, *GOOD)

    def until_ben(submission, name, **how):
        if name == "ben.ipynb":
            raise KeyboardInterrupt
        return grade_submission(submission, name, **how)

    monkeypatch.setattr(grade, "grade_submission", until_ben)
    with pytest.raises(KeyboardInterrupt):
        grade_folder(tmp_path / "class", report=tmp_path / "grades.csv")
    (row,) = csv.DictReader((tmp_path / "grades.csv").read_text(encoding="utf-8").splitlines())
    assert row["causal_mask"] == "passed"


def test_the_teacher_may_choose_the_lesson(tmp_path, write_copy, capsys):
    easy = ["def attention_row(query, keys):\n    return (keys @ query / len(query) ** 0.5).softmax(-1)"]
    easy.append("course.check('attention_row', attention_row)")
    path = write_copy(tmp_path / "x.ipynb", SETUP, *GOOD, *easy, title="# 00 · Start here")
    of_lesson = [name for name, exercise in EXERCISES.items() if exercise.lesson == 2]
    assert main(["check", str(path), "--lesson", "2", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [one["exercise"] for one in answer["exercises"]] == of_lesson and answer["passed"] == 1
    assert "names lesson 00" in answer["problem"] and "attention_row (lesson 00)" in answer["problem"]
    for bad in ("99", "two", "-1"):
        assert main(["check", str(path), f"--lesson={bad}"]) == 2
        assert f"got '{bad}'" in capsys.readouterr().err


def test_a_class_is_a_page_that_escapes_what_copies_hold(tmp_path, write_copy):
    folder = tmp_path / "class"
    write_copy(folder / "anna.ipynb", SETUP, *GOOD, title="# 02 · Masks")
    write_copy(folder / "<b>ben.ipynb", SETUP, *WRONG)
    report = grade_folder(folder, report=tmp_path / "class.html")
    assert report.page == tmp_path / "class.html" and report.csv == tmp_path / "class.csv"
    page, csv_text = report.page.read_text(encoding="utf-8"), report.csv.read_text(encoding="utf-8")
    assert "Lesson 02 · Attention and masks" in page and "&lt;b&gt;ben.ipynb" in page and "<b>" not in page
    assert "transposed" in page and "✗" in page and 'value="0.500"' in page  # one of two passed causal_mask
    section = EXERCISES["padding_mask"].section
    assert f"<code>padding_mask</code>, passed by 0%: lesson 02, section “{section}”" in page
    assert "<script" not in page and "Content-Security-Policy" in page  # such as of a hand-in called site.js
    assert "anna.ipynb,1," in csv_text and "http" not in re.sub(
        "http(-equiv|(://|%3A//)www.w3.org)", "", page
    )


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("none.ipynb", None, "must be a file"),
        ("empty.ipynb", "", "got an empty file"),
        ("folder/notes.txt", "no notebooks here", "must hold notebooks"),
    ],
)
def test_what_cannot_be_graded_ends_in_one_clear_line(
    tmp_path, capsys, monkeypatch, name, content, complaint
):
    monkeypatch.setattr(running, "walls", lambda: pytest.fail("walls were tried for a copy that is none"))
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    if content is not None:
        path.write_text(content)
    asked = path.parent if name.startswith("folder") else path
    assert main(["check", str(asked)]) == 2
    err = capsys.readouterr().err
    assert complaint in err and err.count("\n") == 1 and "Traceback" not in err


def test_an_empty_name_is_not_the_current_folder(tmp_path, write_copy, capsys, monkeypatch):
    write_copy(tmp_path / "x.ipynb", *GOOD)
    monkeypatch.chdir(tmp_path)
    assert main(["check", ""]) == 2
    assert "got ''" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["x.ipynb"]


def test_limits_and_the_place_of_the_report_are_checked_before_anything_is_run(tmp_path, write_copy, capsys):
    path = write_copy(tmp_path / "class" / "x.ipynb", *GOOD)
    for wrong in (["--seconds", "0"], ["--seconds", "nan"], ["--memory", "1"]):
        assert main(["check", str(path), *wrong]) == 2
        assert "must lie between" in capsys.readouterr().err
    with pytest.raises(ValueError, match="no/x.csv"):
        grade_folder(path.parent, report=tmp_path / "no" / "x.csv")
    with pytest.raises(ValueError, match="can be written to, got /proc/x.csv"):
        grade_folder(path.parent, report=Path("/proc/x.csv"))
    for name in ("class.htm", "class"):
        with pytest.raises(ValueError, match=rf"must end in .csv or .html, got .*{name}$"):
            grade_folder(path.parent, report=tmp_path / name)


READS = "def causal_mask(n):\n    return torch.from_numpy(t[:n, :n].copy())"
#: Copies that pass in a notebook, by the kind of statement that gives the function what it reads.
HONEST = {
    "a function fills an array": ["t = np.zeros((99, 99), bool)", "np.copyto(t, np.tri(99) > 0)", READS],
    "a function of their own fills a table": [
        "tables = {}\ndef prepare(n): tables[n] = torch.ones(n, n).tril() > 0",
        "for n in range(99): prepare(n)",
        "def causal_mask(n):\n    return tables[n].clone()",
    ],
    "a function sets a global name": [
        "def prepare():\n    global t\n    t = np.tri(99) > 0",
        "prepare()",
        READS,
    ],
    "setattr": [
        "class Config: above = 1\ncfg = Config()",
        "setattr(cfg, 'above', 0)",
        "def causal_mask(n):\n    return torch.ones(n, n).tril(cfg.above) > 0",
    ],
    "exec and globals": [
        "exec('ONE = 1')\nglobals()['ZERO'] = 0",
        "def causal_mask(n):\n    return torch.full((n, n), ONE).tril() > ZERO",
    ],
    "await": [
        "import asyncio\nlater = asyncio.create_task(asyncio.sleep(0, 0))",
        "async def one():\n    yield 1",
        "async for ONE in one():\n    ZERO = await later",
        "def causal_mask(n):\n    return torch.full((n, n), ONE).tril() > ZERO",
    ],
    "a cell is written as a file": [
        "!mkdir -p own",
        "%%writefile own/masks.py\nimport torch\ndef causal_mask(n):\n    return torch.ones(n, n).tril() > 0",
        "from own.masks import causal_mask",
    ],
}


@pytest.mark.parametrize("cells", HONEST.values(), ids=HONEST)
def test_a_copy_that_passes_in_a_notebook_passes(tmp_path, write_copy, cells, monkeypatch, forked_workers):
    monkeypatch.syspath_prepend(str(forked_workers))
    setup = f"{SETUP}\nimport numpy as np"
    (grade,) = grade_notebook(write_copy(tmp_path / "x.ipynb", setup, *cells, CHECK)).grades
    assert grade.passed, grade


def test_the_first_cause_is_told(tmp_path, write_copy):
    cells = ["from package_not_here import rearrange", "SCALE = rearrange(1)"]
    cells += ["def causal_mask(n):\n    return torch.ones(n, n).tril() > SCALE", CHECK]
    (grade,) = grade_notebook(write_copy(tmp_path / "x.ipynb", SETUP, *cells)).grades
    assert grade.mistake == "cell-error" and "No module named 'package_not_here'" in grade.said
    assert "name 'SCALE' is not defined" in grade.said


def endless(*_):
    while True:
        pass


def stops(*_):
    raise KeyboardInterrupt


def test_judging_has_a_limit_too_and_can_be_stopped(tmp_path, write_copy, monkeypatch):
    path = write_copy(tmp_path / "x.ipynb", SETUP, *GOOD)
    monkeypatch.setattr(running, "judge", endless)
    (grade,) = grade_notebook(path, limits=Limits(seconds=1)).grades
    assert grade.mistake == "time-limit" and "could not be judged" in grade.message
    monkeypatch.setattr(running, "judge", stops)
    with pytest.raises(KeyboardInterrupt):
        grade_notebook(path)


def test_copies_are_found_by_whatever_ending_and_spelling_and_what_macos_adds_is_not(
    tmp_path, write_copy, monkeypatch
):
    monkeypatch.setattr(grade, "grade_submission", lambda submission, name, **how: CopyGrades(name=name))
    folder, two = tmp_path / "class", (unicodedata.normalize(form, "zoé.ipynb") for form in ("NFC", "NFD"))
    odd = os.fsdecode(b"caf\xe9.ipynb")
    ending = ("UPPER.IPYNB", "ben.ipynb.txt", "cleo.ipynb.json", "eve.ipynb.download")
    for name in (*ending, "a b.ipynb", "A  B.ipynb", odd, *two):
        write_copy(folder / name, *GOOD)
    of_systems = (".git/ben.ipynb", "@eaDir/ben.ipynb", ".ipynb_checkpoints/ben-checkpoint.ipynb")
    for name in ("._ben.ipynb", "__MACOSX/ben.ipynb", *of_systems, "dan.pdf"):
        write_copy(folder / name, *GOOD)
    report = grade_folder(folder, report=tmp_path / "grades.csv")
    problems = {copy.name: copy.problem for copy in report.copies}
    alone = {name for name, problem in problems.items() if problem is None}
    assert alone == {*ending, odd}
    assert sorted(set(problems.values()) - {None}) == [
        f"perhaps the same learner as '{name}'"
        for name in ("A  B.ipynb", "a b.ipynb", "zo\\xe9.ipynb", "zoe\\u0301.ipynb")
    ]
    assert "caf?.ipynb" in report.csv.read_text(encoding="utf-8")
    assert report.others == ("dan.pdf",) and "not read, no notebooks: dan.pdf" in str(report)


@pytest.mark.proof
@pytest.mark.parametrize("solved", [False, True], ids=["learner", "solved"])
def test_the_solved_edition_earns_everything_and_the_learners_is_not_attempted(tmp_path, root, solved):
    """Every lesson with exercises is graded as a whole notebook, as a learner would hand it in."""
    pytest.importorskip("jupytext")
    import nbformat

    from tinytx_course.building.notebooks import build_notebook

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


def failed(exercise, mistake, message="It differs.\nMore.", finding=""):
    return Grade(exercise=exercise, status="failed", mistake=mistake, message=message, finding=finding)


def passed(exercise):
    return Grade(exercise=exercise, status="passed")


COPIES = (
    CopyGrades(name="a.ipynb", grades=(failed("causal_mask", "transposed"), passed("padding_mask"))),
    CopyGrades(name="b.ipynb", grades=(failed("causal_mask", "transposed"), failed("attention", None))),
    CopyGrades(name="c.ipynb", grades=(Grade(exercise="causal_mask", status="not attempted"),)),
    CopyGrades(name="=cmd()", problem="c must be a Jupyter notebook, got an empty file"),
)


def test_the_commonest_mistake_comes_first_with_its_explanation():
    rows = commonest_mistakes(COPIES)
    assert [(row["exercise"], row["mistake"], row["copies"]) for row in rows] == [
        ("causal_mask", "transposed", 2),
        ("attention", "not recognised", 1),
    ]
    assert "Rows and columns are exchanged" in rows[0]["explanation"]
    lines = mistakes_table(COPIES).splitlines()
    assert lines[0].split()[:3] == ["copies", "exercise", "mistake"] and lines[1].split()[0] == "2"


@pytest.mark.parametrize(
    ("copies", "said"),
    [
        (COPIES[3:], "no copy could be graded"),
        ([CopyGrades(name="a", grades=(passed("attention"),))], "no wrong answers"),
    ],
)
def test_a_class_without_a_wrong_answer_is_not_said_to_make_no_mistakes(copies, said):
    assert mistakes_table(copies) == said
    page = class_page(copies, None)
    none = said == "no copy could be graded"
    assert ("No copy could be graded." in page, "of the copies passed each" in page) == (none, not none)


def test_a_row_a_copy_a_column_an_exercise_and_no_formulas():
    rows = list(csv.DictReader(io.StringIO(as_csv(COPIES))))
    assert list(rows[0]) == ["copy", "passed", "of", "problem", "causal_mask", "padding_mask", "attention"]
    assert rows[0]["causal_mask"] == "transposed" and rows[0]["padding_mask"] == "passed"
    assert rows[1]["attention"] == "failed" and rows[1]["padding_mask"] == ""
    assert rows[2]["causal_mask"] == "not attempted" and (rows[0]["passed"], rows[0]["of"]) == ("1", "2")
    assert rows[3]["copy"] == "'=cmd()" and "empty file" in rows[3]["problem"]


def test_a_file_name_that_is_no_utf8_can_be_printed_as_json():
    name = os.fsdecode(b"caf\xe9.ipynb")
    copy = CopyGrades(name=name, problem=f"{name} must be a Jupyter notebook")
    report = Report(copies=(copy,), csv=Path(name).with_suffix(".csv"), page=Path(name).with_suffix(".html"))
    json.dumps(report.to_dict(), ensure_ascii=False).encode()
    assert copy.to_dict()["copy"] == "caf?.ipynb" and report.to_dict()["csv"] == "caf?.csv"
    assert CopyGrades(name="é").to_dict()["problem"] is None


def test_one_line_an_exercise_whatever_the_message_holds():
    message = "First \x1b[31mline\r\nSecond line"
    copy = CopyGrades(name="x", grades=(failed("attention", "unscaled", message), passed("perplexity")))
    lines = str(copy).splitlines()
    assert lines[0].split(None, 1) == ["attention", "failed (unscaled): First [31mline"]
    assert lines[1].split() == ["perplexity", "passed"] and lines[2] == "1 of 2 passed"
    assert printable("a\x07\u202eb\tc") == "a b c"
    named = failed("attention", "unscaled", "Expected: ...", "The scores are not scaled.")
    assert str(named).endswith("failed (unscaled): The scores are not scaled.")
    line = str(failed("attention", None, "Expected: " + "words " * 100))
    assert line.endswith(" words …") and len(line) < 240


def test_a_report_shows_a_line_a_copy_then_the_mistakes(tmp_path):
    lines = str(Report(copies=COPIES, csv=tmp_path / "g.csv")).splitlines()
    assert lines[0].split()[:4] == ["a.ipynb", "1", "of", "2"] and "causal_mask: transposed" in lines[0]
    assert "not graded" in lines[3] and lines[-1].endswith("g.csv")
