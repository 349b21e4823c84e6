"""Explorers in a real JupyterLab: state goes both ways, and Lab's shortcuts do not interfere."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys

import nbformat
import pytest

from tests.browser.cases import CASES
from tests.browser.lab import Lab, free_port, wait_until_open
from tests.browser.test_pages import relative
from tinytx_course.building.notebooks import normalise


@pytest.fixture(scope="module")
def opened(browser, labserver):
    """From an explorer to a notebook that shows it twice, with few others: anywidget gives a model 2 s."""
    kinds, pages = list(CASES), {}

    def page_of(kind):
        first = kinds.index(kind) // 4 * 4
        if first not in pages:
            few = kinds[first : first + 4]
            imports = "import tinytx as tx, tinytx_course as course"
            cells = [cell for one in few for cell in (f"{one} = {CASES[one].code}\n{one}", one)]
            labserver.write(f"explorers-{first}.ipynb", imports, *cells)
            check()
            page = pages[first] = stack.enter_context(browser.page())
            labserver.open(page, f"explorers-{first}.ipynb")
            page.wait(f"document.querySelectorAll('.jp-OutputArea .tx-say').length === {2 * len(few)}", 180)
        return pages[first]

    def check():
        for page in pages.values():
            assert page.errors == []
            assert [url for url in page.outside() if "//127.0.0.1" not in url] == []

    with contextlib.ExitStack() as stack:
        yield page_of
        check()


def said(page, kind):
    """Return what the two views of an explorer say; they must say the same."""
    page.settle()
    first, second = page.all(f".tx[data-kind={kind}] .tx-say")
    assert first == second
    return first


@pytest.mark.parametrize("kind", CASES)
def test_state_goes_both_ways_and_shortcuts_of_lab_do_nothing(kind, opened, labserver):
    page, case, view = opened(kind), CASES[kind], f".tx[data-kind={kind}]"

    def value_of(trait):
        return labserver.ask(page, f"{kind}.{trait}")

    selector, key, _, trait = case.keys
    page.wait(
        f"document.querySelector({json.dumps(f'{view} {selector}')})"
    )  # a model may have to be made first
    says = f"[...document.querySelectorAll('{view} .tx-say')].map((e) => e.textContent)"
    page.wait(f"{says}.every((text, _, [one]) => text && text === one)")
    start, value, n_cells = said(page, kind), value_of(trait), labserver.n_cells(page)
    page.focus(f"{view} {selector}")
    page.press(key)
    text = said(page, kind)
    assert text != start and value_of(trait) != value
    # In command mode b inserts a cell, x cuts one, and dd deletes one.
    for letter in "bxdd":
        page.press(letter)
    assert said(page, kind) == text and labserver.n_cells(page) == n_cells
    assert page.evaluate(f"document.activeElement.closest('{view}') !== null")
    labserver.ask(page, f"setattr({kind}, {trait!r}, {value!r})")
    page.wait(f"{says}[0] === {json.dumps(start)}")
    assert said(page, kind) == start

    selector, points, trait = case.mouse
    value = value_of(trait)
    page.drag(*relative(page, f"{view} {selector}", points))
    assert said(page, kind) != start and value_of(trait) != value


def test_it_follows_the_theme_of_lab_and_not_that_of_the_system(opened):
    page, style = opened("mask"), "getComputedStyle(document.querySelector('.tx'))"
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        page.size(1200, 1000, dark="Light" in theme)
        page.evaluate(
            f"window.jupyterapp.commands.execute('apputils:change-theme', {{theme: {theme!r}}}).then(() => 1)"
        )
        page.wait(f"document.body.dataset.jpThemeName === {theme!r}")
        page.settle()
        ink = page.evaluate(f"{style}.color.match(/[0-9]+/g).map(Number)")
        assert (sum(ink[:3]) > 3 * 128) == ("Dark" in theme)
        assert page.evaluate(f"{style}.colorScheme") == ("dark" if "Dark" in theme else "light")


def test_a_published_notebook_opened_untrusted_shows_the_text(page, labserver, root):
    explorer = CASES["mask"].make()
    notebook = labserver.write("published.ipynb", "explorer")
    bundle, _ = explorer._repr_mimebundle_()
    notebook.cells[0].outputs = [nbformat.v4.new_output("execute_result", data=bundle, execution_count=1)]
    nbformat.write(normalise(notebook, root), labserver.folder / "published.ipynb")
    labserver.open(page, "published.ipynb", run=False)
    page.wait("document.querySelector('.jp-OutputArea-output')?.innerText.trim()")
    trusted = "window.jupyterapp.shell.currentWidget.content.widgets[0].model.trusted"
    assert page.evaluate(trusted) is False
    text = page.evaluate("document.querySelector('.jp-OutputArea-output').innerText")
    assert text.strip().startswith(repr(explorer))


@pytest.mark.skipif(sys.platform == "win32", reason="ends a group of processes, which Windows does not have")
def test_the_lab_of_the_course_opens_with_the_contents_and_asks_for_no_news(page, tmp_path, root):
    (tmp_path / "notebooks" / "src").mkdir(parents=True)
    shutil.copy(root / "notebooks" / "src" / "00_start_here.py", tmp_path / "notebooks" / "src")
    port, log = free_port(), tmp_path / "log"
    more = ["--no-browser", "--allow-root", f"--port={port}", "--LabApp.expose_app_in_browser=True"]
    code = f"from tinytx_course.building.course import *; open_lab(Path({str(tmp_path)!r}), {more})"
    own = {f"JUPYTER_{name}_DIR": str(tmp_path / name) for name in ("CONFIG", "DATA", "RUNTIME")}
    with log.open("wb") as lines:
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            **{"stdout": lines, "stderr": lines, "start_new_session": True, "cwd": root},
            env=os.environ | own | {"JUPYTER_TOKEN": "secret"},
        )
    try:
        running = Lab(f"http://127.0.0.1:{port}", "secret", tmp_path / "work")
        wait_until_open(running, process, log)
        page.open(f"{running.address}/lab/tree/00_start_here.ipynb?token=secret")
        page.wait("window.jupyterapp && window.jupyterapp.shell.currentWidget?.context?.isReady", 90)
        page.wait("document.querySelector('.jp-TableOfContents')?.checkVisibility()", 90)
        notebook = "window.jupyterapp.shell.currentWidget"
        page.wait(f"{notebook}.sessionContext?.session?.kernel?.status === 'idle'", 90)
        page.wait(f"{notebook}.context.model.getMetadata('language_info').version")
        page.settle()
        assert page.evaluate(f"{notebook}.context.model.dirty") is False, "only opened"
        asked = [
            url for url in page.requests if "/news" in url or "/update" in url or running.address not in url
        ]
        assert [url for url in asked if not url.startswith(("data:", "blob:", "about:"))] == []
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # the command and the server, whatever they still do
        process.wait(30)
