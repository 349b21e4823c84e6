"""Reading the site as a person does, from the disk: by keys, in themes, on a phone, in front of a class."""

import html
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.browser.test_site import outside, violations
from tests.environments import ROOT, published
from tinytx_course.building.notebooks import Run
from tinytx_course.building.statements import statements
from tinytx_course.lessons import LESSONS
from tinytx_course.site.pages import write_site

LESSON, NEXT, PANELS = LESSONS[2], LESSONS[8], LESSONS[5]
EXPLORERS = {"one_query": LESSONS[0], "mask": LESSON, "attention": LESSONS[16]}
WIDTHS = (1280, 768, 390)
PAGES = (
    f"{LESSON.name}.html",
    "index.html",
    "glossary.html",
    "reference.html",
    "exercises.html",
    "playground.html",
    "gallery.html",
)
TOO_WIDE = "e.checkVisibility() && e.scrollWidth > e.clientWidth + 1"
HEADINGS = "#lesson :is(h1, h2, h3)"
SEEN = "e.checkVisibility() && !e.closest('[inert]')"
# Elements that hide a part of their own text, but for what says so, a scroll bar or an ellipsis, and for
# names that are only read aloud.
CLIPPED = """(() => [...document.querySelectorAll('body *')].filter(e => {
  const style = getComputedStyle(e);
  return e.checkVisibility({ opacityProperty: true }) && !e.closest('svg, math, .skip')
    && [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())
    && ['hidden', 'clip'].includes(style.overflowX) && style.textOverflow !== 'ellipsis'
    && style.clipPath === 'none'
    && (e.scrollWidth > e.clientWidth + 2 || e.scrollHeight > e.clientHeight + 4);
}).map(e => e.outerHTML.slice(0, 120)))()"""

# The smallest letters of an explorer, in pixels of the screen, and text that is cut or leaves it.
LETTERS = """(explorer) => {
  const frame = explorer.getBoundingClientRect(), sizes = [], cut = [];
  for (const e of explorer.querySelectorAll("*")) {
    const box = e.getBoundingClientRect(), style = getComputedStyle(e);
    if (!box.width || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || !e.checkVisibility())
      continue;
    const { a, b } = e.getScreenCTM?.() ?? { a: e.currentCSSZoom, b: 0 };
    sizes.push(Math.hypot(a, b) * parseFloat(style.fontSize));
    const hides = style.overflowX !== 'visible' && e.scrollWidth > e.clientWidth + 1;
    if (hides || box.left < frame.left || box.right > frame.right)
      cut.push(e.outerHTML.slice(0, 120));
  }
  return { n: sizes.length, smallest: Math.min(...sizes.filter(size => size)), cut };
}"""

# Outputs that can be seen between a prediction and its result before it is answered, and sentences after them
# up to the next heading; but no explorer and no diagram.
OPEN_BELOW = """(() => {
  const open = [], parts = document.querySelectorAll('#lesson :is(.output_area, .text_cell_render > *)');
  let asked = '', resolved = '', told = false;
  for (const part of parts) {
    const card = part.querySelector('.tx[aria-label^=Predict]')?.ariaLabel;
    const isOutput = part.matches('.output_area'), isHeading = /^H\\d$/.test(part.tagName);
    if (card) [asked, resolved, told] = [card, '', false];
    else if (asked && part.querySelector('[data-tx-kind=outcome]')) resolved = asked;
    else if (isHeading && resolved) asked = '';
    if (isHeading) told = false;
    const isOpen = part.querySelector('.tx-explorer:not([data-tx-kind=outcome]), .txd');
    if (asked && (isOutput ? !isOpen : told && !isHeading) && !part.matches('.veil, .waiting[inert]'))
      open.push([asked, part.textContent.trim().slice(0, 40)]);
    told ||= isOutput && !isOpen;
  }
  return open;
})()"""

# What waits for a script, with the height of the room that it is left and of what is drawn in it.
ROOMS = """[...document.querySelectorAll(".stage, .tx-explorer")].map((e) => {
  const room = parseFloat(getComputedStyle(e).minHeight);
  e.style.minHeight = 0;
  return [room, e.offsetHeight];
}).filter(([room]) => room)"""

# What jumped since the page was opened, and while it is scrolled to its end: how much, what, between
# which places.
SCROLL = """(async () => {
  window.shifts = [];
  const place = ({ x, y, width, height }) => [x, y, width, height].map(Math.round).join();
  const moved = (s) => [s.node?.outerHTML?.slice(0, 80), place(s.previousRect), place(s.currentRect)];
  const note = (found) => shifts.push(...found.getEntries().filter((e) => !e.hadRecentInput)
    .map((e) => [e.value, e.sources.map(moved)]));
  new PerformanceObserver(note).observe({ type: "layout-shift", buffered: true });
  for (let y = 0; y < document.body.scrollHeight; y += innerHeight) {
    scrollTo({ top: y, behavior: "instant" });
    await new Promise((done) => setTimeout(done, 60));
  }
})()"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Some published lessons and all that links them, as `tinytx-course site` writes them."""
    folder = tmp_path_factory.mktemp("site")
    lessons = sorted({LESSON, NEXT, PANELS, *EXPLORERS.values()}, key=LESSONS.index)
    write_site([Run(lesson=one, notebook=published(one)) for one in lessons], folder, ROOT / "figures")
    return folder


@pytest.fixture
def lesson(page, site):
    """The page of a lesson, opened with nothing remembered."""
    page.open((site / f"{LESSON.name}.html").as_uri())
    page.evaluate("localStorage.clear()")
    page.reload()
    page.settle()
    yield page
    page.evaluate("localStorage.clear()")
    assert outside(page) == []


def present(page, site, width, height):
    """Open the lesson in front of a class."""
    page.size(width, height)
    page.open((site / f"{LESSON.name}.html").as_uri() + "?present")
    page.settle()


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_has_a_violation_or_clipped_text_at_any_width_in_both_themes(page, site, name, width):
    if name == PAGES[0]:  # lessons are tried in test_site
        page.size(width, 1000)
        page.open((site / name).as_uri())
        page.settle()
    else:
        assert violations(page, (site / name).as_uri(), (width,)) == []
    assert page.width() <= width
    assert page.evaluate(CLIPPED) == []


@pytest.mark.parametrize("width", [360, 320])
def test_no_page_scrolls_sideways_on_a_small_phone_and_the_bar_says_where_one_is(page, site, width):
    page.size(width, 700)
    for name in (*PAGES, f"{NEXT.name}.html"):
        page.open((site / name).as_uri())
        page.settle()
        page.wait(f"location.href.endsWith({name!r}) && document.documentElement.scrollWidth <= {width}")
    page.evaluate("document.querySelectorAll('#lesson h2')[5].scrollIntoView()")
    page.wait("/^· 6 of \\d+/.test(document.querySelector('.nth').textContent)")
    (read,) = page.all(".bar", "parseFloat(getComputedStyle(e, '::after').width)")
    assert 0 < read < width


def test_on_a_phone_a_formula_is_on_the_line_of_its_sentence(lesson):
    lesson.size(360, 800)
    lesson.evaluate(
        """document.querySelectorAll('.together').forEach((e) => [(mark) => e.append(mark), (mark) =>
          e.after(mark)].forEach((put) => put(Object.assign(document.createElement('i'),
          { className: 'mark', style: 'display: inline-block' }))))"""
    )
    lows = lesson.all("i.mark", "e.getBoundingClientRect().bottom")
    pairs = list(zip(lows[::2], lows[1::2], strict=True))
    assert len(pairs) > 10 and {one - other for one, other in pairs if abs(one - other) < 12} == {0}


def test_on_a_phone_the_largest_letters_leave_the_bar_and_its_menus_on_the_screen(lesson):
    lesson.size(390, 800)
    tops = lesson.all(".bar :is(summary, button)", "e.checkVisibility() && e.getBoundingClientRect().top")
    assert len({round(top) for top in tops if top is not False}) == 1, "a line, while letters are as they are"
    lesson.click(".look summary")
    for _ in range(5):
        lesson.click('.look [data-step="1"]')
    lesson.settle()
    assert lesson.text(".look output") == "150 %" and lesson.width() == 390
    out = "(({ left, right }) => left < 0 || right > 390)(e.getBoundingClientRect()) && e.checkVisibility()"
    assert not any(lesson.all(".bar *", out))


def test_a_button_wraps_long_lines_of_code(lesson):
    lesson.size(390, 800)
    before = sum(lesson.all(".has-copy pre", TOO_WIDE))
    lesson.click(".has-copy .wrap")
    assert sum(lesson.all(".has-copy pre", TOO_WIDE)) < before / 2  # a long name stays as it is


def search(page, letters):
    page.evaluate("document.querySelector('.search input').value = ''")
    page.call("Input.insertText", text=letters)


def test_search_finds_a_term_a_heading_and_a_function_by_keys_alone(lesson):
    lesson.press("/")
    lesson.settle()
    for letters, found in (
        ("causal mas", "causal mask"),
        ("leak test", "The leak test"),
        ("sinusoidal_p", "tx.sin"),
        ("why divide by sqrt d", "Further: attention without the scale"),
        ("atention", "attention"),
        ("dropuot", "dropout"),
    ):
        search(lesson, letters)
        titles = "[...document.querySelectorAll('.found b')].map(b => b.textContent)"
        lesson.wait(f"{titles}.some(title => title.includes({json.dumps(found)}))")
    search(lesson, "RoPE")
    lesson.wait("document.querySelector('.found b')?.textContent === 'rotary positions'")  # not "properly"
    search(lesson, "leak test")
    lesson.press("ArrowDown")
    lesson.press("Enter")
    lesson.settle()
    assert "eak" in lesson.evaluate("decodeURIComponent(location.hash + location.pathname)")
    assert lesson.all("dialog[open]") == []


@pytest.mark.parametrize(("letters", "down"), [("", 0), ("leak test", 0), ("leak test", 1)])
def test_one_escape_closes_the_search_wherever_the_focus_is(lesson, letters, down):
    lesson.click(".present-open")
    lesson.press("/")
    lesson.call("Input.insertText", text=letters)
    lesson.settle()
    for key in ["ArrowDown"] * down + ["Escape"]:
        lesson.press(key)
    assert lesson.all("dialog[open]") == []
    assert lesson.evaluate("document.documentElement.classList.contains('present')")


@pytest.mark.parametrize(
    ("name", "letters", "entry"),
    [("glossary", "causal mask", "tr:has(#causal-mask)"), ("reference", "attention", "[id='tx.attention']")],
)
def test_a_field_narrows_a_long_list_and_without_it_the_list_is_whole(page, site, name, letters, entry):
    page.open((site / f"{name}.html").as_uri())
    rows = "[aria-label=Terms] tbody tr, .reference h3"
    shown = page.all(rows, "e.checkVisibility()")
    assert all(shown) and len(shown) > 40
    page.focus(".narrow input")
    page.call("Input.insertText", text=letters)
    left = sum(page.all(rows, "e.checkVisibility()"))
    assert 0 < left < len(shown) / 3 and page.sees(entry)
    assert page.text(".narrow [role=status]") == f"{left} of {len(shown)}"
    first = "[e.textContent, document.getElementById(e.hash.slice(1)).textContent[0].toUpperCase()]"
    assert all(letter == begins for letter, begins in page.all(".letters a", first))


def test_exercises_without_python_are_narrowed_to_a_lesson_and_to_those_unsolved(page, site):
    page.open((site / "exercises.html").as_uri())
    page.evaluate("localStorage.clear()")
    page.reload()

    def shown(what="e.dataset.task"):
        return page.all(".exercises [data-task]", f"e.checkVisibility() ? {what} : ''")

    def choose(selector, change):
        words = f"(e => {{ e.{change}; e.dispatchEvent(new Event('change')); }})"
        page.evaluate(f"{words}(document.querySelector('.narrow {selector}'))")

    listed = page.all("#In-Python ~ table td a", "e.href")
    there = [one for one in statements().values() if (site / f"{LESSONS[one.lesson].name}.html").is_file()]
    assert len(listed) == len({*listed}) == len(there), "each exercise of a lesson that has a page, once"
    whole = shown()
    assert all(whole)
    choose("select", "selectedIndex = 1")
    few = list(filter(None, shown()))
    (lesson,) = {*shown("e.dataset.behind")} - {""}
    assert 0 < len(few) < len(whole) and [lesson] == page.all(".narrow select", "e.value")
    assert 0 < sum(page.all(".exercises h2", "e.checkVisibility()")) <= len(few)
    page.evaluate(f"remember({json.dumps(f'task:{few[0]}')}, true)")
    choose("input", "checked = true")
    assert list(filter(None, shown())) == few[1:]
    choose("select", "selectedIndex = 0")
    assert list(filter(None, shown())) == [task for task in whole if task != few[0]]
    page.evaluate("localStorage.clear()")


def test_a_key_lists_the_keys_and_letters_can_be_switched_off(lesson):
    lesson.press("?")
    lesson.settle()
    (keys,) = lesson.all("dialog.keys[open]")
    assert all(key in keys for key in ("search", "next screen", "this list"))
    lesson.press("Escape")
    assert lesson.all("dialog.keys[open]") == []
    for is_on in (False, True):
        lesson.click(".look [name=letters]")
        lesson.press("p")
        assert lesson.evaluate("document.documentElement.classList.contains('present')") is is_on
    lesson.click(".present-open")
    lesson.click(".keys-open")
    assert lesson.all("dialog.keys[open]"), "a finger finds the list, too"


def test_the_theme_and_the_size_are_switched_and_remembered(lesson, site):
    ink = ".figure svg :is(text, use)"
    look = ["getComputedStyle(e).backgroundColor", "parseFloat(getComputedStyle(e).fontSize)"]
    (light,), (size,) = (lesson.all("body", one) for one in look)
    before = lesson.all(ink, "getComputedStyle(e).fill")[0]
    for part in ("summary", "input[value=dark]", '[data-step="1"]'):
        lesson.click(f".look {part}")
    lesson.settle()
    (dark,) = lesson.all("body", look[0])
    assert dark != light and lesson.all(ink, "getComputedStyle(e).fill")[0] != before
    assert lesson.all(".tx", "getComputedStyle(e).colorScheme")[0] == "dark"
    lesson.open((site / "glossary.html").as_uri())
    lesson.settle()
    assert lesson.all("body", look[0]) == [dark] and lesson.all("body", look[1])[0] > size


def test_tab_walks_through_menu_search_contents_and_the_lesson_and_escape_closes_a_menu(lesson):
    lesson.evaluate("document.body.focus()")
    names = []
    for _ in range(32):
        lesson.press("Tab")
        names.append(lesson.evaluate("document.activeElement.textContent.trim()"))
    assert {"Skip to the lesson", "Lessons", "Search", "Aa", "Padding"} <= {*names}
    assert names.index("Skip to the lesson") == 0
    lesson.focus(".lessons summary")
    for key, is_open in (("Enter", True), ("Escape", False)):
        lesson.press(key)
        assert lesson.all(".lessons", "e.open") == [is_open]
    assert lesson.evaluate("document.activeElement.textContent") == "Lessons"


def test_only_what_scrolls_is_a_stop_for_tab(lesson):
    odd = """!e.checkVisibility() || e.tabIndex === -(e.scrollWidth <= e.clientWidth + 1
      || getComputedStyle(e).overflowX !== 'auto')"""
    for width in (1280, 390):
        lesson.size(width, 900)
        lesson.settle()
        assert all(lesson.all("pre, .picture, table", odd))
    assert len(lesson.all("pre[tabindex]")) > 3


def test_the_contents_follow_the_reader_and_the_first_page_knows_how_far(lesson, site):
    anchors = lesson.all("#lesson h2", "e.id")
    lesson.evaluate(f"document.getElementById({json.dumps(anchors[4])}).scrollIntoView()")
    lesson.settle()
    assert lesson.all(".contents [aria-current]", "decodeURIComponent(e.hash)") == [f"#{anchors[4]}"]
    lesson.open((site / "index.html").as_uri())
    lesson.settle()
    assert f"4 of {len(anchors)} sections" in lesson.text(f'[data-lesson="{LESSON.name}"] .progress')
    assert "Go on: Attention and masks" in lesson.text(".go .begin")
    lesson.requests.clear()


def test_a_term_and_a_paper_show_a_card_on_focus_and_escape_closes_it(lesson):
    for kind in ("a.term[title]", "a.paper[title]"):
        said = lesson.all(kind, "e.title")[0]
        lesson.focus(kind)
        assert lesson.all(".hover-card", "[e.hidden, e.textContent]") == [[False, said]]
        lesson.press("Escape")
        assert lesson.all(".hover-card", "e.hidden") == [True]


def test_a_figure_is_enlarged_and_returns_to_its_place(lesson):
    lesson.size(390, 800)
    width = ("#figure-2 .picture svg, dialog[open] svg", "e.getBoundingClientRect().width")
    (before,) = lesson.all(*width)
    lesson.click("#figure-2 .enlarge")
    lesson.settle()
    assert lesson.all(*width)[0] > before
    lesson.click("dialog[open] .close")
    lesson.settle()
    assert lesson.all(*width) == [before]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_stands_still_while_it_is_opened_and_read(page, site, name):
    late = site / f"late-{name}"  # its explorers come after it was painted without them
    module, wait = '<script type="module">', "await new Promise((done) => setTimeout(done, 300));"
    late.write_text(
        (site / name).read_text(encoding="utf-8").replace(module, module + wait), encoding="utf-8"
    )
    page.size(1280, 800)
    page.open(late.as_uri())
    page.wait("document.querySelectorAll('.tx-explorer:not(.tx-live)').length === 0")
    page.evaluate(SCROLL)
    page.settle()
    shifts = page.evaluate("window.shifts")
    assert sum(value for value, _ in shifts) < 0.02, shifts


@pytest.mark.parametrize("width", WIDTHS)
def test_what_a_script_draws_fills_the_room_that_waits_for_it(page, site, width):
    page.size(width, 800, motion=False)
    rooms = []
    for name in ("index", "playground", "exercises"):
        page.open((site / f"{name}.html").as_uri())
        page.settle()
        rooms += page.evaluate(ROOMS)
    assert len(rooms) == 4 and all(abs(room - drawn) <= 2 for room, drawn in rooms), rooms


def test_no_figure_shines_in_the_dark(lesson):
    lesson.size(1280, 1000, dark=True)
    lesson.click(".show-all")
    lesson.settle()
    shine = {}
    for name in filter(None, lesson.all("figure.figure", "e.checkVisibility() && e.id")):
        picture = Image.open(io.BytesIO(lesson.pixels(f"#{name} .picture"))).convert("RGB")
        shine[name] = (np.asarray(picture).min(axis=-1) >= 215).mean()
    assert len(shine) >= 2 and max(shine.values()) < 0.06, shine


def test_on_a_phone_panels_stand_below_one_another_and_wide_ones_return(lesson, site):
    lesson.open((site / f"{PANELS.name}.html").as_uri())
    lesson.settle()
    lesson.click(".show-all")
    lesson.settle()
    panels = """(figure => [...figure.querySelectorAll("g.axes")].map(panel => {
      const text = [...panel.querySelectorAll("text")].map(t => t.getBoundingClientRect());
      return {
        n: text.length, own: !!panel.closest(".piece"), top: Math.min(...text.map(t => t.top)),
        out: Math.max(...text.map(t => t.right)) - figure.getBoundingClientRect().right,
        smallest: Math.min(...text.map(t => t.height)),
      };
    }))(e)"""
    wide = lesson.all("figure.figure:has(g.axes)", panels)
    assert wide and not any(one["own"] for figure in wide for one in figure)
    lesson.size(390, 800)
    lesson.settle()
    phone = lesson.all("figure.figure:has(g.axes)", panels)
    stacked = [figure for figure in phone if any(one["own"] for one in figure)]
    assert stacked
    text = "text:not(:has(tspan), [visibility=hidden] *, .emptied *)"
    matrix = "(({ a, b }) => Math.hypot(a, b))(e.getScreenCTM())"
    letters = lesson.all(
        f"figure.figure {text}", f"e.checkVisibility() && {matrix} * parseFloat(getComputedStyle(e).fontSize)"
    )
    assert len(letters) > 50 and min(filter(None, letters)) >= 10
    for figure in stacked:
        assert all(one["out"] <= 0 and one["smallest"] >= 9 for one in figure if one["n"]), figure
        assert len({round(one["top"]) for one in figure}) > 1
    lesson.size(1280, 800)
    lesson.settle()
    assert list(map(len, lesson.all("figure.figure:has(g.axes)", panels))) == list(map(len, wide))
    assert lesson.all(".piece, .emptied") == []


def test_a_copy_button_copies_the_code(lesson):
    lesson.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    lesson.click(".input_area .copy")
    lesson.wait("document.querySelector('.input_area .copy').textContent === 'Copied'")
    code = lesson.text(".input_area pre")
    assert lesson.evaluate("navigator.clipboard.readText()").strip() == code.strip()


def test_a_result_waits_for_the_prediction(lesson):
    result = "document.querySelector('[data-tx-kind=outcome]').closest('.output_area')"
    assert lesson.evaluate(f"{result}.inert && !{result}.checkVisibility()")
    n_waiting = len(lesson.all(".waiting"))
    words = f"{result}.closest('.cell').nextElementSibling.querySelector('.text_cell_render > p')"
    assert lesson.evaluate(f"{words}.inert"), "the sentence below says what came out"
    assert lesson.evaluate(OPEN_BELOW) == []
    asked = lesson.all(".tx[aria-label^=Predict]", "e.ariaLabel")
    said = lesson.all(".veil", "!e.closest('[inert]') && e.textContent")
    assert len(asked) > 1 and [
        re.sub("^Hidden: .*(figure|output|paragraph)s?, ", "", one) for one in said
    ] == [f"until you choose in {one} Go there Show Show all on this page" for one in asked]
    assert not any(lesson.all(".waiting .tx-explorer:not([data-tx-kind=outcome]), .waiting .txd"))
    lesson.click("[aria-label^=Predict] input")
    assert lesson.evaluate(f"{result}.inert") is True, "first the reader says how sure"
    lesson.settle()
    lesson.click("[aria-label^=Predict] .tx-sure input")
    assert lesson.evaluate(f"{result}.inert || {words}.inert") is False
    assert 0 < len(lesson.all(".waiting")) < n_waiting
    locked = lesson.all("[aria-label^=Predict] .tx-question input", "e.matches(':disabled')")
    assert locked[0] and not locked[-1], "what was predicted stays, once the result is seen"
    lesson.reload()
    lesson.settle()
    assert lesson.evaluate(f"{result}.inert") is False, "the choice is remembered"
    lesson.click(".show-all")
    assert lesson.all(".waiting, .veil") == []
    lesson.reload()
    lesson.settle()
    assert lesson.all(".waiting, .veil") == [], "that all is to be shown is remembered, too"


def test_by_arrow_keys_any_confidence_is_reached_before_the_result_opens_and_letters_stay_keys(lesson):
    lesson.click("[aria-label^=Predict] input")
    lesson.settle()
    lesson.focus("[aria-label^=Predict] .tx-sure input")
    for _ in range(2):
        lesson.press("ArrowRight")
    result = "document.querySelector('[data-tx-kind=outcome]').closest('.output_area')"
    assert lesson.evaluate(f"{result}.inert") is True
    assert "until you press Enter" in lesson.text(".veil")
    lesson.press("Enter")
    lesson.settle()
    assert lesson.evaluate(f"{result}.inert") is False and "90 % sure" in lesson.evaluate(
        f"{result}.innerText"
    )
    lesson.focus("main .story-switch input")
    lesson.press("/")
    lesson.settle()
    assert lesson.all("dialog.search[open]") != []


def test_code_is_folded_on_a_phone_and_wherever_a_reader_wants_it(lesson):
    cells = (
        ".code:not(.plotting):not(.further *)",
        "e.checkVisibility() && e.querySelector('pre').checkVisibility()",
    )
    whole = lesson.evaluate("document.documentElement.scrollHeight")
    assert all(lesson.all(*cells)) and not any(
        lesson.all(".code:not(.plotting) > summary", "e.checkVisibility()")
    )
    lesson.click("main .story-switch input")
    lesson.settle()
    assert (
        not any(lesson.all(*cells)) and lesson.evaluate("document.documentElement.scrollHeight") < 0.9 * whole
    )
    lines = lesson.all(".code:not(.plotting):not(.further *) > summary")
    assert re.fullmatch(r"Code, \d+ lines?", lines[0])
    lesson.reload()
    lesson.settle()
    assert not any(lesson.all(*cells)), "remembered"
    lesson.evaluate("localStorage.clear()")
    lesson.size(390, 800)
    lesson.reload()
    lesson.settle()
    assert not any(lesson.all(*cells)), "on a phone the story comes first"
    assert "Set-up" in lesson.all(".further > summary") and "Set-up" not in "".join(lesson.all("#lesson h2"))


def test_the_link_of_an_explorer_is_copied_with_its_state_and_leads_there(lesson):
    lesson.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    copied = "=== 'Copied: for this machine only'"  # a page of the disk
    lesson.click("[data-kind=mask] .tx-copy")
    lesson.wait(f"document.querySelector('[data-kind=mask] .tx-copy').textContent {copied}")
    assert lesson.evaluate("navigator.clipboard.readText()").endswith(".html#mask"), "as it was at first"
    lesson.click("[data-kind=mask] .tx-toggle input")
    lesson.click("[data-kind=mask] .tx-copy")
    lesson.settle()
    address = lesson.evaluate("navigator.clipboard.readText()")
    assert re.search(r"#mask\?\w+=", address)
    lesson.open("about:blank")  # whoever loads the same page again stays where they were
    lesson.open(address)
    lesson.wait(
        "(at => 0 <= at && at < 200)(document.querySelector('[data-kind=mask]').getBoundingClientRect().top)"
    )
    lesson.click("[data-kind=mask] .tx-copy", 1)
    lesson.wait(f"document.querySelectorAll('[data-kind=mask] .tx-copy')[1].textContent {copied}")
    frame = lesson.evaluate("navigator.clipboard.readText()")
    lesson.open(html.unescape(re.search('<iframe src="([^"]+)" title="Mask explorer"', frame)[1]))
    lesson.settle()
    assert lesson.all(".tx", "e.dataset.kind") == ["mask"]
    assert lesson.evaluate("location.hash") == f"#{address.split('#')[1]}"


def test_what_waits_can_be_reached_by_a_link_and_is_open_on_paper(lesson, site):
    lesson.open((site / f"{PANELS.name}.html").as_uri())
    lesson.settle()
    assert lesson.evaluate(OPEN_BELOW) == []
    anchor = lesson.all(".waiting figure", "e.id")[0]
    n_waiting = len(lesson.all(".waiting"))
    lesson.evaluate(f"location.hash = '{anchor}'")
    lesson.wait(f"!document.querySelector('#{anchor}').closest('.waiting')")
    assert 0 < len(lesson.all(".waiting")) < n_waiting
    lesson.call("Emulation.setEmulatedMedia", media="print")
    assert "none" not in lesson.all(".waiting", "getComputedStyle(e).display")
    lesson.call("Emulation.setEmulatedMedia", media="screen")


def test_present_mode_shows_one_section_stops_at_predictions_and_veils_figures(lesson):
    def headings():
        return [one for one in lesson.all(HEADINGS, f"{SEEN} && e.id") if one]

    lesson.press("p")
    lesson.settle()
    assert len(headings()) == 1 and not lesson.sees(".bar")
    below = """(([above, top]) => [!!e.closest('.veiled'), e.getBoundingClientRect().top - above - top])(
      (main => [main.getBoundingClientRect().top, parseFloat(main.style.clipPath.match(/-?[\\d.]+px/)[0])])(
        document.querySelector('#lesson')))"""
    met, stopped, steps = set(), 0, 0
    while steps < 40 and not (len(met) > 1 and stopped):
        lesson.press("ArrowRight")
        steps += 1
        assert len(headings()) <= 1
        labels = lesson.all(".tx", f"{SEEN} && e.getAttribute('aria-label')")
        if "Predict 02.1" in labels and not stopped:
            assert "Result of 02.1" not in labels
            stopped = steps
        for figure, shown in enumerate(lesson.all("#lesson .picture", f"{SEEN} && {below}")):
            if shown:
                assert figure in met or shown[0] or shown[1] < 60, "it begins a screen, or was blurred"
                met.add(figure)
    assert len(met) > 1 and stopped
    blur = "(e.classList.add('veiled'), getComputedStyle(e.querySelector('.picture')).filter)"
    assert "blur" in lesson.all(".output_area:has(.picture)", blur)[0]
    lesson.all(".output_area:has(.picture)", "e.classList.remove('veiled')")
    first = headings()
    for key in ["ArrowLeft"] * steps + ["ArrowRight"] * steps:
        lesson.press(key)
    assert headings() == first, "back and forth leads to the same place"
    lesson.press("p")
    assert lesson.sees(".bar") and lesson.all(".off, .veiled") == []


def test_in_front_of_a_class_an_overview_leads_to_a_section_and_a_clock_can_be_seen(lesson):
    lesson.press("o")
    assert lesson.all("dialog[open]") == [], "a letter of the class view alone"
    lesson.press("p")
    lesson.press("o")
    sections = lesson.all(".overview button")
    assert re.search(rf"1 . {len(sections)}\b", lesson.text(".slide-count"))
    assert all(0 < len(title) < 80 for title in sections)
    for key in ["ArrowDown"] * 7 + ["Enter"]:
        lesson.press(key)
    assert lesson.all("dialog[open]") == []
    first = next(filter(None, lesson.all(HEADINGS, "e.checkVisibility() && e.textContent")))
    assert first.startswith(sections[7])
    for key, n in (("t", 1), ("4", 2), ("0", 1), ("t", 0), ("9", 1)):
        lesson.press(key)
        assert len(lesson.all(".clock")) == n
    assert re.fullmatch(r"9:00|8:5\d", lesson.text(".clock"))
    for is_dark in (True, False):
        lesson.press("b")
        (cover,) = lesson.all("html", "getComputedStyle(e, '::after').content")
        assert (cover != "none") is is_dark
    lesson.press("Escape")
    assert lesson.all(".clock") == []


def test_in_front_of_a_class_tab_stays_on_the_screen_and_a_page_loaded_again_goes_on(page, site):
    present(page, site, 1920, 1080)
    for _ in range(12):
        if "Predict 02.1" in page.all(".tx", f"{SEEN} && e.ariaLabel"):
            break
        page.press(" ")
    before = page.text(".slide-count")
    page.press("Tab")
    focused = page.evaluate("document.activeElement.closest('.tx')?.getAttribute('aria-label')")
    assert focused == "Predict 02.1" and page.text(".slide-count") == before
    page.press("Escape")
    page.press("End")
    last = page.text(".slide-count")
    assert re.search(r"(\d+) / \1\b", last)
    page.reload()
    page.settle()
    assert page.text(".slide-count") == last
    page.press("Home")
    assert "1 / " in page.text(".slide-count")
    page.evaluate("localStorage.clear()")


SCREEN = Path(__file__).with_name("screen.js").read_text(encoding="utf-8")


def test_in_front_of_a_class_keys_alone_show_every_line_whole_in_letters_of_24_pixels(page, site):
    present(page, site, 1280, 720)
    assert len(page.all(".input pre")) > 5 and not any(page.all(".input pre", "e.checkVisibility()"))
    page.evaluate(SCREEN)
    shown = """[document.querySelector('.slide-count').textContent,
      document.querySelectorAll('.veiled').length, document.querySelector('#lesson').style.clipPath]"""
    before, steps, opened, counted = None, 0, False, False
    while before != (now := page.evaluate(shown)):
        assert page.evaluate("cutOnThisScreen()") == [], now
        assert page.evaluate("headsWithoutTheirQuestion()") == [], now
        if not opened:
            page.press("c")
            page.settle()
            opened = any(page.all(".input pre", "e.checkVisibility()"))
            assert page.evaluate("cutOnThisScreen()") == [], "with its code open"
        before, steps, counted = now, steps + 1, counted or " · screen 2 of " in now[0]
        page.press("ArrowRight")
    assert opened and counted and 25 < steps < 90, "short blocks share a screen"
    assert page.evaluate("neverSeen()") == []


def test_in_front_of_a_class_folded_code_has_no_screen_of_its_own_and_every_cell_can_be_opened(page, site):
    def cells(what):
        return {i for i, one in enumerate(page.all("#lesson .code:not(.further *)", what)) if one}

    present(page, site, 1280, 720)
    page.evaluate(SCREEN)
    opened, there = set(), set()
    for _ in range(45):
        assert page.evaluate("blocksOnThisScreen()") > 0
        there |= cells("!e.classList.contains('off')")
        page.press("c")
        opened |= cells("e.open")
        page.press("c")
        assert cells("e.open && !e.matches('.take-home')") == set()
        page.press("ArrowRight")
    there -= cells("!e.classList.contains('off')")  # of the last section not all was seen
    assert len(there) > 5 and there <= opened


@pytest.mark.parametrize("kind", EXPLORERS)
def test_in_front_of_a_class_letters_of_an_explorer_are_large_and_none_is_cut(page, site, kind):
    page.size(1280, 720)
    page.open((site / f"{EXPLORERS[kind].name}.html").as_uri())
    page.evaluate(f"document.querySelector('[data-tx-kind={kind}]').scrollIntoView({{behavior: 'instant'}})")
    page.wait(f"document.querySelector('.tx[data-kind={kind}]')")
    page.press("p")
    page.settle()
    found = page.evaluate(f"({LETTERS})(document.querySelector('.tx[data-kind={kind}]'))")
    assert found["n"] > 30 and found["smallest"] >= 18
    assert found["cut"] == []
    ends = [f".tx[data-kind={kind}] .tx-say", f".tx[data-kind={kind}]"]
    below, card = (page.all(one, "e.getBoundingClientRect().bottom")[0] for one in ends)
    assert below <= card  # the answer is seen, of a card that scrolls, too


def test_without_scripts_a_page_can_be_read(page, site):
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    page.open((site / f"{LESSON.name}.html").as_uri())
    assert not page.sees(".search-open") and page.sees(".tx-still")
    assert len(page.all("#lesson h2")) > 10
    page.call("Emulation.setScriptExecutionDisabled", value=False)


def test_printed_code_is_wrapped_and_answers_come_at_the_end(lesson):
    lesson.size(700, 900)
    lesson.call("Emulation.setEmulatedMedia", media="print")
    assert not any(lesson.all(".has-copy pre", TOO_WIDE))
    assert not any(map(lesson.sees, (".bar", ".plotting pre", "main .tx-option-row")))
    note = lesson.all(".plotting summary", "getComputedStyle(e, '::after').content")[0]
    assert "in the notebook" in note
    assert lesson.all(".has-copy pre", "e.offsetTop")[0] < 16, "no strip for the button"

    def places():
        where = "e.textContent === 'Solution' && e.checkVisibility() && (e.closest('main') ? 'main' : 'end')"
        return {*filter(None, lesson.all("summary, .answers b", where))}

    assert places() == {"end"}
    links = lesson.all(".see a", "!!document.querySelector(e.hash)")
    assert len(links) > 10 and all(links)
    lesson.call("Emulation.setEmulatedMedia", media="screen")
    assert places() == {"main"}
