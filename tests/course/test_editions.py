"""Two editions from one source: stubs and folded solutions, or the solutions."""

import ast
import re

import pytest

from tinytx_course.building.editions import BEGIN, END, cell_of_edition, check_calls, has_solution, is_further
from tinytx_course.building.notebooks import build_notebook
from tinytx_course.exercises.checking import EXERCISES
from tinytx_course.lessons import LESSONS

LESSON = LESSONS[8]
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
    """Build an edition of a source given as text; without the cell that installs the course elsewhere."""
    (tmp_path / "notebooks" / "src").mkdir(parents=True)

    def build(source=SOURCE, **options):
        (tmp_path / "notebooks" / "src" / f"{LESSON.name}.py").write_text(source, encoding="utf-8")
        title, _, *others = build_notebook(LESSON, tmp_path, **options).cells
        return [title, *others]

    return build


def test_the_learners_edition_has_stubs_and_folds_the_solution_after_the_check(built):
    cells = built()
    assert [cell.cell_type for cell in cells] == ["markdown", "code", "code", "markdown", "markdown", "code"]
    assert cells[1].source == "def causal_mask(seq_len):\n    ..."
    assert cells[3].source == FOLDED
    assert ast.parse(cells[1].source)


def test_a_solution_of_dots_becomes_the_right_program_of_the_exercise(built):
    open_ = re.sub(r"    import torch\n.*", "    ...", SOURCE)
    assert open_.count("    ...\n") == 1 and built(open_)[3].source.count("    return key <= query") == 1
    assert "    ### BEGIN SOLUTION\n    position = " in built(open_, solved=True)[1].source
    with pytest.raises(ValueError, match=f"{LESSON.name}.py: the right program of mask must"):
        built(open_.replace("def causal_mask", "def mask"))


def test_the_solved_edition_has_the_lines_and_nothing_folded_and_is_marked_for_nbgrader(built):
    cells = built(solved=True)
    assert [cell.cell_type for cell in cells] == ["markdown", "code", "code", "markdown", "code"]
    assert cell_of_edition(cells[1].source, solved=True) in FOLDED
    marked = [cell.metadata.get("nbgrader", {}) for cell in cells]
    assert [one.get("grade_id") for one in marked] == [None, "causal_mask", "causal_mask-check", None, None]
    assert [one.get("solution") for one in marked[1:3]] == [True, False]
    assert ast.parse(cells[2].source).body[-1].lineno == 3  # the assertion that hidden tests hold
    assert not any("nbgrader" in cell.metadata for cell in built())


def test_both_editions_share_cell_ids_and_another_solution_changes_none(built):
    learner, solved = built(), built(solved=True)
    assert [c.id for c in solved] == [c.id for c in learner if not c.id.endswith("-solution")]
    assert len({c.id for c in learner}) == len(learner)
    other = built(SOURCE.replace(".tril().bool()", ".bool().tril()"))
    assert [c.id for c in other] == [c.id for c in learner]


def test_dots_are_indented_as_the_marker_and_a_cell_may_hold_several_solutions_or_none():
    method = f"    def f(self):\n        {BEGIN}\n        x = 1\n        {END}\n        return x\n"
    source = f"class A:\n{method}\n    {BEGIN}\n    y = 2\n    {END}"
    learner, solved = (cell_of_edition(source, solved=solved) for solved in (False, True))
    assert learner == "class A:\n    def f(self):\n        ...\n        return x\n\n    ..."
    assert "x = 1" in solved and "y = 2" in solved
    plain = "x = 1  # no solution here\n\n\nprint(x)"
    assert not has_solution(plain)
    assert all(cell_of_edition(plain, solved=solved) == plain for solved in (False, True))


def test_calls_of_a_check_are_found_wherever_they_are_in_the_order_of_the_text():
    source = """
        print(check('a', f), course.check(function=g, name="b"))
        course.check(name, h); other.check_this("c", h); course.check("d")
        v = [x.check("e", lambda n: n) for x in y]
    """
    calls = check_calls(ast.parse("if True:\n" + source))
    found = {call.name: ast.unparse(call.function) for call in calls}
    assert list(found.items()) == [("a", "f"), ("b", "g"), ("e", "lambda n: n")]


@pytest.mark.parametrize(
    "lines",
    [
        [BEGIN, "x = 1"],
        ["x = 1", END],
        [BEGIN, "x = 1", BEGIN, END],
        [BEGIN, "x = 1", END, END],
        ["# BEGIN SOLUTION", "x = 1", "# END SOLUTION"],
        [f"x = 1  {BEGIN}", "x = 2", END],
        ["### begin solution", "x = 1", "### end solution"],
        [BEGIN, "", END],
    ],
)
def test_markers_that_make_no_pair_are_refused_and_the_file_is_named(built, lines):
    source = "# %%\n" + "\n".join(lines) + '\n\n# %%\ncourse.check("causal_mask", x)\n'
    for solved in (False, True):
        with pytest.raises(ValueError, match=f"notebooks/src/{LESSON.name}.py: .*SOLUTION|hold a line"):
            built(source, solved=solved)


def test_what_an_exercise_asks_is_put_into_its_text_cell(built):
    asked = EXERCISES["causal_mask"].statement
    placed = SOURCE.replace("### Exercise: a mask", "First.\n#\n# [exercise: causal_mask]")
    for solved in (False, True):
        assert built(placed, solved=solved)[0].source == f"First.\n\n{asked}"
    with pytest.raises(
        ValueError, match=rf"{LESSON.name}.py: \[exercise: a mask\] must name one of .*causal_mask"
    ):
        built(placed.replace("exercise: causal_mask", "exercise: a mask"))


@pytest.mark.parametrize(
    ("after", "value"),
    [
        ("", "no cell after"),
        ("# %%\nprint(1)\n", "print"),
        ("# %%\ncourse.check(name, f)\n", "name, f"),
        ('# %%\ncourse.check("no_such_exercise", f)\n', "no_such_exercise"),
        ("# %%\ncourse.check(\n", "never closed"),
    ],
)
def test_a_solution_without_a_check_of_an_exercise_is_refused(built, after, value):
    source = f"# %%\ndef f():\n    {BEGIN}\n    return 1\n    {END}\n\n{after}"
    with pytest.raises(ValueError, match=f"(?s)notebooks/src/{LESSON.name}.py: .*{re.escape(value)}"):
        built(source)


def test_cells_of_a_section_that_is_further_have_their_tag_in_both_editions(built):
    further = SOURCE.replace("# ### Ex", "# Before.\n#\n# ## Further: a task\n#\n# ### Ex").replace(
        "# Afterwards.", "# Still there.\n#\n# ## Second\n#\n# Afterwards."
    )
    for solved, n_inside in ((False, 5), (True, 4)):  # the solution is a cell of its own for learners
        cells = built(further, solved=solved)
        inside = [cell.source for cell in cells if is_further(cell)]
        assert len(inside) == n_inside and inside[0].startswith("## Further: a task\n\n### Exercise")
        assert inside[-1] == "Still there." and len({cell.id for cell in cells}) == len(cells)
        assert [cell.source for cell in cells if not is_further(cell) and cell.cell_type == "markdown"] == [
            "Before.",
            "## Second\n\nAfterwards.",
        ]
