"""Two editions from one source: stubs and folded solutions, or the solutions; nothing depends on them."""

import ast
import math
import re

import pytest

pytest.importorskip("jupytext")

from tinytx_course.building.editions import has_solution, learners_cell, solved_cell
from tinytx_course.building.notebooks import build_notebook
from tinytx_course.exercises.checking import EXERCISES
from tinytx_course.lessons import LESSONS, pick_lessons, written_lessons

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
SOURCE = """# %% [markdown]
# ### Exercise: a mask

# %%
def causal_mask(seq_len):
    ### BEGIN SOLUTION
    import torch
    return torch.ones(seq_len, seq_len).tril().bool()
    ### END SOLUTION


# %%
course.check("causal_mask", causal_mask)

# %% [markdown]
# Afterwards.

# %%
1 + 1
"""
FOLDED = """<details><summary>Solution</summary>

```python
def causal_mask(seq_len):
    import torch
    return torch.ones(seq_len, seq_len).tril().bool()
```

</details>"""


@pytest.fixture
def built(tmp_path):
    """Build an edition of a source given as text."""
    (tmp_path / "notebooks" / "src").mkdir(parents=True)

    def build(source=SOURCE, **options):
        (tmp_path / "notebooks" / "src" / "07_pretraining.py").write_text(source, encoding="utf-8")
        (lesson,) = pick_lessons(["7"], tmp_path)
        return build_notebook(lesson, tmp_path, **options).cells

    return build


def test_the_learners_edition_has_stubs_and_folds_the_solution_after_the_check(built):
    cells = built()
    assert [cell.cell_type for cell in cells] == ["markdown", "code", "code", "markdown", "markdown", "code"]
    assert cells[1].source == "def causal_mask(seq_len):\n    ..."
    assert cells[3].source == FOLDED
    assert ast.parse(cells[1].source)


def test_the_solved_edition_has_the_lines_without_markers_and_nothing_folded(built):
    cells = built(solved=True)
    assert [cell.cell_type for cell in cells] == ["markdown", "code", "code", "markdown", "code"]
    assert "SOLUTION" not in "".join(cell.source for cell in cells)
    assert cells[1].source in FOLDED


def test_both_editions_call_a_cell_the_same_and_another_solution_leaves_the_names(built):
    learner, solved = built(), built(solved=True)
    assert [c.id for c in solved] == [c.id for c in learner if not c.id.endswith("-solution")]
    assert len({c.id for c in learner}) == len(learner)
    other = built(SOURCE.replace(".tril().bool()", ".bool().tril()"))
    assert [c.id for c in other] == [c.id for c in learner]


def test_dots_stand_as_deep_as_the_marker_and_several_blocks_may_stand_in_a_cell():
    method = f"    def f(self):\n        {BEGIN}\n        x = 1\n        {END}\n        return x\n"
    source = f"class A:\n{method}\n    {BEGIN}\n    y = 2\n    {END}"
    assert learners_cell(source) == "class A:\n    def f(self):\n        ...\n        return x\n\n    ..."
    assert "x = 1" in solved_cell(source) and "y = 2" in solved_cell(source)


def test_a_cell_without_a_solution_is_the_same_in_both_editions():
    source = "x = 1  # no solution here\n\n\nprint(x)"
    assert not has_solution(source) and learners_cell(source) == solved_cell(source) == source


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ([BEGIN, "x = 1"], "must be followed by ### END SOLUTION in the same cell"),
        (["x = 1", END], "must come in pairs"),
        ([BEGIN, "x = 1", BEGIN, END], "must come in pairs"),
        ([BEGIN, "x = 1", END, END], "must come in pairs"),
        (["# BEGIN SOLUTION", "x = 1", "# END SOLUTION"], "must come in pairs, each alone on its line"),
        ([f"x = 1  {BEGIN}", "x = 2", END], "must come in pairs, each alone on its line"),
        (["### begin solution", "x = 1", "### end solution"], "must come in pairs"),
        ([BEGIN, "", END], "a solution must hold a line"),
    ],
)
@pytest.mark.parametrize("solved", [False, True])
def test_markers_that_make_no_pair_are_refused_and_the_file_is_named(built, lines, complaint, solved):
    source = "# %%\n" + "\n".join(lines) + '\n\n# %%\ntx.check("causal_mask", x)\n'
    with pytest.raises(ValueError, match=f"notebooks/src/07_pretraining.py: .*{complaint}"):
        built(source, solved=solved)


@pytest.mark.parametrize(
    ("after", "complaint"),
    [
        ("", "must call its check, got no cell after"),
        ("# %%\nprint(1)\n", "must call its check, got 'print"),
        ("# %%\ntx.check(name, f)\n", "must call its check"),
        ('# %%\ntx.check("no_such_exercise", f)\n', "must name an exercise, .* got 'no_such_exercise'"),
        ("# %%\ntx.check(\n", "was never closed"),
    ],
)
def test_a_solution_without_a_check_of_an_exercise_is_refused(built, after, complaint):
    source = f"# %%\ndef f():\n    {BEGIN}\n    return 1\n    {END}\n\n{after}"
    with pytest.raises(ValueError, match=f"(?s)notebooks/src/07_pretraining.py: .*{complaint}"):
        built(source)


# ---- the exercises that are written

EXERCISE = re.compile(r"^### Exercise: \S.*\n\n(`Level ([1-5])/5 · (\d+) minutes · outcome (\d+)`)\n\n", re.M)
HINT = re.compile(r"<details><summary>Hint</summary>\n\n(.+?)\n\n</details>", re.S)


def exercises_in(root):
    """Yield (lesson, cells, index of the solution cell) for each exercise of each source."""
    import jupytext

    for lesson in written_lessons(root):
        text = (root / "notebooks" / "src" / f"{lesson.name}.py").read_text(encoding="utf-8")
        cells = jupytext.reads(text, fmt="py:percent").cells
        for place, cell in enumerate(cells):
            if cell.cell_type == "code" and has_solution(cell.source):
                yield lesson, cells, place


def test_every_exercise_has_the_format_of_the_course(root):
    found = list(exercises_in(root))
    assert found
    for lesson, cells, place in found:
        task, stub, check = cells[place - 1 : place + 2]
        where = f"{lesson.name}, {stub.source.splitlines()[0]}"
        headed = list(EXERCISE.finditer(task.source))
        assert len(headed) == 1, where
        (head,) = headed
        n_outcomes = len(re.findall(r"^\d\. ", cells[0].source + "\n" + cells[1].source, re.M))
        assert 1 <= int(head[4]) <= n_outcomes and 2 <= int(head[3]) <= 60, where
        (hint,) = HINT.findall(task.source)
        n_words = len(HINT.sub("", task.source[head.end() :]).split())
        assert 15 <= n_words <= 110 and len(hint.split()) >= 8, (where, n_words)
        body = ast.parse(learners_cell(stub.source)).body
        functions = {node.name: node for node in body if isinstance(node, ast.FunctionDef)}
        assert not any(ast.get_docstring(function) for function in functions.values()), where
        call = re.fullmatch(r'tx\.check\("(\w+)", (\w+)\)', check.source)
        assert call and call[1] == call[2] in functions, where
        exercise = EXERCISES[call[1]]
        assert exercise.lesson == lesson.number, where
        assert exercise.signature == f"{call[1]}({ast.unparse(functions[call[1]].args)})", where


def test_no_exercise_stands_twice(root):
    checks = [cells[place + 1].source for _, cells, place in exercises_in(root)]
    names = [re.search(r'"(\w+)"', check)[1] for check in checks]
    assert len(set(names)) == len(names)


def names_bound(tree):
    """Return the names that a cell gives a value at its top level."""
    bound = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    plain = [node for node in tree.body if not isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    names = [name for node in plain for name in ast.walk(node) if isinstance(name, ast.Name)]
    return bound | {name.id for name in names if isinstance(name.ctx, ast.Store)}


def test_no_later_cell_uses_what_an_exercise_defines(root):
    for lesson, cells, place in exercises_in(root):
        answers = names_bound(ast.parse(solved_cell(cells[place].source)))
        for cell in cells[place + 2 :]:
            if cell.cell_type != "code" or "course.check(" in cell.source:
                continue
            tree = ast.parse(solved_cell(cell.source))
            names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
            used = {name.id for name in names if isinstance(name.ctx, ast.Load)}
            assert not (answers & used) - names_bound(tree), f"{lesson.name}: {answers & used}"
            answers -= names_bound(tree)


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.slug)
def test_solutions_in_the_sources_pass_their_own_checks(root, lesson):
    """Run what stands between the markers, with the set-up cell of its lesson, against the checker."""
    import torch

    import tinytx as tx
    from tinytx_course.exercises.checking import check

    for found, cells, place in exercises_in(root):
        if found is not lesson:
            continue
        space = {"torch": torch, "tx": tx, "F": torch.nn.functional, "nn": torch.nn, "math": math}
        exec(solved_cell(cells[place].source), space)
        name = re.search(r'"(\w+)"', cells[place + 1].source)[1]
        verdict = check(name, space[name], display=False)
        assert verdict.passed, verdict
        exec(learners_cell(cells[place].source), space)
        verdict = check(name, space[name], display=False)
        assert not verdict.passed and not verdict.attempted and verdict.mistake is None
