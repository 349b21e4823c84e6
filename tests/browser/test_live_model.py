"""The live model in a page from the disk: typing, drawing, looking inside, by keys alone and on a phone."""

import re

import numpy as np
import pytest
import torch

import tinytx_course as course
from tests.browser.test_site import violations
from tinytx.attention import record_attention
from tinytx_course.widgets.live_model import LiveModelExplorer, shipped_once

SUMMARY = "document.querySelector('.tx-say').textContent"
FIELD = "document.querySelector('.tx-field').value"
LONG = "Bonjour les amis, j'ai vraiment adoré ce roman. La fin est belle, mais"
OPENER = ".tx-opener[aria-expanded=true]"
OPEN = f"[...document.querySelectorAll('{OPENER}')].map(e => e.ariaLabel)"
DETAIL = "document.querySelector('.tx-opened')"
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
    page.wait(f"{TOKENS} === 6")
    page.settle()
    written = page.evaluate(FIELD)
    assert written.startswith("Bonjour les ") and page.evaluate(SUMMARY).startswith("Drawn: “")
    type_in(page, " ce")
    assert page.evaluate(FIELD) == written + " ce" and page.evaluate(TOKENS) == 7
    assert page.text(".tx-writing .tx-note").startswith("Word by word: Hello the ")


def test_an_unknown_word_gets_a_sentence_and_nothing_typed_is_deleted(page, opened):
    type_in(page, " chats  dorment !")
    assert page.evaluate(FIELD) == "Bonjour les chats  dorment !"
    said = page.evaluate(SUMMARY)
    assert said.startswith("“chats” is not in the small French of this model, which reads it in ")
    assert " There the grammar allows “amis”, “lecteurs”." in said and "truth unknown" in said
    page.press("Enter")
    page.wait(f"{FIELD} !== 'Bonjour les chats  dorment !'")
    assert page.evaluate(FIELD).startswith("Bonjour les chats  dorment !")
    assert page.all(".tx-instead button") == ["amis", "lecteurs"]
    page.click(".tx-instead button")
    page.settle()
    assert page.evaluate(FIELD) == "Bonjour les amis" and page.all(".tx-instead button") == []
    type_in(page, "\u0000日 <b>")
    assert "<b>" in page.evaluate(FIELD)


def test_a_beginning_that_is_pressed_takes_the_place_of_the_text_and_the_grammar_knows_it(page, opened):
    type_in(page, " chats")
    for number, text in enumerate(page.all(".tx-examples b", "e.textContent")):
        page.click(".tx-examples button", number)
        page.settle()
        assert page.evaluate(FIELD) == text and "; the grammar gives " in page.evaluate(SUMMARY)


def test_on_a_phone_a_part_stays_where_it_was_pressed_and_a_link_leads_to_what_it_opens(page, opened):
    page.size(390, 844)
    page.drag(page.place("[aria-label='block 0, head 0']"))
    page.settle()
    point = page.place("[aria-label='feed-forward, block 1']")
    page.drag(point)
    page.settle()
    top, bottom = page.all(OPENER, "[e.getBoundingClientRect().top, e.getBoundingClientRect().bottom]")[0]
    assert page.evaluate(OPEN) == ["feed-forward, block 1"] and abs((top + bottom) / 2 - point[1]) <= 1
    page.wait("location.hash.includes('block=1')")
    page.evaluate("location.hash = '#live_model?part=head'")
    page.wait(f"{DETAIL}.innerText.startsWith('Block 0, head 0')")
    page.settle()
    assert page.evaluate(f"(b => b.top >= 0 && b.bottom <= 845)({DETAIL}.getBoundingClientRect())")


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
    assert re.match(r"Drawn: “[^”]+” \(model [\d.]+%\)\. “chats” is not", page.evaluate(SUMMARY))


def test_the_picture_holds_every_head_with_the_weights_of_the_model(page, show):
    show(course.widgets.live_model(LONG))
    shipped = shipped_once()
    config, tokenizer = shipped.model.config, shipped.tokenizer
    words = page.all("[aria-label='Token to follow'] button", "e.firstChild.data")
    ids = [
        tokenizer.bos_id,
        *tokenizer.encode(LONG.replace("j'", "j' ").replace(",", " ,").replace(".", " .")),
    ]
    assert len(words) == len(ids) > 12  # so that a pixel of a map is a weight
    with record_attention(shipped.model) as maps, torch.no_grad():
        shipped.model(torch.tensor([ids]))
    drawn = page.all(
        ".tx-thumbs canvas",
        "[...e.getContext('2d').getImageData(0, 0, e.width, e.height).data].filter((_, i) => i % 4 === 0)",
    )
    assert len(drawn) == config.n_layers * config.n_heads
    red, below = [8, 33, 92, 178, 244], np.tril_indices(len(ids))  # of the colours from all to nothing
    for i, pixels in enumerate(drawn):
        block, head = divmod(i, config.n_heads)
        weights = maps[f"body.blocks.{block}.attn"][0, head].numpy()
        shown = np.interp(np.reshape(pixels, weights.shape), red, [1, 0.75, 0.5, 0.25, 0])
        np.testing.assert_allclose(shown[below], weights[below], atol=0.02)


def test_a_part_opens_in_place_and_closes_by_mouse_and_by_keys_and_one_at_a_time(page, opened):
    assert page.evaluate(OPEN) == [] and page.all(".tx-opened") == []
    for name in (
        "embedding of the token",
        "block 1, head 3",
        "feed-forward, block 0",
        "final norm and logits",
    ):
        part = f"[aria-label='{name}']"
        page.drag(page.place(part))
        page.settle()
        assert page.evaluate(OPEN) == [name] and page.sees(".tx-opened")
        assert page.evaluate(
            f"{DETAIL}.parentElement === document.querySelector({part!r}).closest('.tx-step')"
        )
        above = page.place(part, down=1)[1]
        assert page.place(".tx-opened", down=0)[1] + page.evaluate("scrollY") >= above
        page.focus(part)
        for key in ("Enter", " ", "Enter"):  # shut, open, shut
            page.press(key)
            page.settle()
            assert page.evaluate(OPEN) == [name] * (key == " ") and page.sees(".tx-opened") == (key == " ")
    assert page.evaluate(SUMMARY).startswith("After “Bonjour les” the model gives ")


def test_keys_alone_lead_to_the_numbers_of_a_dot_product(page, opened):
    page.focus(".tx-thumbs [tabindex='0']")
    page.press("Enter")
    page.settle()
    assert "%. Block 0, head 0: 2 “les” attends to " in page.evaluate(SUMMARY)
    page.press("ArrowDown")
    page.press("ArrowRight")
    page.settle()
    assert "%. Block 0, head 3: 2 “les” attends to " in page.evaluate(SUMMARY)
    page.focus("[aria-label='Key'] [tabindex='0']")
    page.press("Home")
    page.press("ArrowRight")
    page.settle()
    assert "query of 2 “les” · key of 1 “Bonjour”: " in page.evaluate(SUMMARY)
    assert len(page.all(".tx-numbers td")) == 3 * 16


def test_the_picture_reads_from_left_to_right_and_on_a_phone_from_top_to_bottom(page, show):
    show(course.widgets.live_model(LONG))
    parts = ".tx-machine .tx-tokens, .tx-step > .tx-thumbs, .tx-step > .tx-opener, .tx-machine > .tx-part"
    for width, side, n in ((1280, "left", 7), (360, "top", 7)):
        page.size(width, 844)
        page.settle()
        places = page.all(parts, f"e.getBoundingClientRect().{side}")
        assert len(places) == n and places == sorted(set(places)), width
    small = "[...e.childNodes].some(n => n.data?.trim()) && parseFloat(getComputedStyle(e).fontSize) < 10"
    assert True not in page.all(".tx-machine *", small)
    sides = "Math.min(e.getBoundingClientRect().width, e.getBoundingClientRect().height)"
    assert min(page.all(".tx-machine button", sides)) >= 24


def test_a_dot_brings_the_token_that_is_drawn_unless_motion_is_unwelcome(page, show):
    for motion in (True, False):
        page.size(1280, 900, motion=motion)
        show(course.widgets.live_model("Bonjour les"))
        page.evaluate(
            "Element.prototype.animate = (run => function (...all) { "
            "return globalThis.dot = run.call(this, ...all); })(Element.prototype.animate)"
        )
        page.click(".tx-draw")
        assert page.evaluate("Boolean(globalThis.dot)") == motion
        assert page.evaluate(FIELD + " === 'Bonjour les'") or not motion
        page.wait(f"{FIELD} !== 'Bonjour les'")
        page.settle()
        drawn = re.match("Drawn: “(.*?)”", page.evaluate(SUMMARY))[1]
        assert page.evaluate(FIELD) == f"Bonjour les {drawn}"
    page.size(1280, 900)
    page.click(".tx-draw")
    type_in(page, " x")  # the dot comes too late
    page.evaluate("new Promise(r => setTimeout(r, 1200))")
    assert page.evaluate(FIELD) == f"Bonjour les {drawn} x"


@pytest.mark.parametrize("part", LiveModelExplorer.part.values)
def test_axe_finds_nothing_whatever_is_open_and_it_fits_a_phone(page, show, part):
    explorer = course.widgets.live_model(f"{LONG} mon chat")  # which the grammar does not have
    explorer.part = part
    assert violations(page, show(explorer), (1280, 360, 320)) == []
    assert page.width() <= 320
