"""Votes in a browser: led by the keyboard, whole on a projector, cards on two sheets of A4."""

import base64
import re

import pytest

from tinytx_course.kit.handouts import write_votes
from tinytx_course.lessons import LESSONS

SHOWN = "[...document.querySelectorAll('section')].map((one) => one.hidden ? 0 : 1).join('')"
REVEALED = "[...document.querySelectorAll('.reveals')].filter((one) => one.offsetParent).length"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("votes")
    write_votes(folder)
    return folder


def test_keys_lead_from_a_vote_to_its_answers_and_to_its_twin(page, folder):
    page.size(1280, 720)
    page.open((folder / f"{LESSONS[2].name}.html").as_uri())
    seen = [(page.evaluate(SHOWN), page.evaluate(REVEALED))]
    for key in ("Enter", "Enter", "Enter", "ArrowRight", " ", "ArrowLeft", "ArrowLeft", "ArrowLeft"):
        page.press(key)
        seen.append((page.evaluate(SHOWN), page.evaluate(REVEALED)))
    first, second, third = "1000", "0100", "0010"
    assert seen == [
        (first, 0), (first, 4), (first, 0), (first, 4), (second, 0), (third, 0), (second, 0), (first, 0),
        (first, 0),
    ]  # fmt: skip


def test_a_link_opens_its_vote_and_a_button_reacts_once(page, folder):
    page.open((folder / f"{LESSONS[2].name}.html").as_uri() + "#zero-times-score")
    assert page.evaluate(SHOWN) == "0010"
    page.focus("#answers")
    page.press("Enter")
    assert page.evaluate(REVEALED) == 4
    assert page.outside() == []


def test_every_vote_with_its_answers_is_above_the_buttons_on_a_projector(page, folder):
    page.size(1280, 720)
    for lesson in LESSONS:
        page.open((folder / f"{lesson.name}.html").as_uri())
        room = page.evaluate(
            "screens.map((one, i) => { show(i); moves.answers(); "
            "return document.querySelector('nav').offsetTop - one.getBoundingClientRect().bottom; })"
        )
        assert min(room) >= 0, lesson.slug


@pytest.mark.parametrize("dark", [False, True])
def test_a_vote_fits_a_phone(page, folder, dark):
    page.size(390, 800, dark=dark)
    for name in (LESSONS[2].name, "index", "answers"):
        page.open((folder / f"{name}.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") == 390, name


def test_cards_are_printed_on_two_sheets_of_a4_with_their_patterns(page, folder):
    page.open((folder / "cards.html").as_uri())
    paper = base64.b64decode(page.call("Page.printToPDF", preferCSSPageSize=True)["data"])
    sheets = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", paper)
    assert [(round(float(w)), round(float(h))) for w, h in sheets] == [(595, 842)] * 2
    assert len(re.findall(rb"/PatternType 1", paper)) >= 4
