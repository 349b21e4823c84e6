"""What a published notebook must be: as its source says, checked, small, described, linked rightly."""

import base64
import copy
import json
import re

from tests.environments import ROOT, TAG, published
from tinytx_course.building.course import LARGEST_NOTEBOOK
from tinytx_course.building.elsewhere import is_still
from tinytx_course.building.notebooks import Run, build_notebook
from tinytx_course.building.stills import with_stills
from tinytx_course.lessons import LESSONS
from tinytx_course.results import Results
from tinytx_course.site.bare import EXPLORER
from tinytx_course.site.pages import page

STILLS = ROOT / "tinytx_course" / "site" / "stills"
LEAST_CHECKED = 3
WIDGET = "application/vnd.jupyter.widget-view+json"
MACHINE_PATH = re.compile(r"(?<![\w.:/])(?:/(?:work|root|tmp|home/\w+|Users/\w+)/[\w.-]+|[A-Z]:\\\\\w+)")
ALT = re.compile(r"""alt=("[^"]{30,}"|'[^']{30,}')""")


def code_cells(lesson):
    return [cell for cell in published(lesson).cells if cell.cell_type == "code"]


def outputs(lesson):
    return [output for cell in code_cells(lesson) for output in cell.outputs]


def test_checked_cells_check_something(lesson):
    """Of nbval passes what is never checked, and what has nothing to be compared."""
    assert not re.search("NBVAL_CHECK_OUTPUT|# fmt: ", "\n".join(cell.source for cell in code_cells(lesson)))
    checked = [cell for cell in code_cells(lesson) if TAG in cell.metadata.get("tags", [])]
    assert len(checked) >= LEAST_CHECKED
    for cell in checked:
        code = [line for line in cell.source.splitlines() if not re.match(r"\s*(#|$)", line)]
        assert cell.outputs and not code[-1].rstrip().endswith(";"), cell.source
        assert not any(WIDGET in output.get("data", {}) for output in cell.outputs), cell.source


def test_every_source_is_published_and_nothing_else():
    sources = sorted(path.stem for path in (ROOT / "notebooks" / "src").glob("*.py"))
    notebooks = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))
    assert notebooks == sources == [lesson.name for lesson in LESSONS], "run `make publish`"


def test_cells_are_those_of_the_source(lesson):
    cells = [
        [(cell.id, cell.cell_type, cell.source) for cell in notebook.cells]
        for notebook in (published(lesson), build_notebook(lesson, ROOT))
    ]
    assert cells[0] == cells[1], "the source was edited: run `make publish`"


def test_every_cell_ran_in_order_without_error_or_warning(lesson):
    counts = [cell.execution_count for cell in code_cells(lesson)]
    assert counts == list(range(1, len(counts) + 1))
    for output in outputs(lesson):
        assert output.output_type != "error", output
        assert output.get("name") != "stderr", output.text


def test_it_is_known_which_words_depend_on_the_budget(lesson):
    known = Results("varying", ROOT / "results").get(lesson.name)
    assert known and {*known["cells"]} <= {cell.id for cell in code_cells(lesson)}, "run `make publish`"


def test_every_picture_says_what_it_shows(lesson):
    for output in outputs(lesson):
        for kind in output.get("data", {}):
            if kind.startswith("image/"):
                assert len(output.metadata.get(kind, {}).get("alt", "")) > 30
        for tag in re.findall(r"<img\b[^>]*>", output.get("data", {}).get("text/html", "")):
            assert ALT.search(tag)
    for cell in published(lesson).cells:
        assert cell.cell_type == "code" or not re.search(r"!\[\s*\]\(", cell.source)


def links(lesson):
    """Return where the text of a notebook points, in prose and in outputs."""
    texts = [cell.source for cell in published(lesson).cells if cell.cell_type == "markdown"]
    for output in outputs(lesson):
        texts += [
            text for kind, text in output.get("data", {}).items() if kind in ("text/markdown", "text/html")
        ]
    return [link for text in texts for link in re.findall(r"\]\(([^)\s]+)\)|href=\"([^\"]+)\"", text)]


def test_links_point_to_what_exists(lesson):
    for link in map("".join, links(lesson)):
        assert link.startswith(("https://", "#")) or (ROOT / "notebooks" / link.split("#")[0]).exists(), link


def test_the_map_in_the_first_lesson_links_every_other():
    first, *others = LESSONS
    wanted = {f"{lesson.name}.ipynb" for lesson in others}
    assert wanted <= set(map("".join, links(first))), "run `make publish`"


def test_it_is_small_and_the_same_on_every_machine(lesson):
    path = ROOT / "notebooks" / f"{lesson.name}.ipynb"
    assert path.stat().st_size < LARGEST_NOTEBOOK
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content["metadata"] == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    assert not any("execution" in cell["metadata"] for cell in content["cells"])
    for cell in content["cells"]:
        for output in cell.get("outputs", []):
            output.get("data", {}).pop("image/png", None)
    assert MACHINE_PATH.findall(json.dumps(content, ensure_ascii=False)) == []


def test_title_and_question_are_those_of_the_table(lesson):
    first = published(lesson).cells[0].source
    assert first.startswith(f"# {lesson.number:02d} · {lesson.title}\n") and lesson.question in first


def test_each_explorer_has_its_picture_for_code_hosts_once(lesson):
    for cell in code_cells(lesson):
        page = "".join(one.get("data", {}).get("text/html", "") for one in cell.outputs)
        pictures = [base64.b64decode(one.data["image/png"]) for one in cell.outputs if is_still(one)]
        wanted = [
            (STILLS / f"{lesson.name[:2]}-{kind}.png").read_bytes() for kind, *_ in EXPLORER.findall(page)
        ]
        assert pictures == wanted, "run `python -m tinytx_course.building.stills`"
    assert with_stills(copy.deepcopy(published(lesson)), lesson.name) == published(lesson)


def test_its_page_needs_no_host_and_shows_pictures_with_alt_texts(lesson):
    written = page(Run(lesson=lesson, notebook=published(lesson)))
    assert not re.search(r"<link[^>]+href=\"http|src=\"http|@import|url\(http", written)
    neighbours = set(re.findall(r"<script[^>]+src=\"([^\"]*)\"", written))  # files next to the page
    assert {"site.js"} <= neighbours <= {"site.js", "explorers.js", "engine.js", "training.js"}
    assert len(neighbours) == written.count("<script src=")
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", written, re.S)  # explorers answer without a kernel
    alive = re.compile(r"^course\.(widgets\.|parsons|predict|quiz|recall|resolve)", re.M)
    assert ('type="module"' in written) == any(alive.search(cell.source) for cell in code_cells(lesson))
    requests = r"\bfetch\(|XMLHttpRequest|WebSocket|sendBeacon|\bimport\(|^\s*import "
    for script in scripts:
        assert not re.search(requests, script, re.M)
        assert set(re.findall(r"https?://[\w.]+", script)) <= {"http://www.w3.org"}  # the name of SVG
    tags = re.findall(r"<img (?!src=\"stills/)[^>]*>", written)  # apart from the still of the explorer
    n_figures = sum("image/png" in one.get("data", {}) for one in outputs(lesson) if not is_still(one))
    assert len(tags) == n_figures
    assert all(ALT.search(tag) for tag in tags)
    prose = re.sub(r"<script[^>]*>.*?</script>", "", written, flags=re.S)
    assert not re.search(r"(?<!\\)\$[^$<]*\\[a-z]+[^$<]*\$", prose), "a formula was left as LaTeX"
