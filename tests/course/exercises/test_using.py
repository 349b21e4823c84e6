"""`course.use`: the learner's own functions where they pass, ours where not, across processes."""

import ast
import linecache
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell

import tinytx_course as course
from tests.fuzz.children import run_child
from tinytx_course.building.editions import check_calls
from tinytx_course.building.notebooks import build_notebook
from tinytx_course.exercises.checking import EXERCISES
from tinytx_course.lessons import LESSONS, project_root
from tinytx_course.progress.answers import answer_file, source_of
from tinytx_course.progress.record import VARIABLE

SEVEN = (
    "causal_mask", "attention", "multi_head_attention", "layer_norm", "feed_forward", "block",
    "sinusoidal_positions",
)  # fmt: skip
SETUP = """
import math
import torch
import torch.nn.functional as F
from torch import nn
import tinytx as tx
import tinytx_course as course
"""


def notebook(*cells):
    """Run cells as a notebook does, after the imports of a set-up cell; return what it complained of."""

    def run(_):
        shell = InteractiveShell.instance()
        for cell in (SETUP, *cells):
            shell.run_cell(cell, store_history=True).raise_error()
        return 0

    with tempfile.TemporaryDirectory() as folder:
        done = run_child(run, [], Path(folder) / "run", b"")
    assert done.kind == "done", done
    return done.said


def used(capsys, *names):
    """Return what `use` prints, and whose each function is."""
    capsys.readouterr()
    functions = course.use(*names)
    return capsys.readouterr().out.splitlines(), [function.yours for function in functions]


def solved_cells(names):
    """The cells of the solved edition that define these functions, each with the cell that checks it."""
    found = []
    for number in sorted({EXERCISES[name].lesson for name in names}):
        cells = build_notebook(LESSONS[number], project_root(), solved=True).cells
        code = [cell.source for cell in cells if cell.cell_type == "code"]
        for before, cell in zip(code, code[1:], strict=False):
            calls = check_calls(ast.parse(cell)) if "course.check(" in cell else []
            if any(call.name in names for call in calls):
                found += [before, cell]
    return found


def test_in_the_solved_edition_all_seven_are_the_learners_in_another_process_and_importing_runs_none(mine):
    cells = solved_cells(SEVEN)
    assert len(cells) == 14
    notebook(*cells)
    assert sorted(path.stem for path in (mine.file.parent / "answers").iterdir()) == sorted(SEVEN)
    answer_file("alibi_bias").write_text("print('run')", encoding="utf-8")
    code = "import tinytx_course as course; course.check, course.status()\n"
    code += f"print(*(f.yours for f in course.use(*{SEVEN})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "") and "run" not in done.stdout
    assert done.stdout.splitlines()[-2:] == [f"Yours: {', '.join(SEVEN)}.", " ".join(["True"] * 7)]


def test_without_a_stored_function_it_is_ours_and_with_none_nothing_is_stored(mine, monkeypatch, capsys):
    assert used(capsys, *SEVEN) == ([f"Ours: {', '.join(SEVEN)}."], [False] * 7)
    monkeypatch.setenv(VARIABLE, "none")
    notebook(*solved_cells(["causal_mask"]))
    assert list(mine.file.parent.iterdir()) == [] and answer_file("causal_mask") is None


def test_imports_values_helpers_and_other_names_go_with_a_function(mine, capsys):
    notebook(
        "from math import sqrt\nfrom torch import arange\nLOWEST, RANKS = float('-inf'), (1, 'a')",
        "def before(n):\n    return arange(n)[:, None] >= arange(n)",
        "class Holder:\n    def mask(self, n):\n        return before(n)",
        "def mine(seq_len):\n    def inner():\n        return Holder().mask(seq_len)\n"
        "    assert sqrt(4) == 2 and LOWEST < 0 and RANKS == (1, 'a')\n    return inner() & True",
        'course.check("causal_mask", mine)',
    )
    assert used(capsys, "causal_mask") == (["Yours: causal_mask."], [True])


def test_the_last_that_passed_is_used_also_after_a_wrong_try_until_it_is_reset(mine, capsys):
    right, wrong = (
        f"def causal_mask(seq_len):\n    return torch.ones(seq_len, seq_len).{which}().bool()"
        for which in ("tril", "triu")
    )
    check = 'course.check("causal_mask", causal_mask)'
    notebook(right, check, wrong, check)
    assert used(capsys, "causal_mask")[1] == [True]
    course.reset("causal_mask")
    assert used(capsys, "causal_mask")[1] == [False]


@pytest.mark.parametrize(
    ("text", "got"),
    [
        ("def causal_mask(seq_len)\n    return 1", "got SyntaxError"),
        ("import no_such_module", "got ModuleNotFoundError"),
        ("def other(seq_len):\n    return 1", "got KeyError: 'causal_mask'"),
        ("import tinytx as tx\ndef causal_mask(n):\n    return ~tx.causal_mask(n)", "True and False"),
        ("def causal_mask(seq_len):\n    ...", "got: not attempted yet"),
        ("raise SystemExit", "got SystemExit"),
    ],
)
def test_a_stored_function_that_does_not_run_or_pass_gets_one_line_and_ours_is_used(mine, capsys, text, got):
    file = answer_file("causal_mask")
    file.parent.mkdir()
    file.write_text(text, encoding="utf-8")
    (line, *rest), whose = used(capsys, "causal_mask")
    assert line.startswith("Your stored causal_mask must") and got in line and "urs takes its place" in line
    assert rest == ["Ours: causal_mask."] and whose == [False]


def test_what_cannot_be_stored_is_said_in_one_line_when_it_passes(mine, capsys):
    errors = notebook(
        "table = tx.causal_mask(9)\ndef f(n):\n    return table[:n, :n]",
        'course.check("causal_mask", f)',
        "f = lambda n: torch.ones(n, n).tril().bool()",
        'course.check("causal_mask", f)',
        "class Mask:\n    def __call__(self, n):\n        return torch.ones(n, n).tril().bool()",
        'course.check("causal_mask", Mask())',
        "def causal_mask(n):\n    return torch.ones(n, n).tril().bool()",
        "def mine(n):\n    return causal_mask(n)",
        'course.check("causal_mask", mine)',
    )
    lines = errors.splitlines()
    assert len(lines) == 4 and all(line.startswith("No lesson can use your causal_mask: ") for line in lines)
    due = ("table, a Tensor", "got <lambda>", "Mask object", "two things called causal_mask: rename one")
    for line, got in zip(lines, due, strict=True):
        assert got in line
    assert used(capsys, "causal_mask")[1] == [False]


def test_a_used_function_is_called_as_its_exercise_says(mine, capsys):
    answer_file("feed_forward").parent.mkdir()
    answer_file("feed_forward").write_text(
        "def feed_forward(a, w_up, b_up, /, w_down, *, b_down):\n"
        "    return (a @ w_up + b_up).relu() @ w_down + b_down",
        encoding="utf-8",
    )
    (mine,) = course.use("feed_forward")
    (ours,) = course.use("layer_norm")
    assert mine.yours and not ours.yours
    torch.manual_seed(0)
    x, *weights = (torch.randn(*shape) for shape in ((2, 3, 5), (5, 7), (7,), (7, 5), (5,)))
    due = (x @ weights[0] + weights[1]).relu() @ weights[2] + weights[3]
    named = dict(zip(("w_up", "b_up", "w_down", "b_down"), weights, strict=True))
    for got in (mine(x, *weights), mine(x=x, **named), mine(x, *weights[:3], b_down=weights[3])):
        torch.testing.assert_close(got, due)
    with pytest.raises(TypeError, match="b_down"):
        mine(x, *weights[:3])
    with pytest.raises(ValueError, match="layer_nrm.* 'layer_norm'"):
        course.use("layer_nrm")
    assert capsys.readouterr().out == "Yours: feed_forward.\nOurs: layer_norm.\n"


def test_functions_that_need_each_other_are_stored_once():
    space = {"__name__": "__main__"}
    code = (
        "def even(n):\n    return n == 0 or odd(n - 1)\n\n\ndef odd(n):\n    return n > 0 and even(n - 1)\n"
    )
    linecache.cache["<mine>"] = (len(code), None, code.splitlines(True), "<mine>")
    exec(compile(code, "<mine>", "exec"), space)
    text = source_of("answer", space["even"])
    found = {}
    exec(text, found)
    assert found["answer"](4) and not found["answer"](3) and text.count("def odd") == 1
