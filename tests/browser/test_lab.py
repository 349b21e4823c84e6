"""Explorers in a real JupyterLab: they answer, the kernel knows, and Lab's shortcuts stay out of the way."""

import json

import nbformat
import pytest

from tests.browser.cases import CASES
from tests.browser.test_pages import relative
from tinytx_course.building.notebooks import normalise

SUMMARY = "document.querySelector('.jp-OutputArea .tx-say').textContent"


@pytest.fixture
def opened(case, page, labserver):
    """A notebook that shows the explorer twice, run."""
    kind = next(name for name, known in CASES.items() if known is case)
    labserver.write(f"{kind}.ipynb", f"import tinytx as tx\nexplorer = {case.code}\nexplorer", "explorer")
    labserver.open(page, f"{kind}.ipynb")
    page.wait("document.querySelectorAll('.jp-OutputArea .tx-say').length === 2", 90)
    return labserver


def test_it_answers_and_the_kernel_knows(opened, case, page):
    assert page.evaluate(SUMMARY) == opened.ask(page, "explorer.describe()")
    selector, key, back, trait = case.keys
    before, n_cells = opened.ask(page, f"explorer.{trait}"), opened.n_cells(page)
    page.focus(selector)
    page.press(key)
    page.settle()
    after = opened.ask(page, f"explorer.{trait}")
    assert after != before
    # In command mode b inserts a cell, x cuts one, and dd deletes one.
    for letter in "bxdd":
        page.press(letter)
    page.settle()
    assert opened.n_cells(page) == n_cells
    assert page.evaluate("document.activeElement.closest('.tx') !== null")
    assert opened.ask(page, f"explorer.{trait}") == after
    assert page.evaluate(SUMMARY) == opened.ask(page, "explorer.describe()")

    selector, points, trait = case.mouse
    before = opened.ask(page, f"explorer.{trait}")
    page.drag(*relative(page, selector, points))
    page.settle()
    assert opened.ask(page, f"explorer.{trait}") != before
    assert page.evaluate(SUMMARY) == opened.ask(page, "explorer.describe()")
    assert [url for url in page.outside() if "//127.0.0.1" not in url] == []


def test_python_moves_the_page_and_a_second_view_shows_the_same(opened, case, page):
    selector, key, _, trait = case.keys
    page.focus(selector)
    page.press(key)
    page.settle()
    value = opened.ask(page, f"explorer.{trait}")
    fresh = case.make()
    assert getattr(fresh, trait) != value
    opened.ask(page, f"setattr(explorer, {trait!r}, {getattr(fresh, trait)!r})")
    page.wait(f"{SUMMARY} === {json.dumps(opened.ask(page, 'explorer.describe()'))}")
    page.focus(selector)
    page.press(key)
    page.settle()
    texts = page.evaluate("[...document.querySelectorAll('.tx-say')].map(e => e.textContent)")
    assert texts == [opened.ask(page, "explorer.describe()")] * 2


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_it_follows_the_theme_of_lab_and_not_that_of_the_system(opened, page, theme):
    page.size(1200, 1000, dark="Light" in theme)
    page.evaluate(
        f"window.jupyterapp.commands.execute('apputils:change-theme', {{theme: {theme!r}}}).then(() => 1)"
    )
    page.wait(f"document.body.dataset.jpThemeName === {theme!r}")
    page.settle()
    ink = page.evaluate("getComputedStyle(document.querySelector('.tx')).color.match(/[0-9]+/g).map(Number)")
    assert (sum(ink[:3]) > 3 * 128) == ("Dark" in theme)
    scheme = page.evaluate("getComputedStyle(document.querySelector('.tx')).colorScheme")
    assert scheme == ("dark" if "Dark" in theme else "light")


def test_a_published_notebook_opened_untrusted_shows_picture_and_summary(case, page, labserver, root):
    explorer = case.make()
    notebook = labserver.write("published.ipynb", "explorer")
    bundle = explorer._repr_mimebundle_()
    notebook.cells[0].outputs = [nbformat.v4.new_output("execute_result", data=bundle, execution_count=1)]
    nbformat.write(normalise(notebook, root), labserver.folder / "published.ipynb")
    assert (labserver.folder / "published.ipynb").stat().st_size < 200_000
    labserver.open(page, "published.ipynb", run=False)
    page.wait("document.querySelector('.jp-OutputArea-output img')?.naturalWidth > 200")
    trusted = "window.jupyterapp.shell.currentWidget.content.widgets[0].model.trusted"
    assert page.evaluate(trusted) is False
    text = page.evaluate("document.querySelector('.jp-OutputArea-output').innerText")
    assert text.strip() == f"{explorer.title}. {explorer.describe()}"
