"""What a function needs is found by following names backwards; training is never among it."""

import ast

import pytest

from tinytx_course.grading.planning import make_plan, plain_python
from tinytx_course.grading.slicing import names_read, needed, statements


def sliced(source, names, after=""):
    """Return the needed statements as text."""
    before, behind = statements(ast.parse(source), 1), statements(ast.parse(after), 2)
    return [ast.unparse(statement.node) for statement in needed(before, behind, names)]


def test_imports_constants_and_helpers_are_followed_and_training_is_left_out():
    source = """
import math
import torch
from torch import nn
model = train(10_000)
LARGE = -math.inf
def helper(x):
    return x + LARGE
losses = [model(x) for x in range(3)]
def mine(x):
    weights = helper(x)
    return weights
weights = model.weights
"""
    assert sliced(source, {"mine"}) == [
        "import math",
        "LARGE = -math.inf",
        "def helper(x):\n    return x + LARGE",
        "def mine(x):\n    weights = helper(x)\n    return weights",
    ]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = 1\nx = 2\n", ["x = 2"]),
        ("x = 1\nx = x + 1\n", ["x = 1", "x = x + 1"]),
        ("x = 1\nx += 1\n", ["x = 1", "x += 1"]),
        ("x = 1\nif flag:\n    x = 2\n", ["x = 1", "if flag:\n    x = 2"]),
        ("x = []\ny = []\ny.append(2)\nx.append(1)\n", ["x = []", "x.append(1)"]),
        ("x = {}\nx['a'] = 1\nx.b.c = 2\n", ["x = {}", "x['a'] = 1", "x.b.c = 2"]),
        ("import x\nx.seed(0)\n", ["import x"]),
        ("from a import *\n", ["from a import *"]),
        ("a, (b, *x) = 1, (2, 3)\n", ["a, (b, *x) = (1, (2, 3))"]),
        ("y = 1\nx = lambda: y\n", ["y = 1", "x = lambda: y"]),
        ("y = 1\nx = [y for _ in range(2)]\n", ["y = 1", "x = [y for _ in range(2)]"]),
        ("y = 1\nclass x:\n    z = y\n", ["y = 1", "class x:\n    z = y"]),
        ("d = 1\n@d\ndef x():\n    pass\n", ["d = 1", "@d\ndef x():\n    pass"]),
        ("y = 1\ndef x(z=y):\n    pass\n", ["y = 1", "def x(z=y):\n    pass"]),
        ("for x in range(3):\n    pass\nprint(9)\n", ["for x in range(3):\n    pass"]),
        # A function reads names as they are when it is called.
        ("def x():\n    return LATER\nLATER = 1\n", ["def x():\n    return LATER", "LATER = 1"]),
    ],
)
def test_how_a_name_got_its_value(source, expected):
    assert sliced(source, {"x"}) == expected


def test_a_definition_behind_is_taken_only_where_there_is_none_before():
    assert sliced("x = 1", {"x"}, after="x = 2") == ["x = 1"]
    assert sliced("def mine():\n    return helper()", {"mine"}, after="def helper():\n    return 1") == [
        "def helper():\n    return 1",
        "def mine():\n    return helper()",
    ]


def test_a_chain_of_functions_is_not_read_again_for_each_of_them():
    class Counted(list):
        n_read = 0

        def __getitem__(self, place):
            self.n_read += 1
            return super().__getitem__(place)

        def __iter__(self):
            self.n_read += len(self)
            return super().__iter__()

        def __reversed__(self):
            self.n_read += len(self)
            return super().__reversed__()

    source = "\n".join(f"def f{n}(): return f{n + 1}()" for n in range(101))
    before = Counted(statements(ast.parse(source), 1))
    assert needed(before, [], {"f0"}) == list(before)
    assert before.n_read < 20 * len(before)


def test_names_within_lambdas_count_and_their_parameters_do_not():
    tree = ast.parse("lambda x: f(x, y)", mode="eval")
    assert names_read(tree.body) == {"f", "y"}


def plan(*cells, expected=("attention",)):
    return make_plan(cells, ["causal_mask", "attention", "perplexity"], expected)


def attempts(found, name):
    return found["exercises"][name]["attempts"]


def needs(found, name):
    def text(cell, index):
        return ast.unparse(ast.parse(found["sources"][cell]).body[index])

    return [[text(*place) for place in one["needs"]] for one in attempts(found, name)]


def test_exercises_are_found_by_their_calls_wherever_these_stand():
    found = plan(
        "import tinytx as t",
        "def my_mask(n): return n",
        "v = t.check('causal_mask', my_mask); print(v)",
        "if True:\n    check(name='perplexity', function=lambda a, b: a)",
        "course.check('somebodys_own', my_mask)",
    )
    assert list(found["exercises"]) == ["causal_mask", "attention", "perplexity"]
    assert needs(found, "causal_mask") == [["def my_mask(n):\n    return n"]]
    assert attempts(found, "attention") == [] and needs(found, "perplexity") == [[]]


def test_a_function_of_the_right_name_is_found_without_its_call_where_the_lesson_asks_for_it():
    found = plan("def attention(q, k, v, mask): return 1", "def perplexity(a, b): return 1")
    assert list(found["exercises"]) == ["attention"] and len(attempts(found, "attention")) == 1


def test_cells_that_are_copied_give_several_attempts_equal_ones_once_and_not_thousands():
    cell = "def attention(q, k, v, mask): return {}"
    call = "course.check('attention', attention)"
    assert len(attempts(plan(cell.format(1), call, cell.format(2), call), "attention")) == 2
    assert len(attempts(plan(cell.format(1), call, call, call), "attention")) == 1
    many = [text for n in range(50) for text in (cell.format(n), call)]
    assert len(attempts(plan(*many), "attention")) <= 5


@pytest.mark.parametrize("broken", ["def attention(q:\n", "return 1  # attention", "\0", "(" * 300 + "x"])
def test_a_cell_that_does_not_parse_takes_nothing_else_with_it(broken):
    found = plan("def causal_mask(n): return n", broken, "course.check('causal_mask', causal_mask)")
    assert needs(found, "causal_mask") == [["def causal_mask(n):\n    return n"]]


def test_the_broken_cell_of_an_exercise_is_named():
    cells = "import torch", "def attention(q, k:\n    pass", "course.check('attention', attention)"
    found = plan(*cells, expected=("attention", "perplexity"))["exercises"]
    assert found["attention"]["broken"].startswith("code cell 2 does not run: SyntaxError")
    assert found["perplexity"]["broken"] is None


def test_magics_do_not_break_a_cell_nor_move_its_lines():
    assert "\nx = 1" in plain_python("%load_ext autoreload\nx = 1")
    assert plain_python("!pip list\nx = 1").splitlines()[1] == "x = 1"
    assert plain_python("%%time\ndef f():\n    return 1").splitlines()[1] == "def f():"
    assert plain_python("%%bash\nrm -rf /") == ""
    assert plain_python("pip install a\n%time x = 1").splitlines()[1] == "x = 1"
    assert plain_python("%run m.py").startswith("exec(open(r'm.py'")
    written = plain_python("%%writefile -a x.py\nimport os")
    assert written.endswith("\nopen('x.py', 'a', encoding='utf-8').write('import os')")
    ast.parse(plain_python("?course.check\nfiles = !ls\n%timeit x = 1\ntx.check?"))
    found = plan("%matplotlib inline\ndef attention(q, k, v, mask):\n    return q", "%%time\nattention?")
    assert len(attempts(found, "attention")) == 1
