"""Kit, votes and inventory in a browser: no wider than a phone, nothing loaded, sheets of A4, led by keys."""

import base64
import re

import pytest

from tests.browser.test_site import violations
from tinytx_course.lessons import LESSONS

LESSON = LESSONS[2].name
PAGES = {
    "kit": (
        *("index", "self-study", "schedules/index", "schedules/semester"),
        *(f"notes/{LESSON}", f"handouts/{LESSON}", "handouts/paper-attention"),
    ),
    "inventory": ("index", "form-a", "form-b", "answer-sheet", "key"),
    "votes": (LESSON, "index", "answers"),
}
#: The fewest and the most sheets of A4.
SHEETS = {
    **{("kit", f"handouts/{one.name}"): (2, 2) for one in LESSONS},  # one, printed on both sides
    ("kit", "handouts/paper-attention"): (3, 3),  # cards, work sheet and answers
    ("kit", "schedules/afternoon"): (1, 2),
    ("inventory", "index"): (1, 3),
    ("inventory", "form-a"): (1, 14),
    ("inventory", "form-b"): (1, 14),
    ("inventory", "answer-sheet"): (1, 1),
    ("inventory", "key"): (1, 20),
    ("votes", "cards"): (2, 2),
}
SHOWN = "[...document.querySelectorAll('section')].map((one) => one.hidden ? 0 : 1).join('')"
REVEALED = "[...document.querySelectorAll('.reveals')].filter((one) => one.offsetParent).length"


@pytest.fixture
def address(whole_kit):
    """The address of a page of a part of the kit."""
    return lambda part, name: (whole_kit / ("" if part == "kit" else part) / f"{name}.html").as_uri()


def printed(page):
    """Print a page; return the paper and the sizes of its sheets in points."""
    paper = base64.b64decode(page.call("Page.printToPDF", preferCSSPageSize=True)["data"])
    sizes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", paper)
    return paper, [(round(float(width)), round(float(height))) for width, height in sizes]


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in PAGES for name in PAGES[kind]])
def test_a_page_fits_a_phone_in_both_themes_and_loads_nothing(page, address, kind, name):
    if kind == "kit":
        assert violations(page, address(kind, name), widths=(390,)) == []
    for dark in (False, True):
        page.size(390, 800, dark=dark)
        page.open(address(kind, name))
        page.settle()
        assert page.width() == 390
        assert page.outside() == []


@pytest.mark.parametrize("kind", PAGES)
def test_it_prints_on_so_many_sheets_of_a4(page, address, kind):
    page.size(1000, 800, dark=True)
    for name, (fewest, most) in ((name, SHEETS[of, name]) for of, name in SHEETS if of == kind):
        page.open(address(kind, name))
        page.settle()
        _, sizes = printed(page)
        assert {*sizes} == {(595, 842)} and fewest <= len(sizes) <= most, name


def test_a_question_is_not_torn_apart_between_sheets_and_cards_have_their_patterns(page, address):
    page.open(address("inventory", "form-a"))
    assert {*page.all(".item", "getComputedStyle(e).breakInside")} == {"avoid"}
    page.open(address("votes", "cards"))
    assert len(re.findall(rb"/PatternType 1", printed(page)[0])) >= 4


def test_keys_lead_from_a_vote_to_its_answers_and_to_its_twin(page, address):
    page.size(1280, 720)
    page.open(address("votes", LESSON))
    seen = [(page.evaluate(SHOWN), page.evaluate(REVEALED))]
    for key in ("Enter", "Enter", "Enter", "ArrowRight", " ", "ArrowLeft", "ArrowLeft", "ArrowLeft"):
        page.press(key)
        seen.append((page.evaluate(SHOWN), page.evaluate(REVEALED)))
    first, second, third = "1000", "0100", "0010"
    assert seen == [
        (first, 0), (first, 4), (first, 0), (first, 4), (second, 0), (third, 0), (second, 0), (first, 0),
        (first, 0),
    ]  # fmt: skip


def test_a_link_opens_its_vote_and_a_button_reacts_once(page, address):
    page.open(address("votes", LESSON) + "#zero-times-score")
    assert page.evaluate(SHOWN) == "0010"
    page.focus("#answers")
    page.press("Enter")
    assert page.evaluate(REVEALED) == 4


def test_every_vote_with_its_answers_is_above_the_buttons_on_a_projector(page, address):
    page.size(1280, 720)
    for lesson in LESSONS:
        page.open(address("votes", lesson.name))
        room = page.evaluate(
            "screens.map((one, i) => { show(i); moves.answers(); "
            "return document.querySelector('nav').offsetTop - one.getBoundingClientRect().bottom; })"
        )
        assert min(room) >= 0, lesson.slug
