"""Two editions from one source: stubs and folded solutions, or the solutions."""

import ast
import re

import pytest

from tinytx_course.building.editions import BEGIN, END, check_calls, is_further
from tinytx_course.building.notebooks import build_notebook
from tinytx_course.exercises.checking import EXERCISES
from tinytx_course.lessons import LESSONS

LESSON = LESSONS[8]
SOURCE = """# %% [markdown]
# ### Exercise: a mask

# %%
def causal_mask(seq_len):
    ...


# %%
course.check("causal_mask", causal_mask)

# %% [markdown]
# Afterwards.

# %%
1 + 1
"""
PROGRAM = EXERCISES["causal_mask"].solve.text.strip()
FOLDED = f"<details><summary>Solution</summary>\n\n```python\n{PROGRAM}\n```\n\n</details>"


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
    assert cells[3].source == FOLDED and FOLDED.count("    return key <= query") == 1
    with pytest.raises(ValueError, match=f"{LESSON.name}.py: the right program of mask must"):
        built(SOURCE.replace("def causal_mask", "def mask"))


def test_the_solved_edition_has_the_lines_and_nothing_folded_and_is_marked_for_nbgrader(built):
    cells = built(solved=True)
    assert [cell.cell_type for cell in cells] == ["markdown", "code", "code", "markdown", "code"]
    head, begin, *body, end = cells[1].source.splitlines()
    assert (begin, end) == (f"    {BEGIN}", f"    {END}") and [head, *body] == PROGRAM.splitlines()
    marked = [cell.metadata.get("nbgrader", {}) for cell in cells]
    assert [one.get("grade_id") for one in marked] == [None, "causal_mask", "causal_mask-check", None, None]
    assert [one.get("solution") for one in marked[1:3]] == [True, False]
    assert ast.parse(cells[2].source).body[-1].lineno == 3  # the assertion that hidden tests hold
    assert not any("nbgrader" in cell.metadata for cell in built())


def test_both_editions_share_cell_ids(built):
    learner, solved = built(), built(solved=True)
    assert [c.id for c in solved] == [c.id for c in learner if not c.id.endswith("-solution")]
    assert len({c.id for c in learner}) == len(learner)


def test_calls_of_a_check_are_found_wherever_they_are_in_the_order_of_the_text():
    source = """
        print(check('a', f), course.check(function=g, name="b"))
        course.check(name, h); other.check_this("c", h); course.check("d")
        v = [x.check("e", lambda n: n) for x in y]
    """
    calls = check_calls(ast.parse("if True:\n" + source))
    found = {call.name: ast.unparse(call.function) for call in calls}
    assert list(found.items()) == [("a", "f"), ("b", "g"), ("e", "lambda n: n")]


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
    source = f"# %%\ndef causal_mask(seq_len):\n    ...\n\n{after}"
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
