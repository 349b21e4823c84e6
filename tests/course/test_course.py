"""The course as a whole: failures are reported, answers are never lost, publishing gives equal bytes."""

import json
import re

import nbformat
import pytest

from tinytx_course.building import course, notebooks
from tinytx_course.lessons import LESSONS, stored_times
from tinytx_course.results import read_results

FIRST, SECOND, THIRD = LESSONS[0], LESSONS[7], LESSONS[8]
SOURCES = {
    FIRST: rf"""# %% [markdown]
# # 00 · Start here
# A formula $\frac{{a}}{{b}}$ and [the next]({SECOND.name}.ipynb#part).
#
# ## A part

# %%
import os
print("budget", os.environ.get("TINYTX_BUDGET"))
print("here", os.getcwd())

# %%
from tinytx_course import plots
fig, ax = plots.heatmap([[1.0, 0.0]])
plots.show(fig, "00_two_cells", alt="two cells, the left one dark")
""",
    SECOND: "# %%\n1 + 1\n\n# %%\nraise ValueError('on purpose')\n\n# %%\nprint('never reached')\n",
    THIRD: """# %%
print('still runs')

# %%
import ipywidgets
_ = ipywidgets.interact(lambda n: print("control at", n), n=(0, 8))
""",
}


@pytest.fixture
def checkout(tmp_path, root, monkeypatch):
    """A small course in a folder of its own, with the package of this checkout."""
    (tmp_path / "notebooks" / "src").mkdir(parents=True)
    for lesson, text in SOURCES.items():
        (tmp_path / "notebooks" / "src" / f"{lesson.name}.py").write_text(text, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(root))
    return tmp_path


def files_in(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_a_failing_notebook_is_reported_and_the_next_one_runs(checkout, capsys):
    before = files_in(checkout)
    report = course.run_course(budget="smoke", root=checkout)
    assert [run.failure is None for run in report.runs] == [True, False, True] and not report.ok
    for words in ("cell 2", "raise ValueError('on purpose')", "ValueError: on purpose"):
        assert words in report.runs[1].failure
    assert report.runs[1].failure in capsys.readouterr().err
    values = json.loads(json.dumps(report.to_dict()))
    assert all(run["peak_memory_mib"] > 10 and run["seconds"] > 0 for run in values["notebooks"])
    assert all(path.startswith(("build/", "site/")) for path in files_in(checkout) - before)

    pages = {
        lesson: (checkout / "site" / f"{lesson.name}.html").read_text(encoding="utf-8") for lesson in SOURCES
    }
    first, failed = pages[FIRST], pages[SECOND]
    assert "budget smoke" in first and 'alt="two cells, the left one dark"' in first
    assert "<mfrac>" in first and "$" not in first.split("<main")[1].split("</main>")[0]
    assert f'href="{SECOND.name}.html#part"' in first, "links between notebooks become links between pages"
    assert '<a href="#A-part">A part</a>' in first and f'rel="next" href="{SECOND.name}.html"' in first
    assert "control at 4" in pages[THIRD], "in an output of the cell, which a page shows"
    assert "on purpose" in failed and 'class="failed"' in failed
    index = report.index.read_text(encoding="utf-8")
    assert f'class="card failed" href="{SECOND.name}.html"' in index
    assert f'href="{LESSONS[3].name}.html"' not in index
    for text in (*pages.values(), index):
        assert 'src="http' not in text and "@import" not in text


@pytest.mark.slow
def test_the_first_page_is_there_while_other_lessons_run(checkout, capsys):
    page = checkout / "site" / f"{FIRST.name}.html"
    waiting = f"""# %%
import pathlib, time
for _ in range(600):
    if pathlib.Path({str(page)!r}).is_file():
        break
    time.sleep(0.1)
else:
    raise RuntimeError("the first page is not there")
"""
    for lesson, text in ((FIRST, "# %%\n'first'\n"), (SECOND, waiting)):
        (checkout / "notebooks" / "src" / f"{lesson.name}.py").write_text(text, encoding="utf-8")
    report = course.run_course(budget="smoke", root=checkout)
    assert report.ok and [run.lesson for run in report.runs] == [FIRST, SECOND, THIRD]
    said = capsys.readouterr().err
    assert said.index(f"open {page} while") < said.index(SECOND.name) and "3 of 3 notebooks" in said


@pytest.mark.parametrize("given", ["", None])
def test_kernels_side_by_side_share_the_cores(root, monkeypatch, given):
    monkeypatch.delenv("OMP_NUM_THREADS")
    if given is not None:  # set to nothing is not set
        monkeypatch.setenv("OMP_NUM_THREADS", given)
    monkeypatch.setattr(notebooks, "usable_cores", lambda: 6)
    threads = [notebooks.kernel_environment(root, at_once=n)["OMP_NUM_THREADS"] for n in (1, 2, 9)]
    assert threads == ["6", "3", "1"]


@pytest.mark.slow
def test_publishing_twice_gives_the_same_bytes_and_no_path(checkout, monkeypatch):
    for lesson in (SECOND, THIRD):
        (checkout / "notebooks" / "src" / f"{lesson.name}.py").unlink()
    (checkout / "notebooks" / "09_gone.ipynb").write_text("{}")
    written = []
    for _ in range(2):
        assert course.publish(root=checkout).ok
        written.append((checkout / "notebooks" / f"{FIRST.name}.ipynb").read_bytes())
        assert read_results("varying", checkout / "results").data.keys() == {FIRST.name}
        monkeypatch.setattr(course, "_store_varying", lambda *_: None)  # the same again takes long
    assert written[0] == written[1] and str(checkout).encode() not in written[0]
    assert not (checkout / "notebooks" / "09_gone.ipynb").exists(), "a notebook without a source is removed"
    assert files_in(checkout / "figures") == {"00_two_cells.png", "00_two_cells.svg"}
    ((name, times),) = stored_times(checkout).items()
    assert (name, times.reading, times.doing) == (FIRST.name, 3, 0) and times.seconds >= 5


def test_a_notebook_too_large_is_not_published(checkout):
    cells = [nbformat.v4.new_markdown_cell("x" * course.LARGEST_NOTEBOOK)]
    run = notebooks.Run(lesson=THIRD, notebook=nbformat.v4.new_notebook(cells=cells))
    with pytest.raises(ValueError, match=f"1,000,000 .*{THIRD.name}"):
        course.write_published(run, checkout)
    assert not (checkout / "notebooks" / f"{THIRD.name}.ipynb").exists()


# ---- learners' copies


def test_a_learners_copy_is_made_once_and_never_overwritten(checkout):
    assert len(course.copy_for_learner(checkout)) == 3
    mine, deleted = (checkout / "work" / f"{lesson.name}.ipynb" for lesson in (FIRST, THIRD))
    mine.write_text("my own notes")
    deleted.unlink()
    assert course.copy_for_learner(checkout) == [deleted]
    assert mine.read_text() == "my own notes"
    copy = nbformat.read(checkout / "work" / f"{SECOND.name}.ipynb", 4)
    assert all(cell.execution_count is None and not cell.outputs for cell in copy.cells)


def test_opening_the_lab_sets_copies_of_an_earlier_edition_aside_once_and_loses_nothing(
    checkout, monkeypatch, capsys
):
    monkeypatch.setattr("sys.executable", "true")  # JupyterLab itself is tried in tests/browser
    work, name = checkout / "work", f"{FIRST.name}.ipynb"
    course.copy_for_learner(checkout)
    (work / "earlier").mkdir()
    texts = {name: "my answers", "02_my_notes.ipynb": "no lesson", f"earlier/{name}": "set aside before"}
    for place, text in texts.items():
        (work / place).write_text(text, encoding="utf-8")
    with (work / f"{SECOND.name}.ipynb").open("a", encoding="utf-8") as mine:
        mine.write("\n")
    before = files_in(work)
    for n_moved, n_new in ((1, 1), (0, 0)):
        assert course.open_lab(checkout) == 0
        lines = capsys.readouterr().err.splitlines()
        *moved, copied = [line for line in lines if not line.startswith("you are root")]
        assert len(moved) == n_moved and f"{n_new} new" in copied
    moved = {f"earlier/{FIRST.name}-2.ipynb"}
    assert {name for name in files_in(work) if name.endswith(".ipynb")} == before | moved
    assert (work / f"earlier/{FIRST.name}-2.ipynb").read_text(encoding="utf-8") == texts.pop(name)
    assert all((work / place).read_text(encoding="utf-8") == text for place, text in texts.items())
    monkeypatch.setattr(course, "_OF_THIS_EDITION", re.compile("none"))
    assert len(course.set_earlier_aside(checkout)) == 3


# ---- building and normalising


def test_building_twice_gives_equal_notebooks_and_an_inserted_cell_changes_no_other_id(checkout):
    once, twice = (notebooks.build_notebook(SECOND, checkout) for _ in range(2))
    assert nbformat.writes(once) == nbformat.writes(twice)
    source = checkout / "notebooks" / "src" / f"{SECOND.name}.py"
    source.write_text("# %%\nprint('new')\n\n# %%\n1 + 1\n\n" + SOURCES[SECOND])
    ids = [cell.id for cell in notebooks.build_notebook(SECOND, checkout).cells]
    assert len(set(ids)) == len(ids), "two equal cells have ids of their own"
    assert {cell.id for cell in once.cells} <= set(ids)


def test_normalising_leaves_out_what_belongs_to_one_machine(checkout):
    v4 = nbformat.v4
    widget = {"application/vnd.jupyter.widget-view+json": {}, "text/plain": "Slider()"}
    outputs = [
        v4.new_output("stream", name="stdout", text="one "),
        v4.new_output("stream", name="stdout", text=f"two {checkout}/build\n"),
        v4.new_output("display_data", data=dict(widget)),
        v4.new_output("display_data", data={**widget, "text/html": "<p>readable</p>"}),
    ]
    cell = v4.new_code_cell("x", outputs=outputs, metadata={"execution": {"iopub.status.busy": "now"}})
    language = {"name": "python", "version": "3.11.7"}
    notebook = v4.new_notebook(cells=[cell], metadata={"widgets": {}, "language_info": language})
    cell = notebooks.normalise(notebook, checkout).cells[0]
    assert [output.output_type for output in cell.outputs] == ["stream", "display_data"]
    assert cell.outputs[0].text == "one two build\n"
    assert cell.outputs[1].data == {"text/plain": "Slider()", "text/html": "<p>readable</p>"}
    assert "execution" not in cell.metadata
    assert notebook.metadata.keys() == {"kernelspec", "language_info"}
    assert notebook.metadata.language_info == {"name": "python"}


def test_figures_are_written_only_when_publishing(checkout, monkeypatch):
    monkeypatch.setenv("TINYTX_FIGURES", "anywhere")
    assert "TINYTX_FIGURES" not in notebooks.kernel_environment(checkout)
    here = notebooks.kernel_environment(checkout, figures=checkout / "f")
    assert here["TINYTX_FIGURES"] == str(checkout / "f") and here["PYTHONPATH"].startswith(str(checkout))
