"""The explorer of the next word: stored answers in a page, Python's in JupyterLab."""

import pytest

import tinytx_course as course
from tests.browser.cases import write_page

SUMMARY = "document.querySelector('.tx-say').textContent"
NOTES = "[...document.querySelectorAll('.tx-note')].map(e => e.textContent).join(' ')"
FOCUSED = "document.activeElement.querySelector('.tx-next-word')?.textContent"


def write(page, text):
    """Put text in the place of the beginning, and press Enter."""
    page.focus(".tx-field")
    page.evaluate("document.querySelector('.tx-field').select()")
    page.call("Input.insertText", text=text)
    page.press("Enter")
    page.settle()


@pytest.fixture
def opened(page, tmp_path):
    """A page with a few stored answers."""
    page.open(write_page(course.widgets.next_word(n_stored=20), tmp_path / "page.html").as_uri())
    page.wait("document.querySelector('.tx-say')?.textContent")


def test_keys_alone_go_on_and_back(opened, page):
    page.focus(".tx-options [tabindex='0']")
    page.press("ArrowDown")
    page.press("Enter")
    page.settle()
    assert page.evaluate(SUMMARY).startswith("After “Bonjour les lecteurs” 1 word may follow in the world.")
    assert page.evaluate(FOCUSED) == ","
    page.press("Backspace")
    page.settle()
    assert page.evaluate(SUMMARY).startswith("After “Bonjour les” 2 words may follow in the world.")
    assert page.evaluate("document.querySelector('.tx-field').value") == "Bonjour les"


def test_a_page_without_a_kernel_says_so_and_how_far_it_goes(opened, page):
    assert "No kernel here: 20 stored beginnings answer." in page.evaluate(NOTES)
    write(page, "Bonjour les amis")
    assert page.evaluate(SUMMARY).startswith("After “Bonjour les amis” 1 word")
    write(page, "Bonjour le monde")
    assert "The language never says “le” after “Bonjour”." in page.evaluate(SUMMARY)
    assert page.evaluate("document.querySelector('.tx-problem').innerText").startswith("The language never")
    write(page, "Le roman est si beau")
    assert "is not among the stored answers" in page.evaluate(SUMMARY)
    write(page, "")
    assert page.evaluate(SUMMARY).startswith("At the beginning 23 words may follow")
    assert page.evaluate("document.querySelector('.tx-problem').hidden")


def test_in_a_notebook_python_answers_for_what_is_not_stored(page, labserver):
    source = "import tinytx_course as course\nexplorer = course.widgets.next_word(n_stored=3)\nexplorer"
    labserver.write("asking.ipynb", source)
    labserver.open(page, "asking.ipynb")
    page.wait("document.querySelector('.tx-say')?.textContent", 90)
    page.wait(f"({NOTES}).includes('Python answers')")
    write(page, "J’ai adoré cette saga. La fin est belle. La")
    page.wait(f"{SUMMARY}.startsWith('After “J\\'ai adoré cette saga. La fin est belle. La” ')")
    assert "“saga”" in page.evaluate(SUMMARY)
    assert labserver.ask(page, "explorer.words")[-1] == "La"
    write(page, "bonjour")
    page.wait(f"{SUMMARY}.includes('Did you mean “Bonjour”?')")
    write(page, "bonjour")
    page.settle()
    assert "Asking" not in page.evaluate(NOTES)
    assert page.evaluate(SUMMARY).startswith(labserver.ask(page, "explorer.problem"))
