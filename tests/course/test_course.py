"""The course: runs in order, tells what failed and goes on, and leaves the checkout as it was."""

import json

import nbformat
import pytest

pytest.importorskip("jupytext")
pytest.importorskip("latex2mathml")

from tinytx_course.building import course, notebooks
from tinytx_course.lessons import pick_lessons

FIRST = """# %% [markdown]
# # 00 · Start here
# A formula $\\\\frac{a}{b}$ and [the next](07_pretraining.ipynb#part).
#
# ## A part

# %%
import os
print("budget", os.environ.get("TINYTX_BUDGET"))
print("here", os.getcwd())

# %%
from tinytx_course import plots
fig, ax = plots.heatmap([[1.0, 0.0]])
plots.show(fig, alt="two cells, the left one dark", name="00_two_cells")
""".replace("\\\\", "\\")
SECOND = """# %%
1 + 1

# %%
raise ValueError("a mistake on purpose")

# %%
print("never reached")
"""
THIRD = """# %%
print("still runs")
"""


@pytest.fixture
def checkout(tmp_path, root, monkeypatch):
    """A small course in a folder of its own, with the package of this checkout."""
    (tmp_path / "notebooks" / "src").mkdir(parents=True)
    for name, text in {"00_start_here": FIRST, "07_pretraining": SECOND, "08_transfer": THIRD}.items():
        (tmp_path / "notebooks" / "src" / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(root))
    return tmp_path


def files_in(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_a_failing_notebook_is_told_and_the_next_one_runs(checkout, capsys):
    before = files_in(checkout)
    report = course.run_course(budget="smoke", root=checkout)
    told = capsys.readouterr().err
    assert not report.ok
    assert [run.failure is None for run in report.runs] == [True, False, True]
    for words in (
        "07_pretraining",
        "FAILED",
        'raise ValueError("a mistake on purpose")',
        "a mistake on purpose",
    ):
        assert words in told
    assert "2 of 3 notebooks ran to their end" in told
    assert report.runs[1].failure.cell == 1
    json.dumps(report.to_dict())
    assert all(run["peak_memory_mib"] > 10 and run["seconds"] > 0 for run in report.to_dict()["notebooks"])
    new = files_in(checkout) - before
    assert all(path.startswith(("build/", "site/")) for path in new), new

    page = (checkout / "site" / "00_start_here.html").read_text(encoding="utf-8")
    assert "budget smoke" in page
    assert "<mfrac>" in page and "$" not in page.split("<main")[1].split("</main>")[0]
    assert 'href="07_pretraining.html#part"' in page, "links between notebooks become links between pages"
    assert 'alt="two cells, the left one dark"' in page
    assert '<a href="#A-part">A part</a>' in page
    assert 'rel="next" href="07_pretraining.html"' in page
    failed = (checkout / "site" / "07_pretraining.html").read_text(encoding="utf-8")
    assert "a mistake on purpose" in failed and "did not run" in failed
    index = (checkout / "site" / "index.html").read_text(encoding="utf-8")
    assert "a cell failed" in index and 'href="08_transfer.html"' in index
    assert 'href="03_positions.html"' not in index
    for text in (page, failed, index):
        assert 'src="http' not in text and "<script" not in text and "@import" not in text


@pytest.mark.slow
def test_publishing_twice_gives_the_same_bytes_and_no_path(checkout):
    for name in ("07_pretraining", "08_transfer"):
        (checkout / "notebooks" / "src" / f"{name}.py").unlink()
    (checkout / "notebooks" / "09_gone.ipynb").write_text("{}")
    written = []
    for _ in range(2):
        assert course.publish(root=checkout).ok
        written.append((checkout / "notebooks" / "00_start_here.ipynb").read_bytes())
    assert written[0] == written[1]
    assert str(checkout).encode() not in written[0]
    assert not (checkout / "notebooks" / "09_gone.ipynb").exists(), "a notebook without a source goes"
    assert files_in(checkout / "figures") == {"00_two_cells.png", "00_two_cells.svg"}


def test_a_notebook_too_large_is_not_published(checkout, monkeypatch):
    monkeypatch.setattr(course, "LARGEST_NOTEBOOK", 100)
    (lesson,) = pick_lessons(["8"], checkout)
    notebook = notebooks.build_notebook(lesson, checkout)
    run = notebooks.Run(lesson=lesson, notebook=notebook, seconds=1.0, peak_bytes=1, failure=None)
    monkeypatch.setattr(course, "_run_all", lambda *_, **__: [run])
    with pytest.raises(ValueError, match="must stay below 100 bytes, got .* for 08_transfer"):
        course.publish(["8"], checkout)
    assert not (checkout / "notebooks" / "08_transfer.ipynb").exists()


def test_a_learners_copy_is_made_once_and_never_overwritten(checkout):
    assert len(course.copy_for_learner(checkout)) == 3
    mine = checkout / "work" / "00_start_here.ipynb"
    mine.write_text("my own notes")
    (checkout / "work" / "08_transfer.ipynb").unlink()
    assert [path.name for path in course.copy_for_learner(checkout)] == ["08_transfer.ipynb"]
    assert mine.read_text() == "my own notes"
    copy = nbformat.read(checkout / "work" / "07_pretraining.ipynb", 4)
    assert all(cell.execution_count is None and not cell.outputs for cell in copy.cells)


def test_building_twice_gives_equal_notebooks_and_an_inserted_cell_moves_no_other_id(checkout):
    (lesson,) = pick_lessons(["7"], checkout)
    once, twice = (notebooks.build_notebook(lesson, checkout) for _ in range(2))
    assert nbformat.writes(once) == nbformat.writes(twice)
    source = checkout / "notebooks" / "src" / "07_pretraining.py"
    source.write_text("# %%\nprint('new')\n\n# %%\n1 + 1\n\n" + SECOND)
    longer = notebooks.build_notebook(lesson, checkout)
    ids = [cell.id for cell in longer.cells]
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
    notebook = v4.new_notebook(
        cells=[cell], metadata={"widgets": {}, "language_info": {"name": "python", "version": "3.11.7"}}
    )
    cell = notebooks.normalise(notebook, checkout).cells[0]
    assert [output.output_type for output in cell.outputs] == ["stream", "display_data"]
    assert cell.outputs[0].text == "one two build\n"
    assert cell.outputs[1].data == {"text/plain": "Slider()", "text/html": "<p>readable</p>"}
    assert "execution" not in cell.metadata
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert notebook.metadata.language_info == {"name": "python"}


def test_figures_are_written_only_when_publishing(checkout, monkeypatch):
    monkeypatch.setenv("TINYTX_FIGURES", "anywhere")
    assert "TINYTX_FIGURES" not in notebooks.kernel_environment(checkout)
    here = notebooks.kernel_environment(checkout, figures=checkout / "f", budget="study")
    assert here["TINYTX_FIGURES"] == str(checkout / "f")
    assert here["TINYTX_BUDGET"] == "study"
    assert here["PYTHONPATH"].startswith(str(checkout))
    assert int(here["OMP_NUM_THREADS"]) >= 1
