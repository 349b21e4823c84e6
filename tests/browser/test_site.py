"""A page of the site with all explorers in it, as `make course` writes it: alive, and free of violations."""

import nbformat
import pytest

from tests.browser.cases import CASES
from tests.browser.test_accessibility import violations
from tinytx_course.building.notebooks import Run
from tinytx_course.lessons import LESSONS
from tinytx_course.site.pages import page as lesson_page

_PROSE = "# A lesson\n\nSome `code`, and a formula: $x^2$.\n\n## A chapter\n\n| a | b |\n|---|---|\n| 1 | 2 |"
_CODE = "import tinytx as tx\n\n@property\ndef f(x: int = 0x1F, *, y='text') -> float:  # say\n    return x\n"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A lesson that shows every explorer."""
    cells = [nbformat.v4.new_markdown_cell(_PROSE), nbformat.v4.new_code_cell(_CODE)]
    printed = nbformat.v4.new_output("stream", name="stdout", text="a long line of output " * 20 + "\n")
    cells[1].outputs = [printed]
    for case in CASES.values():
        bundle, _ = case.make()._repr_mimebundle_()
        output = nbformat.v4.new_output("execute_result", data=bundle, execution_count=1)
        cells.append(nbformat.v4.new_code_cell(case.code, outputs=[output]))
    notebook = nbformat.v4.new_notebook(cells=cells)
    run = Run(lesson=LESSONS[2], notebook=notebook, seconds=1.0, peak_bytes=0, failure=None)
    path = tmp_path_factory.mktemp("site") / "lesson.html"
    path.write_text(lesson_page(run, LESSONS[1], LESSONS[3]), encoding="utf-8")
    return path.as_uri()


def test_all_explorers_live_in_one_page_without_a_request(page, address):
    page.open(address)
    page.wait(f"document.querySelectorAll('.tx-say').length === {len(CASES)}")
    page.settle()
    named = page.evaluate("[...document.querySelectorAll('.tx')].map(e => e.getAttribute('aria-label'))")
    assert named == [case.make().title for case in CASES.values()]
    assert page.outside() == []
    for width in (360, 1200):
        page.size(width, 900)
        page.settle()
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_page_has_no_violation(page, address, dark):
    assert violations(page, address, dark) == []
