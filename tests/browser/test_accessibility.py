"""axe-core finds no violation: on a page of each explorer, and on the page of each lesson, in both themes."""

import json
from pathlib import Path

import nbformat
import pytest

from tests.browser.cases import write_page
from tinytx_course.building.notebooks import Run
from tinytx_course.lessons import LESSONS
from tinytx_course.site.pages import index_page
from tinytx_course.site.pages import page as lesson_page

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))
_RUN = """axe.run(document, { resultTypes: ['violations'] }).then(found => JSON.stringify(
  found.violations.map(v => [v.id, v.help,
    v.nodes.slice(0, 3).map(n => n.html.slice(0, 160) + ' ' + n.failureSummary)])))"""


def violations(page, address, dark):
    """Open a page in a theme and return what axe finds."""
    page.size(1200, 1000, dark=dark)
    page.open(address)
    page.settle()
    page.evaluate(AXE.read_text(encoding="utf-8") + "\n;1")
    return json.loads(page.evaluate(_RUN))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_an_explorer_has_no_violation(case, page, tmp_path, dark):
    address = write_page(case.make(), tmp_path / "page.html").as_uri()
    assert violations(page, address, dark) == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_page_of_a_lesson_has_no_violation_and_asks_for_nothing(page, tmp_path, path, dark):
    lesson = next(lesson for lesson in LESSONS if lesson.name == path.stem)
    run = Run(lesson=lesson, notebook=nbformat.read(path, 4), seconds=1.0, peak_bytes=0, failure=None)
    (tmp_path / "lesson.html").write_text(lesson_page(run, None, None), encoding="utf-8")
    assert violations(page, (tmp_path / "lesson.html").as_uri(), dark) == []
    assert page.outside() == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_first_page_of_the_site_has_no_violation(page, tmp_path, dark):
    (tmp_path / "index.html").write_text(index_page([], tmp_path), encoding="utf-8")
    assert violations(page, (tmp_path / "index.html").as_uri(), dark) == []
