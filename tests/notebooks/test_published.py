"""What a published notebook must be: as its source says, checked, small, described, linked rightly."""

import json
import re
from pathlib import Path

import nbformat
import pytest

pytest.importorskip("jupytext")

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SOURCES = sorted((ROOT / "notebooks" / "src").glob("*.py"))
MARKER = "# NBVAL_CHECK_OUTPUT"
#: nbval passes silently when nothing is checked.
LEAST_CHECKED = 3
WIDGET = "application/vnd.jupyter.widget-view+json"
MACHINE_PATH = re.compile(r"(?<![\w.:/])(?:/(?:work|root|tmp|home/\w+|Users/\w+)/[\w.-]+|[A-Z]:\\\\\w+)")

ALT = re.compile(r"""alt=("[^"]{30,}"|'[^']{30,}')""")

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def code_cells(path):
    return [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]


def outputs(path):
    return [output for cell in code_cells(path) for output in cell.outputs]


def complaints_about_checks(cells):
    """Return what is wrong with the cells whose output nbval is to compare."""
    found = []
    checked = [cell for cell in cells if "NBVAL_CHECK_OUTPUT" in cell.source]
    if len(checked) < LEAST_CHECKED:
        found.append(f"{len(checked)} checked cells, at least {LEAST_CHECKED} are needed")
    for cell in checked:
        lines = cell.source.splitlines()
        code = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
        if MARKER not in lines:
            found.append(f"the marker must stand alone on its line, exactly: {lines}")
        if code and code[-1].rstrip().endswith(";"):
            found.append(f"a semicolon hides the output: {code[-1]}")
        if not cell.execution_count:
            found.append(f"never executed: {code}")
        if not cell.outputs:
            found.append(f"no output to compare: {code}")
        if any(WIDGET in output.get("data", {}) for output in cell.outputs):
            found.append(f"shows a widget: {code}")
    return found


def make_cell(source, output="1", count=1):
    kept = [nbformat.v4.new_output("stream", name="stdout", text=output)] if output else []
    return nbformat.v4.new_code_cell(source, outputs=kept, execution_count=count)


GOOD = make_cell(f"print(1)\n{MARKER}")


@pytest.mark.parametrize(
    ("cell", "complaint"),
    [
        (make_cell(f"print(1)\n{MARKER} # soon"), "stand alone"),
        (make_cell("print(1)\n#NBVAL_CHECK_OUTPUT"), "stand alone"),
        (make_cell(f"x = 1\nx;\n{MARKER}"), "semicolon"),
        (make_cell(f"print(1)\n{MARKER}", count=None), "never executed"),
        (make_cell(f"x = 1\n{MARKER}", output=None), "no output"),
    ],
)
def test_the_guard_sees_a_check_that_checks_nothing(cell, complaint):
    assert complaints_about_checks([GOOD, GOOD, GOOD]) == []
    assert any(complaint in line for line in complaints_about_checks([GOOD, GOOD, GOOD, cell]))


def test_the_guard_counts_the_checked_cells():
    assert complaints_about_checks([GOOD, GOOD, make_cell("print(1)")])


def test_every_source_is_published_and_nothing_else():
    assert [path.stem for path in NOTEBOOKS] == [path.stem for path in SOURCES], "run `make publish`"


@each_notebook
def test_checked_cells_check_something(path):
    assert complaints_about_checks(code_cells(path)) == []


@each_notebook
def test_cells_are_those_of_the_source(path):
    from tinytx_course.building.notebooks import build_notebook
    from tinytx_course.lessons import pick_lessons

    (lesson,) = pick_lessons([path.stem], ROOT)
    built, published = build_notebook(lesson, ROOT), nbformat.read(path, 4)
    assert [(cell.id, cell.cell_type, cell.source) for cell in published.cells] == [
        (cell.id, cell.cell_type, cell.source) for cell in built.cells
    ], "the source was edited: run `make publish`"


@each_notebook
def test_notebook_is_small_enough_to_open_anywhere(path):
    assert path.stat().st_size < 1_000_000


@each_notebook
def test_every_cell_ran_in_order_without_error_or_warning(path):
    cells = code_cells(path)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    for output in outputs(path):
        assert output.output_type != "error", output
        assert output.get("name") != "stderr", output.text


@each_notebook
def test_every_picture_says_what_it_shows(path):
    for output in outputs(path):
        for kind in output.get("data", {}):
            if kind.startswith("image/"):
                assert len(output.metadata.get(kind, {}).get("alt", "")) > 30, path.stem
        for tag in re.findall(r"<img\b[^>]*>", output.get("data", {}).get("text/html", "")):
            assert re.search(ALT, tag)
    for cell in nbformat.read(path, 4).cells:
        if cell.cell_type == "markdown":
            assert not re.search(r"!\[\s*\]\(", cell.source), "a picture without alt text"


def links(path):
    """Return where the text of a notebook points, in prose and in outputs."""
    texts = [cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "markdown"]
    for output in outputs(path):
        texts += [
            output.data[kind] for kind in ("text/markdown", "text/html") if kind in output.get("data", {})
        ]
    for text in texts:
        yield from re.findall(r"\]\(([^)\s]+)\)", text)
        yield from re.findall(r'href="([^"]+)"', text)


@each_notebook
def test_links_point_to_what_exists(path):
    for link in links(path):
        if not link.startswith(("https://", "#")):
            assert (path.parent / link.split("#")[0]).exists(), link


def test_the_map_in_the_first_lesson_links_every_other():
    first = NOTEBOOKS[0]
    assert {f"{path.stem}.ipynb" for path in NOTEBOOKS} <= set(links(first)), "run `make publish`"


@each_notebook
def test_no_path_of_a_machine_is_in_it(path):
    content = json.loads(path.read_text(encoding="utf-8"))
    for cell in content["cells"]:
        for output in cell.get("outputs", []):
            output.get("data", {}).pop("image/png", None)
    assert MACHINE_PATH.findall(json.dumps(content, ensure_ascii=False)) == []


@each_notebook
def test_metadata_is_the_same_on_every_machine(path):
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content["metadata"] == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    assert not any("execution" in cell["metadata"] for cell in content["cells"])


@each_notebook
def test_title_and_question_are_those_of_the_table(path):
    from tinytx_course.lessons import pick_lessons

    (lesson,) = pick_lessons([path.stem], ROOT)
    first = nbformat.read(path, 4).cells[0].source
    assert first.startswith(f"# {lesson.number:02d} · {lesson.title}\n")
    assert lesson.question in first


@each_notebook
def test_its_page_needs_no_host_and_keeps_alt_texts(path):
    pytest.importorskip("latex2mathml")
    from tinytx_course.building.notebooks import Run
    from tinytx_course.lessons import pick_lessons
    from tinytx_course.site.pages import page

    (lesson,) = pick_lessons([path.stem], ROOT)
    notebook = nbformat.read(path, 4)
    run = Run(lesson=lesson, notebook=notebook, seconds=1.0, peak_bytes=1, failure=None)
    written = page(run, None, None)
    assert not re.search(r"<script[^>]+src|<link[^>]+href=\"http|src=\"http|@import|url\(http", written)
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", written, re.S)  # explorers answer without a kernel
    n_explorers = sum(cell.source.startswith("course.widgets.") for cell in notebook.cells)
    assert bool(scripts) == bool(n_explorers)
    asking = r"\bfetch\(|XMLHttpRequest|WebSocket|sendBeacon|\bimport\(|^\s*import "
    for script in scripts:
        assert not re.search(asking, script, re.M)
        assert set(re.findall(r"https?://[\w.]+", script)) <= {"http://www.w3.org"}  # the name of SVG
    tags = re.findall(r"<img\b[^>]*>", written)
    n_figures = sum("image/png" in output.get("data", {}) for output in outputs(path))
    assert len(tags) == n_figures
    assert all(re.search(ALT, tag) for tag in tags)
    prose = re.sub(r"<script[^>]*>.*?</script>", "", written, flags=re.S)
    assert not re.search(r"(?<!\\)\$[^$<]*\\[a-z]+[^$<]*\$", prose), "a formula was left as LaTeX"
