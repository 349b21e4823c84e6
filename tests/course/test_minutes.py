"""How long a lesson takes: counted from its cells, stated in files of exercises, measured when published."""

import re
from dataclasses import asdict, replace

import jupytext
import nbformat
import pytest

from tests.environments import published
from tinytx_course.building import minutes
from tinytx_course.building.editions import is_further, mark_further
from tinytx_course.building.notebooks import build_notebook
from tinytx_course.lessons import LESSONS, Times, lesson_table, project_root, stored_times
from tinytx_course.results import Results

LESSON = LESSONS[2]
TABLE = {"text/markdown": "| a |", "text/plain": "<Markdown object>"}
# 1,158 words, 1,800 characters of code, 15 minutes of exercises; without what is commented.
SOURCE = f"""# %% [markdown]
# # Masks
#
# *You need:* lesson 00.
# *It takes:* an hour or two to read,
# and more.
#
# {" ".join(["word"] * 645)}
#
# <details><summary>Answer</summary>
#
# {" ".join(["folded"] * 499)}
#
# </details>

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
def causal_mask(seq_len):
    ...

# %%
course.check("causal_mask", causal_mask)

# %% [markdown]
# Still in the exercise.
#
# ## Further: more
#
# {" ".join(["word"] * 127)}
#
# ### Try it yourself
#
# **1.** {" ".join(["word"] * 126)}

# %%
course.quiz("masks")

# %% [markdown]
# ## Summary
"""


@pytest.fixture
def checkout(tmp_path):
    (tmp_path / "notebooks" / "src").mkdir(parents=True)
    (tmp_path / "notebooks" / "src" / f"{LESSON.name}.py").write_text(SOURCE, encoding="utf-8")
    return tmp_path


def title(notebook):
    return notebook.cells[0].source


def test_minutes_can_be_checked_on_paper():
    cells = mark_further(jupytext.reads(SOURCE, fmt="py:percent").cells)
    core = [cell for cell in cells if not is_further(cell)]
    reading, doing = minutes.minutes_of(LESSON, core)
    # title, You need, text, Answer, folded, Summary; the line It takes and the exercise are not read
    assert reading == pytest.approx((1 + 4 + 645 + 1 + 499 + 1) / 130 + 600 * len("x=1") / 360)
    assert doing == 15
    further = [cell for cell in cells if is_further(cell)]
    title = (2 + 127 + 3 + 1 + 126) / 130  # the number of the try is a word
    assert minutes.minutes_of(LESSON, further) == (pytest.approx(title + 20 / 360), 4 + 5)
    times = minutes.times_of(LESSON, cells, 11.0)
    assert times == Times(reading=14, doing=15, everything=40, seconds=15)
    assert times.core == 29
    assert str(times) == "14 minutes to read and 15 to do, 40 with everything; 15 s to run"
    assert str(replace(times, everything=29)) == "14 minutes to read and 15 to do; 15 s to run"


def test_figures_and_what_is_printed_count_but_no_card():
    v4 = nbformat.v4
    cell = v4.new_code_cell("course.predict('02.1', 'Which?', ['this'])")
    assert minutes.minutes_of(LESSON, [cell])[1] == 1
    card = {"text/html": "<div data-tx-kind='questions'>", "text/plain": "Which?"}
    seen = [{"image/png": "AAAA", "text/plain": "A heatmap"}, {"text/html": '<figure class="txd">'}, card]
    cell.outputs = [v4.new_output("display_data", data=data) for data in seen]
    cell.outputs += [v4.new_output("stream", text="0.5  1 \n"), v4.new_output("display_data", data=TABLE)]
    assert minutes.count_output(cell) == (2, len("0.51|a|"))


def test_the_line_in_the_title_is_replaced_in_both_editions_and_nothing_else(checkout):
    before = jupytext.reads(SOURCE, fmt="py:percent").cells[0].source
    counted = "14 minutes to read and 15 to do, 40 with everything"
    line = f"*It takes:* {counted}; {LESSON.seconds} s to run on two cores."
    expected = before.replace("*It takes:* an hour or two to read,\nand more.", line)
    learners, solved = (build_notebook(LESSON, checkout, solved=solved) for solved in (False, True))
    assert title(learners) == title(solved) == expected
    assert expected != before


def test_the_time_of_the_last_publishing_counts_and_the_table_says_the_same(checkout):
    stored = Times(reading=15, doing=20, everything=90, seconds=75)
    Results("lessons", checkout / "results").put(LESSON.name, asdict(stored))
    said = "15 minutes to read and 20 to do, 90 with everything; 1 min 15 s to run"
    notebook = build_notebook(LESSON, checkout)
    assert f"*It takes:* {said} on two cores." in title(notebook)
    (row,) = [row for row in lesson_table("", checkout).splitlines() if LESSON.slug in row]
    assert row.endswith(f"| {said} |")
    minutes.write_times(notebook.cells, stored)
    assert title(notebook) == title(build_notebook(LESSON, checkout)), "writing twice changes nothing"


def test_lesson_00_says_how_long_the_core_of_a_lesson_takes():
    source = (project_root() / "notebooks" / "src" / f"{LESSONS[0].name}.py").read_text(encoding="utf-8")
    low, high = map(int, re.search(r"core takes (\d+) to (\d+) minutes", source).groups())
    cores = [times.core for name, times in stored_times(project_root()).items() if name != LESSONS[0].name]
    assert abs(min(cores) - low) <= 5 and abs(max(cores) - high) <= 5


def test_a_title_without_the_line_is_left_alone():
    cells = jupytext.reads("# %% [markdown]\n# # Masks\n", fmt="py:percent").cells
    minutes.write_times(cells, Times(reading=1, doing=2, everything=3, seconds=4))
    assert cells[0].source == "# Masks"


def test_every_lesson_says_how_long_it_takes_and_what_is_stored_is_counted_from_it(lesson):
    times = stored_times(project_root())[lesson.name]
    cells = published(lesson).cells
    counted = minutes.times_of(lesson, cells, times.seconds)
    again = f"counted otherwise than stored: run `tinytx-course publish {lesson.number:02d}`"
    assert abs(counted.everything - times.everything) <= 1 >= abs(counted.core - times.core), again
    assert f"*It takes:* {times} on two cores." in cells[0].source, again
