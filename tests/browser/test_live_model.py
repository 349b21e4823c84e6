"""The live model in a page from the disk: typing, drawing, looking inside, by keys alone and on a phone."""

import re

import pytest

import tinytx_course as course
from tests.browser.test_site import violations

SUMMARY = "document.querySelector('.tx-say').textContent"
FIELD = "document.querySelector('.tx-field').value"
TOKENS = "[...document.querySelectorAll(\"[aria-label='Token to follow'] button\")].length"


@pytest.fixture
def opened(show):
    """A page with the beginning "Bonjour les"."""
    show(course.widgets.live_model("Bonjour les"))


def type_in(page, text):
    """Put the cursor at the end of the text, and type."""
    page.focus(".tx-field")
    page.evaluate("(e => e.setSelectionRange(e.value.length, e.value.length))(document.activeElement)")
    page.call("Input.insertText", text=text)
    page.settle()


def test_enter_draws_and_typing_goes_on_from_there(page, opened):
    page.focus(".tx-field")
    for _ in range(3):
        page.press("Enter")
    page.settle()
    written = page.evaluate(FIELD)
    assert written.startswith("Bonjour les ") and page.evaluate(TOKENS) == 6
    assert page.evaluate(SUMMARY).startswith("Drawn: “")
    type_in(page, " ce")
    assert page.evaluate(FIELD) == written + " ce" and page.evaluate(TOKENS) == 7


def test_an_unknown_word_gets_a_sentence_and_nothing_typed_is_deleted(page, opened):
    type_in(page, " chats  dorment !")
    assert page.evaluate(FIELD) == "Bonjour les chats  dorment !"
    problem = page.text(".tx-problem")
    assert problem.startswith("The language has no word “chats”: from there on")
    assert page.evaluate(SUMMARY).startswith(problem) and "truth unknown" in page.evaluate(SUMMARY)
    page.press("Enter")
    page.settle()
    assert page.evaluate(FIELD).startswith("Bonjour les chats  dorment !")
    type_in(page, "\u0000日 <b>")
    assert "<b>" in page.evaluate(FIELD)


def test_a_token_that_is_pressed_is_appended_and_only_at_the_end(page, opened):
    page.drag(page.place(".tx-option:first-child"))
    page.settle()
    written = page.evaluate(FIELD)
    assert written in ("Bonjour les amis", "Bonjour les lecteurs")
    page.focus("[aria-label='Token to follow'] [tabindex='0']")
    page.press("ArrowLeft")
    page.settle()
    assert "What was written: " in page.text(".tx-part .tx-title")
    page.drag(page.place(".tx-option:nth-child(2)"))
    page.settle()
    assert page.evaluate(FIELD) == written


def test_outside_the_language_a_token_that_is_pressed_has_no_known_truth(page, opened):
    type_in(page, " chats")
    page.focus(".tx-option:first-child")
    page.press("Enter")
    page.settle()
    assert re.search(r"Drawn: .* the language unknown\.", page.evaluate(SUMMARY))


def test_keys_alone_lead_to_the_numbers_of_a_dot_product(page, opened):
    page.focus(".tx-zoom input")
    page.press("ArrowRight")
    page.settle()
    assert page.evaluate(SUMMARY).startswith("Block 0, head 0: 2 “les” attends to ")
    page.focus(".tx-thumbs [tabindex='0']")
    page.press("ArrowDown")
    page.press("ArrowRight")
    page.settle()
    assert page.evaluate(SUMMARY).startswith("Block 1, head 1: 2 “les” attends to ")
    page.focus(".tx-deeper")
    page.press("Enter")
    page.settle()
    assert page.evaluate(SUMMARY).startswith("Block 1, head 1: query of 2 “les” · key of 1 “Bonjour” = ")
    assert len(page.all(".tx-numbers td")) == 3 * 16


def test_every_zoom_fits_a_phone(page, opened):
    type_in(page, " amis, j'ai vraiment adoré ce roman. La fin est belle, mais")
    for zoom in range(3):
        page.click(".tx-zoom input", zoom)
        for width in (320, 390):
            page.size(width, 844)
            page.settle()
            assert page.width() <= width
        page.size(1200, 1000)


@pytest.mark.parametrize("zoom", range(3))
def test_axe_finds_nothing_in_any_zoom(page, show, zoom):
    explorer = course.widgets.live_model("Mon roman est très bien")
    explorer.zoom = zoom
    assert violations(page, show(explorer)) == []
