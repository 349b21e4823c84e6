"""The kit in a browser: no wider than a phone, nothing loaded, a handout on one sheet of A4."""

import base64
import re

import pytest

from tests.browser.test_site import violations
from tinytx_course.kit import write_parts
from tinytx_course.kit.outline import read_outlines
from tinytx_course.kit.pages import write_front
from tinytx_course.kit.teaching import write_notes
from tinytx_course.lessons import LESSONS, project_root

PAGES = (
    "index",
    "self-study",
    "schedules/index",
    "schedules/semester",
    f"notes/{LESSONS[2].name}",
    f"handouts/{LESSONS[2].name}",
    "handouts/paper-attention",
)


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    """All but the site and the slides, which have tests of their own."""
    folder, root = tmp_path_factory.mktemp("kit"), project_root()
    outlines = read_outlines(root)
    write_parts(folder, outlines, root, start="09:15", schedules=["afternoon", "semester"])
    write_notes(folder, outlines, root)
    write_front(folder)
    return folder


def sheets(page, file):
    page.size(1000, 800, dark=True)
    page.open(file.as_uri())
    page.settle()
    paper = base64.b64decode(page.call("Page.printToPDF", preferCSSPageSize=True)["data"])
    sizes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", paper)
    assert all((round(float(w)), round(float(h))) == (595, 842) for w, h in sizes)
    return len(sizes)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_a_phone_loads_nothing_and_shows_no_fault(page, kit, name):
    assert violations(page, (kit / f"{name}.html").as_uri(), widths=(390,)) == []
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.outside() == []


def test_a_handout_is_one_sheet_printed_on_both_sides(page, kit):
    counts = {one.name: sheets(page, kit / "handouts" / f"{one.name}.html") for one in LESSONS}
    assert {name: n for name, n in counts.items() if n != 2} == {}


def test_cards_work_sheet_and_answers_are_a_sheet_each_and_an_afternoon_fits_on_two(page, kit):
    assert sheets(page, kit / "handouts" / "paper-attention.html") == 3
    assert sheets(page, kit / "schedules" / "afternoon.html") <= 2
