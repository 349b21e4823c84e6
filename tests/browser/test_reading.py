"""Reading the site as a person does, from the disk: by keys, in themes, on a phone, in front of a class."""

import json
import re
import shutil
from pathlib import Path

import nbformat
import pytest

from tests.browser.test_site import outside, violations
from tinytx_course.building.notebooks import Run
from tinytx_course.building.release import write_pages
from tinytx_course.lessons import LESSONS
from tinytx_course.site.pages import write_site

ROOT = Path(__file__).resolve().parents[2]
LESSON, NEXT = LESSONS[2], LESSONS[8]
WIDTHS = (1280, 768, 390)
PAGES = (
    f"{LESSON.name}.html",
    "index.html",
    "glossary.html",
    "reference.html",
    "exercises.html",
    "playground.html",
)
GROUND = "getComputedStyle(document.body).backgroundColor"
TOO_WIDE = """[...document.querySelectorAll('.has-copy pre')]
  .filter(e => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1).length"""
# Elements that hide a part of their own text, but for what says so: a scroll bar, or an ellipsis.
CLIPPED = """(() => [...document.querySelectorAll('body *')].filter(e => {
  const style = getComputedStyle(e);
  return e.checkVisibility({ opacityProperty: true }) && !e.closest('svg, math, .skip')
    && [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())
    && ['hidden', 'clip'].includes(style.overflowX) && style.textOverflow !== 'ellipsis'
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

# What can be read between a prediction and the next heading or prediction before it is answered.
OPEN_BELOW = """(() => {
  const open = [], parts = document.querySelectorAll('#lesson :is(.output_area, .text_cell_render > *)');
  let asked = '', resolved = '';
  for (const part of parts) {
    const card = part.querySelector('.tx[aria-label^=Predict]')?.ariaLabel;
    if (card) [asked, resolved] = [card, ''];
    else if (asked && part.querySelector('[data-tx-kind=outcome]')) resolved = asked;
    else if (/^H\\d$/.test(part.tagName) && resolved) asked = '';
    if (asked && !card && !/^H/.test(part.tagName) && !part.matches('.veil, .waiting[inert]'))
      open.push([asked, part.textContent.trim().slice(0, 40)]);
  }
  return open;
})()"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Two published lessons and all that links them, as `tinytx-course site` writes them."""
    folder = tmp_path_factory.mktemp("site")
    runs = [
        Run(lesson=one, notebook=nbformat.read(ROOT / "notebooks" / f"{one.name}.ipynb", 4))
        for one in (LESSON, NEXT)
    ]
    write_site(runs, folder, ROOT / "figures")
    return folder


@pytest.fixture
def lesson(page, site):
    """The page of a lesson, opened with nothing remembered."""
    page.open((site / f"{LESSON.name}.html").as_uri())
    page.evaluate("localStorage.clear()")
    page.open((site / f"{LESSON.name}.html").as_uri())
    page.settle()
    yield page
    page.evaluate("localStorage.clear()")
    assert outside(page) == []


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_has_a_violation_or_clipped_text_at_any_width_in_both_themes(page, site, name, width):
    assert violations(page, (site / name).as_uri(), (width,)) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(CLIPPED) == []


@pytest.mark.parametrize("width", [360, 320])
def test_no_page_scrolls_sideways_on_a_small_phone_and_the_bar_says_where_one_is(page, site, width):
    page.size(width, 700)
    for name in (*PAGES, f"{NEXT.name}.html"):
        page.open((site / name).as_uri())
        page.settle()
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    page.evaluate("document.querySelectorAll('#lesson h2')[6].scrollIntoView()")
    page.wait("/^· 7 of \\d+/.test(document.querySelector('.nth').textContent)")
    read = "parseFloat(getComputedStyle(document.querySelector('.bar'), '::after').width)"
    assert 0 < page.evaluate(read) < width


def test_on_a_phone_the_largest_letters_leave_the_bar_and_its_menus_on_the_screen(lesson):
    lesson.size(390, 800)
    top = (
        "new Set([...document.querySelectorAll('.bar :is(summary, button)')].filter(e => e.checkVisibility())"
    )
    top += ".map(e => Math.round(e.getBoundingClientRect().top))).size"
    assert lesson.evaluate(top) == 1  # one line, as long as letters are not enlarged
    lesson.evaluate("document.querySelector('.look summary').click()")
    for _ in range(5):
        lesson.evaluate("document.querySelector('.look [data-step=\"1\"]').click()")
    lesson.settle()
    assert lesson.evaluate("document.querySelector('.look output').textContent") == "150 %"
    assert lesson.evaluate("document.documentElement.scrollWidth") == 390
    out = """[...document.querySelectorAll('.bar *')].filter(e => e.checkVisibility())
      .map(e => e.getBoundingClientRect()).filter(({ left, right }) => left < 0 || right > 390).length"""
    assert lesson.evaluate(out) == 0


def test_a_button_wraps_long_lines_of_code(lesson):
    lesson.size(390, 800)
    before = lesson.evaluate(TOO_WIDE)
    lesson.evaluate("document.querySelector('.has-copy .wrap').click()")
    assert lesson.evaluate(TOO_WIDE) < before / 2  # a long name stays as it is


def test_the_site_of_all_published_lessons_fits_a_stick_and_so_does_each_page(page, tmp_path):
    archive = write_pages(tmp_path / "site", zipped=True)
    assert archive.stat().st_size <= 15_000_000
    shutil.unpack_archive(archive, tmp_path / "stick")
    folder = tmp_path / "stick" / "site"
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) <= 12_000_000
    large = {path.name for path in folder.glob("*.html") if path.stat().st_size > 1_500_000}
    assert large == set()
    assert (folder / "engine.js").stat().st_size + (folder / "index.html").stat().st_size < 3_000_000
    page.open((folder / "index.html").as_uri())
    page.wait("document.querySelector('[data-kind=live_model] .tx-say')?.textContent")
    assert outside(page) == []


def test_search_finds_a_term_a_heading_and_a_function_by_keys_alone(lesson):
    lesson.press("/")
    lesson.settle()
    for letters, found in (
        ("causal mas", "causal mask"),
        ("leak test", "The leak test"),
        ("sinusoidal_p", "tx.sin"),
        ("why divide", "Break it: attention without the scale"),
        ("why divide by sqrt d", "Break it: attention without the scale"),
        ("atention", "attention"),
        ("dropuot", "dropout"),
    ):
        lesson.evaluate("document.querySelector('.search input').value = ''")
        lesson.call("Input.insertText", text=letters)
        lesson.wait("document.querySelector('.found b')")
        assert any(
            found in one
            for one in lesson.evaluate("[...document.querySelectorAll('.found b')].map(b => b.textContent)")
        )
    lesson.evaluate("document.querySelector('.search input').value = ''")
    lesson.call("Input.insertText", text="RoPE")
    lesson.wait("document.querySelector('.found b')?.textContent === 'rotary positions'")  # not "properly"
    lesson.evaluate("document.querySelector('.search input').value = ''")
    lesson.call("Input.insertText", text="leak test")
    lesson.press("ArrowDown")
    lesson.press("Enter")
    lesson.settle()
    assert "eak" in lesson.evaluate("decodeURIComponent(location.hash + location.pathname)")
    assert lesson.evaluate("document.querySelector('dialog[open]')") is None


@pytest.mark.parametrize(("letters", "down"), [("", 0), ("leak test", 0), ("leak test", 1)])
def test_one_escape_closes_the_search_wherever_the_focus_is(lesson, letters, down):
    lesson.evaluate("document.querySelector('.present-open').click()")
    lesson.press("/")
    lesson.call("Input.insertText", text=letters)
    lesson.settle()
    for _ in range(down):
        lesson.press("ArrowDown")
    lesson.press("Escape")
    assert lesson.evaluate("document.querySelector('dialog[open]')") is None
    assert lesson.evaluate("document.documentElement.classList.contains('present')")


@pytest.mark.parametrize(
    ("name", "letters", "entry"),
    [("glossary", "causal mask", "tr:has(#causal-mask)"), ("reference", "attention", "[id='tx.attention']")],
)
def test_a_field_narrows_a_long_list_and_without_it_the_list_is_whole(page, site, name, letters, entry):
    page.open((site / f"{name}.html").as_uri())
    rows = "[...document.querySelectorAll('[aria-label=Terms] tbody tr, .reference h3')]"
    shown = f"{rows}.filter(row => row.checkVisibility()).length"
    whole = page.evaluate(f"{rows}.length")
    assert page.evaluate(shown) == whole > 40
    page.focus(".narrow input")
    page.call("Input.insertText", text=letters)
    assert 0 < page.evaluate(shown) < whole / 3
    assert page.evaluate(f'document.querySelector("{entry}").checkVisibility()')
    assert f"{page.evaluate(shown)} of {whole}" == page.evaluate(
        "document.querySelector('.narrow [role=status]').textContent"
    )
    for link in page.evaluate(
        "[...document.querySelectorAll('.letters a')].map(a => [a.textContent, a.hash])"
    ):
        assert (
            page.evaluate(f"document.getElementById('{link[1][1:]}').textContent[0].toUpperCase()") == link[0]
        )


def test_exercises_without_python_are_narrowed_to_a_lesson_and_to_those_unsolved(page, site):
    page.open((site / "exercises.html").as_uri())
    page.evaluate("localStorage.clear()")
    page.open((site / "exercises.html").as_uri())
    shown = "[...document.querySelectorAll('.exercises section')].filter(e => e.checkVisibility())"
    whole = page.evaluate(f"{shown}.length")
    choose = "(field => {{ {}; field.dispatchEvent(new Event('change')); }})(document.querySelector('{}'))"
    page.evaluate(choose.format("field.selectedIndex = 1", ".narrow select"))
    behind = page.evaluate(f"{shown}.map(e => e.dataset.behind)")
    assert 0 < len(behind) < whole and set(behind) == {
        page.evaluate("document.querySelector('.narrow select').value")
    }
    headings = "[...document.querySelectorAll('.exercises h2')].filter(e => e.checkVisibility()).length"
    assert 0 < page.evaluate(headings) <= len(behind)
    task = json.dumps(f"task:{page.evaluate(shown + '[0].dataset.task')}")
    page.evaluate(f"remember({task}, true)")
    page.evaluate(choose.format("field.checked = true", ".narrow input"))
    assert page.evaluate(f"{shown}.length") == len(behind) - 1
    page.evaluate(choose.format("field.selectedIndex = 0", ".narrow select"))
    assert page.evaluate(f"{shown}.length") == whole - 1
    page.evaluate("localStorage.clear()")


def test_a_key_lists_the_keys_and_letters_can_be_switched_off(lesson):
    keys = "document.querySelector('dialog.keys[open]')?.textContent ?? ''"
    lesson.press("?")
    lesson.settle()
    assert all(key in lesson.evaluate(keys) for key in ("search", "next screen", "this list"))
    lesson.press("Escape")
    assert lesson.evaluate(keys) == ""
    present = "document.documentElement.classList.contains('present')"
    for click, is_on in (("letters", False), ("letters", True)):
        lesson.evaluate(f"document.querySelector('.look [name={click}]').click()")
        lesson.press("p")
        assert lesson.evaluate(present) is is_on
    lesson.evaluate("document.querySelector('.present-open').click()")
    lesson.evaluate("document.querySelector('.keys-open').click()")
    assert lesson.evaluate(keys), "a finger finds the list, too"


def test_the_theme_and_the_size_are_switched_and_remembered(lesson, site):
    light = lesson.evaluate(GROUND)
    ink = "getComputedStyle(document.querySelector('.figure svg text, .figure svg use')).fill"
    before, size = lesson.evaluate(ink), lesson.evaluate("getComputedStyle(document.body).fontSize")
    lesson.evaluate("document.querySelector('.look summary').click()")
    lesson.evaluate("document.querySelector('.look input[value=dark]').click()")
    lesson.evaluate("document.querySelector('.look [data-step=\"1\"]').click()")
    lesson.settle()
    dark = lesson.evaluate(GROUND)
    assert dark != light and lesson.evaluate(ink) != before
    assert lesson.evaluate("getComputedStyle(document.querySelector('.tx')).colorScheme") == "dark"
    lesson.open((site / "glossary.html").as_uri())
    lesson.settle()
    assert lesson.evaluate(GROUND) == dark
    assert float(lesson.evaluate("getComputedStyle(document.body).fontSize")[:-2]) > float(size[:-2])


def test_tab_walks_through_menu_search_contents_and_the_lesson_and_escape_closes_a_menu(lesson):
    lesson.evaluate("document.body.focus()")
    names = []
    for _ in range(32):
        lesson.press("Tab")
        names.append(lesson.evaluate("document.activeElement.textContent.trim().slice(0, 30)"))
    for name in ("Skip to the lesson", "Lessons", "Search", "Aa", "Set-up"):
        assert name in names, name
    assert names.index("Skip to the lesson") == 0
    lesson.focus(".lessons summary")
    lesson.press("Enter")
    assert lesson.evaluate("document.querySelector('.lessons').open") is True
    lesson.press("Escape")
    assert lesson.evaluate("document.querySelector('.lessons').open") is False
    assert lesson.evaluate("document.activeElement.textContent") == "Lessons"


def test_only_what_scrolls_is_a_stop_for_tab(lesson):
    odd = """[...document.querySelectorAll('pre, .picture, table')].filter(e => e.checkVisibility()
      && e.tabIndex !== -(e.scrollWidth <= e.clientWidth + 1 || getComputedStyle(e).overflowX !== 'auto'))"""
    for width in (1280, 390):
        lesson.size(width, 900)
        lesson.settle()
        assert lesson.evaluate(f"{odd}.length") == 0
    assert lesson.evaluate("document.querySelectorAll('pre[tabindex]').length") > 3


def test_the_contents_follow_the_reader_and_the_first_page_knows_how_far(lesson, site):
    anchors = lesson.evaluate("[...document.querySelectorAll('#lesson h2')].map(h => h.id)")
    lesson.evaluate(f"document.getElementById({json.dumps(anchors[4])}).scrollIntoView()")
    lesson.settle()
    current = "decodeURIComponent(document.querySelector('.contents [aria-current]').hash)"
    assert lesson.evaluate(current) == f"#{anchors[4]}"
    lesson.open((site / "index.html").as_uri())
    lesson.settle()
    assert f"4 of {len(anchors)} sections" in lesson.evaluate(
        f"document.querySelector('[data-lesson=\"{LESSON.name}\"] .progress').textContent"
    )
    assert "Go on: Attention and masks" in lesson.evaluate("document.querySelector('.go .begin').textContent")
    lesson.requests.clear()


def test_a_term_and_a_paper_show_a_card_on_focus_and_escape_closes_it(lesson):
    for kind in ("a.term", "a.paper"):
        said = lesson.evaluate(f"document.querySelector('{kind}[title]').title")
        lesson.focus(f"{kind}[title]")
        card = "document.querySelector('.hover-card')"
        assert lesson.evaluate(f"[{card}.hidden, {card}.textContent]") == [False, said]
        lesson.press("Escape")
        assert lesson.evaluate(f"{card}.hidden") is True


def test_a_figure_is_enlarged_and_returns_to_its_place(lesson):
    lesson.size(390, 800)
    width = "document.querySelector('#figure-1 svg, dialog[open] svg').getBoundingClientRect().width"
    before = lesson.evaluate(width)
    lesson.evaluate("document.querySelector('#figure-1 .enlarge').click()")
    lesson.settle()
    assert lesson.evaluate(width) > before
    lesson.evaluate("document.querySelector('dialog[open] .close').click()")
    lesson.settle()
    assert lesson.evaluate("!!document.querySelector('#figure-1 .picture svg')")


def test_on_a_phone_panels_stand_below_one_another_and_wide_ones_return(lesson):
    panels = """[...document.querySelectorAll("figure.figure")].map(figure => {
      const most = figure.getBoundingClientRect().right;
      return [...figure.querySelectorAll("g.axes")].map(panel => {
        const text = [...panel.querySelectorAll("text")].map(t => t.getBoundingClientRect());
        return {
          n: text.length, own: !!panel.closest(".piece"), top: Math.min(...text.map(t => t.top)),
          out: Math.max(...text.map(t => t.right)) - most, smallest: Math.min(...text.map(t => t.height)),
        };
      });
    }).filter(panels => panels.length)"""
    wide = lesson.evaluate(panels)
    assert wide and not any(one["own"] for figure in wide for one in figure)
    lesson.size(390, 800)
    lesson.settle()
    phone = lesson.evaluate(panels)
    stacked = [figure for figure in phone if any(one["own"] for one in figure)]
    assert len(stacked) >= 2
    for figure in stacked:
        assert all(one["out"] <= 0 and one["smallest"] >= 9 for one in figure if one["n"]), figure
        assert len({round(one["top"]) for one in figure}) > 1
    lesson.size(1280, 800)
    lesson.settle()
    again = lesson.evaluate(panels)
    assert [len(figure) for figure in again] == [len(figure) for figure in wide]
    assert lesson.evaluate("document.querySelectorAll('.piece, .emptied').length") == 0


def test_a_copy_button_copies_the_code(lesson):
    lesson.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    lesson.evaluate("document.querySelector('.input_area .copy').click()")
    lesson.wait("document.querySelector('.input_area .copy').textContent === 'Copied'")
    code = lesson.evaluate("document.querySelector('.input_area pre').textContent")
    assert lesson.evaluate("navigator.clipboard.readText()").strip() == code.strip()


def test_a_result_waits_for_the_prediction(lesson):
    result = "document.querySelector('[data-tx-kind=outcome]').closest('.output_area')"
    inside = f"getComputedStyle({result}.firstElementChild).visibility"
    assert lesson.evaluate(f"{result}.inert && {inside}") == "hidden"
    n_waiting = lesson.evaluate("document.querySelectorAll('.waiting').length")
    words = f"{result}.closest('.cell').nextElementSibling.querySelector('.text_cell_render > p')"
    assert lesson.evaluate(f"{words}.inert"), "the sentence below says what came out"
    assert lesson.evaluate(OPEN_BELOW) == []
    asked = lesson.evaluate(
        "[...document.querySelectorAll('.tx[aria-label^=Predict]')].map(e => e.ariaLabel)"
    )
    said = lesson.evaluate(
        "[...document.querySelectorAll('.veil')].map(e => !e.closest('[inert]') && e.innerText)"
    )
    assert len(asked) > 1 and said == [f"Hidden until you choose in {one} Go there Show" for one in asked]
    lesson.evaluate("document.querySelector('[aria-label^=Predict] input').click()")
    assert lesson.evaluate(f"{result}.inert") is True, "first the reader says how sure"
    lesson.settle()
    lesson.evaluate("document.querySelector('[aria-label^=Predict] .tx-sure input').click()")
    assert lesson.evaluate(f"{result}.inert || {words}.inert") is False
    assert 0 < lesson.evaluate("document.querySelectorAll('.waiting').length") < n_waiting
    lesson.evaluate("document.querySelectorAll('.show-result').forEach(button => button.click())")
    assert lesson.evaluate("document.querySelectorAll('.waiting, .show-result').length") == 0
    lesson.open(lesson.evaluate("location.href"))
    lesson.settle()
    assert lesson.evaluate(f"{result}.inert") is False, "the choice is remembered"


def test_what_waits_can_be_reached_by_a_link_and_is_open_on_paper(lesson, site):
    page = (site / f"{NEXT.name}.html").as_uri()
    lesson.open(page)
    lesson.settle()
    assert lesson.evaluate(OPEN_BELOW) == []
    anchor = lesson.evaluate("document.querySelector('.waiting figure').id")
    veiled = f"document.querySelector('#{anchor}').closest('.waiting')"
    n_waiting = lesson.evaluate("document.querySelectorAll('.waiting').length")
    lesson.evaluate(f"location.hash = '{anchor}'")
    lesson.wait(f"!{veiled}")
    assert 0 < lesson.evaluate("document.querySelectorAll('.waiting').length") < n_waiting
    lesson.call("Emulation.setEmulatedMedia", media="print")
    covers = "[...document.querySelectorAll('.waiting')].map(e => getComputedStyle(e).filter)"
    assert set(lesson.evaluate(covers)) == {"none"}
    insides = "[...document.querySelectorAll('.waiting > *')].map(e => getComputedStyle(e).visibility)"
    assert set(lesson.evaluate(insides)) == {"visible"}
    pills = "[...document.querySelectorAll('.waiting')].map(e => getComputedStyle(e, '::after').content)"
    assert set(lesson.evaluate(pills)) == {"none"}
    lesson.call("Emulation.setEmulatedMedia", media="screen")


def test_present_mode_shows_one_section_stops_at_predictions_and_veils_figures(lesson):
    seen = "filter(e => e.checkVisibility() && !e.closest('[inert]'))"
    shown = f"[...document.querySelectorAll('#lesson :is(h1, h2, h3)')].{seen}.map(h => h.id)"
    lesson.press("p")
    lesson.settle()
    assert len(lesson.evaluate(shown)) == 1
    assert not lesson.evaluate("document.querySelector('.bar').checkVisibility()")
    figures = """(() => {
      const main = document.querySelector('#lesson'), above = main.getBoundingClientRect().top;
      const top = parseFloat(main.style.clipPath.match(/-?[\\d.]+px/)[0]);
      return [...document.querySelectorAll('#lesson .picture')].flatMap((e, i) =>
        e.checkVisibility() && !e.closest('[inert]')
          ? [[i, !!e.closest('.veiled'), e.getBoundingClientRect().top - above - top]] : []);
    })()"""
    met, stopped, steps = set(), 0, 0
    cards = f"[...document.querySelectorAll('.tx')].{seen}.map(e => e.getAttribute('aria-label'))"
    while steps < 40 and not (len(met) > 3 and stopped):
        lesson.press("ArrowRight")
        steps += 1
        assert len(lesson.evaluate(shown)) <= 1
        labels = lesson.evaluate(cards)
        if "Predict 02.1" in labels and not stopped:
            assert "Result of 02.1" not in labels
            stopped = steps
        for figure, veiled, below in lesson.evaluate(figures):
            assert figure in met or veiled or below < 60, "it begins a screen, or was blurred"
            met.add(figure)
    assert len(met) > 3 and stopped
    of_first = "document.querySelector('.output_area:has(.picture)').classList"
    lesson.evaluate(f"{of_first}.add('veiled')")
    assert "blur" in lesson.evaluate("getComputedStyle(document.querySelector('.veiled .picture')).filter")
    lesson.evaluate(f"{of_first}.remove('veiled')")
    first = lesson.evaluate(shown)
    for key, count in (("ArrowLeft", steps), ("ArrowRight", steps)):
        for _ in range(count):
            lesson.press(key)
    assert lesson.evaluate(shown) == first, "back and forth leads to the same place"
    lesson.press("p")
    assert lesson.evaluate("document.querySelector('.bar').checkVisibility()")
    assert lesson.evaluate("document.querySelectorAll('.off, .veiled').length") == 0


def test_in_front_of_a_class_an_overview_leads_to_a_section_and_a_clock_can_be_seen(lesson):
    heading = "[...document.querySelectorAll('#lesson :is(h1, h2, h3)')].find(e => e.checkVisibility()).id"
    clocks = "[...document.querySelectorAll('.clock')].map(e => e.textContent)"
    lesson.press("o")
    assert lesson.evaluate("document.querySelector('dialog[open]')") is None, (
        "a letter of the class view alone"
    )
    lesson.press("p")
    lesson.press("o")
    sections = lesson.evaluate("[...document.querySelectorAll('.overview button')].map(e => e.textContent)")
    shown = lesson.evaluate("document.querySelector('.slide-count').textContent.match(/1 . (\\d+)/)[1]")
    assert len(sections) == int(shown) and all(0 < len(title) < 80 for title in sections)
    for _ in range(7):
        lesson.press("ArrowDown")
    lesson.press("Enter")
    assert lesson.evaluate("document.querySelector('dialog[open]')") is None
    assert lesson.evaluate(f"document.getElementById({heading}).textContent").startswith(sections[7])
    for key, n in (("t", 1), ("4", 2), ("0", 1), ("t", 0), ("9", 1)):
        lesson.press(key)
        assert len(lesson.evaluate(clocks)) == n
    assert lesson.evaluate(clocks) == ["9:00"]
    dark = "getComputedStyle(document.documentElement, '::after').content"
    for key, is_dark in (("b", True), ("b", False)):
        lesson.press(key)
        assert (lesson.evaluate(dark) != "none") is is_dark
    lesson.press("Escape")
    assert lesson.evaluate(clocks) == []


def test_in_front_of_a_class_tab_stays_on_the_screen_and_a_page_loaded_again_goes_on(page, site):
    page.size(1920, 1080)
    page.open((site / f"{LESSON.name}.html").as_uri() + "?present")
    page.settle()
    count = "document.querySelector('.slide-count').textContent"
    for _ in range(6):
        page.press(" ")
    before = page.evaluate(count)
    page.press("Tab")
    assert (
        page.evaluate("document.activeElement.closest('.tx')?.getAttribute('aria-label')") == "Predict 02.1"
    )
    assert page.evaluate(count) == before
    page.press("Escape")
    page.press("End")
    last = page.evaluate(count)
    assert re.search(r"(\d+) / \1\b", last)
    page.evaluate("location.reload()")
    page.wait("document.querySelector('.slide-count')?.textContent.length > 12")
    page.settle()
    assert page.evaluate(count) == last
    page.press("Home")
    assert "1 / " in page.evaluate(count)
    page.evaluate("localStorage.clear()")


def test_the_address_opens_it_in_front_of_a_class(page, site):
    page.open((site / f"{LESSON.name}.html").as_uri() + "?present")
    page.settle()
    assert page.evaluate("document.documentElement.classList.contains('present')")
    size = page.evaluate("parseFloat(getComputedStyle(document.querySelector('#lesson p')).fontSize)")
    assert size >= 24


def test_in_front_of_a_class_keys_alone_show_every_line_whole_in_letters_of_24_pixels(page, site):
    page.size(1280, 720)
    page.open((site / f"{LESSON.name}.html").as_uri() + "?present")
    page.settle()
    assert page.evaluate("document.querySelectorAll('.input pre').length") > 5
    assert (
        page.evaluate("[...document.querySelectorAll('.input pre')].filter(e => e.checkVisibility())") == []
    )
    page.evaluate(Path(__file__).with_name("screen.js").read_text(encoding="utf-8"))
    shown = "document.querySelector('.slide-count').textContent"
    shown += (
        " + document.querySelector('#lesson').style.clipPath + document.querySelectorAll('.veiled').length"
    )
    before, steps = None, 0
    while before != (now := page.evaluate(shown)):
        assert page.evaluate("cutOnThisScreen()") == [], now
        assert page.evaluate("headsWithoutTheirQuestion()") == [], now
        if steps == 3:  # the title and two questions of earlier lessons have no code
            page.press("c")
            page.settle()
            assert page.evaluate(
                "[...document.querySelectorAll('.input pre')].some(e => e.checkVisibility())"
            )
            assert page.evaluate("cutOnThisScreen()") == [], "with its code open"
        before, steps = now, steps + 1
        page.press("ArrowRight")
    assert 40 < steps < 90, "short blocks share a screen"
    assert " · screen 2 of " in before
    assert page.evaluate("neverSeen()") == []


def test_in_front_of_a_class_folded_code_has_no_screen_of_its_own_and_every_cell_can_be_opened(lesson):
    lesson.size(1280, 720)
    lesson.press("p")
    lesson.settle()
    closed = "[...document.querySelectorAll('#lesson .input')].filter(e => !e.classList.contains('off'))"
    closed += ".map(e => [...document.querySelectorAll('#lesson .input')].indexOf(e))"
    opened = """[...document.querySelectorAll('#lesson .input')].flatMap((e, i) =>
      e.querySelector('details')?.open ? [i] : [])"""
    folded = """(() => {
      const [top, below] = document.querySelector('#lesson').style.clipPath.match(/-?[\\d.]+px/g)
        .map(parseFloat);
      const main = document.querySelector('#lesson'), above = main.getBoundingClientRect().top;
      return [...document.querySelectorAll('#lesson :is(p, li, h1, h2, h3, figure, .tx, .output_area)')]
        .filter(e => e.checkVisibility() && e.getBoundingClientRect().bottom - above > top
          && e.getBoundingClientRect().top - above < main.offsetHeight - below).length;
    })()"""
    seen, there, screens = set(), set(), set()
    for _ in range(45):
        assert lesson.evaluate(folded) > 0
        screen = lesson.evaluate("document.querySelector('.slide-count').textContent").removesuffix(" · →")
        if screen not in screens:
            screens.add(screen)
            there |= set(lesson.evaluate(closed))
            lesson.press("c")
            seen |= set(lesson.evaluate(opened))
            lesson.press("c")
            assert lesson.evaluate(opened) == []
        lesson.press("ArrowRight")
    there -= set(lesson.evaluate(closed))  # of the last section not all was seen
    assert len(there) > 5 and there <= seen


@pytest.mark.parametrize("kind", ["one_query", "mask", "attention"])
def test_in_front_of_a_class_letters_of_an_explorer_are_large_and_none_is_cut(page, site, kind):
    page.size(1280, 720)
    page.open((site / f"{LESSON.name}.html").as_uri())
    page.evaluate(f"document.querySelector('[data-tx-kind={kind}]').scrollIntoView({{behavior: 'instant'}})")
    page.wait(f"document.querySelector('.tx[data-kind={kind}]')")
    page.press("p")
    page.settle()
    found = page.evaluate(f"({LETTERS})(document.querySelector('.tx[data-kind={kind}]'))")
    assert found["n"] > 30 and found["smallest"] >= 18
    assert found["cut"] == []
    bottom = "document.querySelector('.tx[data-kind={}]{}').getBoundingClientRect().bottom"
    below, card = (page.evaluate(bottom.format(kind, part)) for part in (" .tx-say", ""))
    assert below <= card  # the answer is seen, of a card that scrolls, too


def test_without_scripts_a_page_can_be_read(page, site):
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    page.open((site / f"{LESSON.name}.html").as_uri())
    assert page.evaluate("document.querySelector('.search-open').checkVisibility()") is False
    assert page.evaluate("document.querySelectorAll('#lesson h2').length") > 10
    assert page.evaluate("document.querySelector('.tx-still').checkVisibility()")
    page.call("Emulation.setScriptExecutionDisabled", value=False)


def test_printed_code_is_wrapped_and_answers_come_at_the_end(lesson):
    lesson.size(700, 900)
    lesson.call("Emulation.setEmulatedMedia", media="print")
    assert lesson.evaluate(TOO_WIDE) == 0
    assert not lesson.evaluate("document.querySelector('.bar').checkVisibility()")
    assert not lesson.evaluate("document.querySelector('.plotting pre').checkVisibility()")
    note = "getComputedStyle(document.querySelector('.plotting summary'), '::after').content"
    assert "in the notebook" in lesson.evaluate(note)
    above = "document.querySelector('.has-copy pre').offsetTop"
    assert lesson.evaluate(above) < 16, "no strip for the button"
    solution = (
        "[...document.querySelectorAll('summary, .answers b')].filter(e => e.textContent === 'Solution')"
    )
    places = f"{solution}.filter(e => e.checkVisibility()).map(e => !!e.closest('main'))"
    assert set(lesson.evaluate(places)) == {False}
    assert not lesson.evaluate("document.querySelector('main .tx-option-row').checkVisibility()")
    links = "[...document.querySelectorAll('.see a')].map(e => !!document.querySelector(e.hash))"
    assert len(lesson.evaluate(links)) > 10 and all(lesson.evaluate(links))
    lesson.call("Emulation.setEmulatedMedia", media="screen")
    assert set(lesson.evaluate(places)) == {True}
