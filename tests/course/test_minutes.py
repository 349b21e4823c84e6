"""How long a lesson takes: counted from its cells, stated in files of exercises, measured when published."""

import jupytext
import pytest

from tinytx_course.building import minutes
from tinytx_course.building.notebooks import build_notebook
from tinytx_course.lessons import LESSONS, Times, lesson_table, project_root, stored_times, written_lessons
from tinytx_course.results import Results

LESSON = LESSONS[2]
# 658 words, 1,840 characters of code, 15 minutes of exercises; without what is folded, commented or solved.
SOURCE = f"""# %% [markdown]
# # Masks
#
# *You need:* lesson 00.
# *It takes:* an hour or two to read,
# and more.
#
# {" ".join(["word"] * 645)}

# %%
{chr(10).join(["x = 1  # one"] * 600)}

# nothing but a remark

# %% [markdown]
# ### Exercise: attention with a mask
#
# `Level 3/5`
#
# <details><summary>Hint</summary>
#
# {" ".join(["hint"] * 500)}
#
# </details>

# %%
def f(x):
    ### BEGIN SOLUTION
{chr(10).join(["    x = x + 1"] * 100)}
    ### END SOLUTION

# %%
course.check("causal_mask", f)
"""


@pytest.fixture
def checkout(tmp_path):
    (tmp_path / "notebooks" / "src").mkdir(parents=True)
    (tmp_path / "notebooks" / "src" / f"{LESSON.name}.py").write_text(SOURCE, encoding="utf-8")
    return tmp_path


def title(notebook):
    return notebook.cells[0].source


def test_minutes_can_be_checked_on_paper():
    cells = jupytext.reads(SOURCE, fmt="py:percent").cells
    n_words = sum(minutes.count_words(cell.source) for cell in cells if cell.cell_type == "markdown")
    n_characters = sum(minutes.count_code(cell.source) for cell in cells if cell.cell_type == "code")
    assert n_characters == 600 * len("x=1") + len("deff(x):...") + len('course.check("causal_mask",f)')
    assert n_words == 645 + 1 + 4 + 10 + 5 + 3  # text, title, You need, It takes, exercise, its level
    times = minutes.times_of(LESSON, cells, 11.0)
    assert times == Times(reading=15, exercises=15, seconds=15)  # 668 / 130 + 1840 / 360 = 10.2
    assert str(times) == "15 minutes to read, 15 for the exercises, 15 s to run"


def test_the_line_in_the_title_is_replaced_in_both_editions_and_nothing_else(checkout):
    before = jupytext.reads(SOURCE, fmt="py:percent").cells[0].source
    line = f"*It takes:* 15 minutes to read, 15 for the exercises, {LESSON.seconds} s to run on two cores."
    expected = before.replace("*It takes:* an hour or two to read,\nand more.", line)
    learners, solved = (build_notebook(LESSON, checkout, solved=solved) for solved in (False, True))
    assert title(learners) == title(solved) == expected
    assert expected != before


def test_the_time_of_the_last_publishing_counts_and_the_table_says_the_same(checkout):
    Results("lessons", checkout / "results").put(LESSON.name, {"reading": 15, "exercises": 15, "seconds": 75})
    said = "15 minutes to read, 15 for the exercises, 1 min 15 s to run"
    notebook = build_notebook(LESSON, checkout)
    assert f"*It takes:* {said} on two cores." in title(notebook)
    (row,) = [row for row in lesson_table("", checkout).splitlines() if LESSON.slug in row]
    assert row.endswith(f"| {said} |")
    minutes.write_times(LESSON, notebook.cells, 75)
    assert title(notebook) == title(build_notebook(LESSON, checkout)), "writing twice changes nothing"


def test_a_title_without_the_line_is_left_alone():
    cells = jupytext.reads("# %% [markdown]\n# # Masks\n", fmt="py:percent").cells
    minutes.write_times(LESSON, cells, 10)
    assert cells[0].source == "# Masks"


@pytest.mark.parametrize("lesson", written_lessons(project_root()), ids=lambda lesson: lesson.slug)
def test_every_lesson_says_in_its_title_how_long_it_takes_and_what_is_stored_is_the_same(lesson):
    times = stored_times(project_root())[lesson.name]
    again = f"counted otherwise than stored: run `tinytx-course publish {lesson.number:02d}`"
    assert f"*It takes:* {times} on two cores." in title(build_notebook(lesson, project_root())), again
    assert 5 <= times.reading <= 120
