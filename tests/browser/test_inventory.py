"""The inventory in a browser: no wider than a phone, nothing loaded, on paper a known number of pages."""

import base64
import re

import pytest

from tinytx_course.inventory import write_forms

PAGES = {"index": 3, "form-a": 14, "form-b": 14, "answer-sheet": 1, "key": 20}  # at most so many sheets of A4


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inventory")
    write_forms(folder)
    return folder


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_a_phone_and_loads_nothing(page, folder, name, dark):
    page.size(390, 800, dark=dark)
    page.open((folder / f"{name}.html").as_uri())
    page.settle()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.outside() == []


@pytest.mark.parametrize("name", PAGES)
def test_it_prints_on_a4_in_black_on_white(page, folder, name):
    page.size(1000, 800, dark=True)
    page.open((folder / f"{name}.html").as_uri())
    page.settle()
    done = page.call("Page.printToPDF", preferCSSPageSize=True)
    paper = base64.b64decode(done["data"])
    sheets = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", paper)
    assert 1 <= len(sheets) <= PAGES[name]
    assert all((round(float(w)), round(float(h))) == (595, 842) for w, h in sheets)


def test_a_question_is_not_torn_apart_between_sheets(page, folder):
    page.open((folder / "form-a.html").as_uri())
    whole = page.evaluate(
        "[...document.querySelectorAll('.item')].every(one => getComputedStyle(one).breakInside === 'avoid')"
    )
    assert whole
