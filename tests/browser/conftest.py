"""One browser for all tests here; without one they are skipped, saying what is missing."""

import pytest

from experiments.chromium import chromium, write_page
from tests.browser.cases import CASES
from tests.browser.lab import lab
from tinytx_course.machine import find_chromium


def pytest_collection_modifyitems(items):
    """Mark everything in this folder as needing a browser."""
    for item in items:
        if "tests/browser" in item.path.as_posix():
            item.add_marker(pytest.mark.browser)


def pytest_generate_tests(metafunc):
    """Run a test that asks for `case` once for each explorer."""
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", CASES.values(), ids=CASES)


@pytest.fixture(scope="session")
def browser():
    """A running Chromium."""
    pytest.importorskip("websocket", reason="needs websocket-client")
    executable = find_chromium()
    if executable is None:
        pytest.skip("needs Chromium: `make test-browser` installs it, or says how")
    with chromium(executable) as running:
        yield running


@pytest.fixture
def page(browser):
    """A tab in which nothing may go wrong."""
    with browser.page() as tab:
        yield tab
        assert tab.errors == []


@pytest.fixture
def show(page, tmp_path):
    """Return ``show(explorer)``: it opens a page on the disk that holds it, and returns its address."""

    def open_page(explorer, end="", html=None):
        address = write_page(explorer, tmp_path / "page.html", html).as_uri() + end
        page.open(address)
        page.wait("/^(?!A new model is being made)./.test(document.querySelector('.tx-say')?.textContent)")
        page.settle()
        return address

    return open_page


@pytest.fixture(scope="session")
def labserver(tmp_path_factory):
    """A JupyterLab of its own: (address with its token, folder of its notebooks)."""
    pytest.importorskip("jupyterlab")
    with lab(tmp_path_factory.mktemp("lab")) as running:
        yield running
