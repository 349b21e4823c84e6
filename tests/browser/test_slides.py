"""Slides in a browser: whole, large enough for the last row, steered by keys, printed; nothing is loaded."""

import base64
import re
import zlib

import pytest

DECKS = ("02_attention_and_masks", "08_pretraining", "18_bug_museum")
TYPE, IN_FIGURES = 28, 18  # px on a screen of 1280 by 720
IN_EXPLORERS = 9.5  # px: what is inside an explorer is drawn for the page of the lesson

# Show each slide with all its steps; return what leaves it, what is cut off, and the smallest letters.
WALK = """(async () => {
  const wrong = [], smallest = { text: 99, explorer: 99, figure: 99 };
  const isCut = (one) => one.matches("pre, li, p, h2, td, figcaption, .line, math") && one.clientWidth
    && one.scrollWidth > one.clientWidth + 1;
  const leaves = ({ left, top, right, bottom }) => left < -1 || top < -1 || right > innerWidth + 1
    || bottom > innerHeight + 1;
  const hasText = (one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  for (const slide of document.querySelectorAll(".slides section:not(.stack)")) {
    const { h, v } = Reveal.getIndices(slide);
    Reveal.slide(h, v ?? 0, 99);
    const boxes = [...slide.querySelectorAll(".fit, .txd-panels")];
    const body = slide.querySelector(".body"), isScrolled = () => body.scrollHeight > body.clientHeight + 1;
    const isMoving = () => isScrolled() || boxes.some((box) => box.dataset.fit !== "done");
    for (let tries = 0; tries < 300 && isMoving(); tries += 1)
      await new Promise((done) => requestAnimationFrame(done));
    if (isScrolled()) wrong.push([slide.className, "is scrolled", body.scrollHeight]);
    for (const one of slide.querySelectorAll("h2, .body, .body *")) {
      const box = one.getBoundingClientRect(), explorer = one.closest(".tx"), svg = one.closest("svg");
      if (!box.width || one.closest("defs, .tx-still, .tx-say, [hidden]")) continue;
      if (!explorer && !one.matches(".explorer *") && (leaves(box) || (!svg && isCut(one))))
        wrong.push([slide.className, slide.innerText.slice(0, 40), one.outerHTML.slice(0, 80)]);
      if (!hasText(one) || one.closest("math *, sup, sub")) continue;
      const { a, b } = one.getScreenCTM?.() ?? { a: one.currentCSSZoom ?? 1, b: 0 }, scale = Math.hypot(a, b);
      const kind = explorer ? "explorer" : svg ? "figure" : "text";
      const size = scale * parseFloat(getComputedStyle(one).fontSize);
      if (size) smallest[kind] = Math.min(smallest[kind], size);  // 0: for screen readers alone
    }
  }
  return { wrong, smallest };
})()"""


@pytest.fixture
def decks(whole_kit):
    return whole_kit / "slides"


def opened(page, decks, name, query="", *, dark=False):
    page.size(1280, 720, dark=dark)
    page.open((decks / f"{name}.html").as_uri() + query)
    page.wait("window.Reveal?.isReady()")


def go_to(page, selector):
    page.evaluate(
        f"(s => {{ const {{h, v}} = Reveal.getIndices(s); Reveal.slide(h, v ?? 0); }})"
        f"(document.querySelector({selector!r}))"
    )


@pytest.mark.parametrize("name", DECKS)
def test_nothing_leaves_a_slide_and_the_last_row_can_read_it(page, decks, name):
    opened(page, decks, name)
    found = page.evaluate(WALK)
    assert found["wrong"] == []
    assert found["smallest"]["text"] >= TYPE
    assert found["smallest"]["explorer"] >= IN_EXPLORERS and found["smallest"]["figure"] >= IN_FIGURES
    assert page.outside() == []


def test_keys_go_through_all_slides_show_the_answer_and_open_the_notes(page, decks):
    opened(page, decks, DECKS[0])
    page.press("ArrowRight")
    page.press("ArrowRight")
    assert page.evaluate("Reveal.getCurrentSlide().className").startswith("opener")
    page.press("s")
    page.wait("speaker?.document.querySelector('main')?.textContent.includes('Board:')")
    go_to(page, "section.vote")
    shown = "document.querySelectorAll('section.vote.present :is(.right, .finding).visible').length"
    assert page.evaluate(shown) == 0
    page.press("ArrowRight")
    assert page.evaluate(shown) == 2
    assert page.evaluate("speaker.document.querySelector('h1').textContent") == "Predict 02.1"
    page.evaluate("speaker.document.dispatchEvent(new KeyboardEvent('keydown', {keyCode: 34}))")
    assert page.evaluate(shown) == 0  # the window of the notes steers the slides, too
    page.evaluate("speaker.close()")


def test_the_next_slide_is_fitted_while_this_one_is_shown(page, decks):
    opened(page, decks, DECKS[0])
    go_to(page, "section:has(+ section.explorer)")
    page.wait("document.querySelector('section.explorer .fit').dataset.fit === 'done'")
    assert page.evaluate("!Reveal.getCurrentSlide().matches('.explorer')")


def test_an_explorer_is_alive_has_the_keys_for_itself_and_escape_gives_them_back(page, decks):
    opened(page, decks, DECKS[0])
    go_to(page, "section.explorer")
    cell = "document.querySelector('section.explorer.present .tx-cell')"
    page.wait(f"{cell}?.checkVisibility({{visibilityProperty: true}})")  # a slide is hidden until it fits
    said, at = (
        "document.querySelector('section.explorer.present .tx-say').textContent",
        "Reveal.getCurrentSlide()",
    )
    before, page_number = page.evaluate(said), page.evaluate("Reveal.getSlidePastCount()")
    page.focus("section.explorer.present .tx-cell")
    page.press(" ")
    page.wait(f"{said} !== {before!r}")
    assert page.evaluate("Reveal.getSlidePastCount()") == page_number
    page.evaluate(
        "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', bubbles: true}))"
    )
    page.press("ArrowRight")
    assert page.evaluate(f"!{at}.matches('.explorer')")


def test_light_or_dark_as_the_system_says_until_a_key_changes_it(page, decks):
    ground = "getComputedStyle(document.body).backgroundColor"
    opened(page, decks, DECKS[2])
    light = page.evaluate(ground)
    opened(page, decks, DECKS[2], dark=True)
    assert page.evaluate(ground) != light
    page.press("d")
    assert page.evaluate(ground) == light
    page.evaluate("localStorage.clear()")  # all pages from disk share it


def test_it_prints_a_page_a_slide_and_none_is_blank(page, decks):
    opened(page, decks, DECKS[2], "?print-pdf")
    page.wait("document.querySelectorAll('.pdf-page').length > 20")
    page.wait("![...document.querySelectorAll('.fit, .txd-panels')].some(e => e.dataset.fit !== 'done')", 60)
    heights = "[...document.querySelectorAll('.picture > *')].map(e => e.getBoundingClientRect().height)"
    assert min(page.evaluate(heights)) > 300
    done = page.call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
    paper = base64.b64decode(done["data"])
    n_slides = len(page.all(".pdf-page"))
    assert len(re.findall(rb"/Type /Page\b", paper)) == n_slides
    written = 0
    for stream in re.findall(rb"stream\r?\n(.*?)endstream", paper, re.S):
        try:
            written += b"Tj" in (text := zlib.decompress(stream)) or b"TJ" in text
        except zlib.error:  # a picture or a font
            continue
    assert written >= n_slides
