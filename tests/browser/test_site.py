"""Pages of the site as `make course` writes them: live explorers, no request, nothing that axe finds."""

import json
import shutil
from pathlib import Path

import nbformat
import pytest

from tests.browser.cases import CASES
from tinytx_course.building.notebooks import Run
from tinytx_course.lessons import LESSONS, written_lessons
from tinytx_course.site.pages import write_page

NEIGHBOURS = (
    "/site.js",
    "/math.css",
    "/explorers.js",
    "/engine.js",
    "/training.js",
    "/search-index.js",
    ".png",
)
AXE = Path(__file__).parent / "vendor" / "axe.min.js"
RUN_AXE = """axe.run(document, { resultTypes: ['violations'], preload: false, ...MORE }).then(
  found => JSON.stringify(found.violations.map(v => [v.id, v.help,
    v.nodes.slice(0, 3).map(n => n.html.slice(0, 160) + ' ' + n.failureSummary)])))"""
TARGETS = "{ rules: { 'target-size': { enabled: true } } }"  # off unless it is asked for
COLOURS = "{ runOnly: ['color-contrast', 'link-in-text-block'] }"  # all that a theme changes
_PROSE = "# A lesson\n\nSome `code`, and a formula: $x^2$.\n\n## A chapter\n\n| a | b |\n|---|---|\n| 1 | 2 |"
_CODE = "import tinytx as tx\n\n@property\ndef f(x: int = 0x1F, *, y='text') -> float:  # say\n    return x\n"


# Explorers that can be seen and wait for their first picture.
UNDRAWN = """[...document.querySelectorAll('.tx:has(> .tx-head) > .tx-say > [role=status]')]
  .some((e) => e.checkVisibility() && !e.textContent)"""


def violations(page, address, widths=(1280,)):
    """Open a page at each width in both themes and return what axe finds."""
    page.open(address)
    page.evaluate(AXE.read_text(encoding="utf-8") + "\n;1")
    found = []
    for width in widths:
        for dark in (False, True):
            page.size(width, 1000, dark=dark)
            page.settle()
            page.wait(f"!{UNDRAWN}")
            found += json.loads(page.evaluate(RUN_AXE.replace("MORE", COLOURS if dark else TARGETS)))
    return found


def written(folder, name, notebook):
    """Write the page of a lesson; return its address."""
    lesson = next(lesson for lesson in LESSONS if lesson.name == name)
    return write_page(Run(lesson=lesson, notebook=notebook, seconds=1.0), folder).as_uri()


def outside(page):
    """Return the requests for anything but the page and the files next to it."""
    return [url for url in page.outside() if not url.startswith("file:") or not url.endswith(NEIGHBOURS)]


def test_all_explorers_live_in_one_page_without_a_request_or_a_violation(page, tmp_path):
    v4 = nbformat.v4
    printed = v4.new_output("stream", name="stdout", text="a long line of output " * 20 + "\n")
    cells = [v4.new_markdown_cell(_PROSE), v4.new_code_cell(_CODE, outputs=[printed])]
    for case in CASES.values():
        bundle, _ = case.make()._repr_mimebundle_()
        output = v4.new_output("execute_result", data=bundle, execution_count=1)
        cells.append(v4.new_code_cell(case.code, outputs=[output]))
    address = written(tmp_path, LESSONS[2].name, v4.new_notebook(cells=cells))
    page.open(address)
    page.wait(f"document.querySelectorAll('.tx-say').length === {len(CASES)}")
    page.settle()
    named = page.all(".tx", "e.getAttribute('aria-label')")
    assert named == [case.make().title for case in CASES.values()]
    assert outside(page) == []
    for width in (360, 1200):
        page.size(width, 900)
        page.settle()
        assert page.width() <= width
    page.size(1280, 720)
    page.settle()
    heights = "[...document.querySelectorAll('.tx')].map(e => [e.dataset.kind, e.offsetHeight])"
    tall = {kind for kind, height in page.evaluate(heights) if height > 690}
    assert tall <= {"playground"}  # which is scrolled along while it trains
    assert violations(page, address) == []


@pytest.mark.parametrize("lesson", written_lessons(), ids=lambda lesson: lesson.name)
def test_the_page_of_a_lesson_has_no_violation_and_asks_for_nothing(page, whole_kit, lesson):
    assert violations(page, (whole_kit / "site" / f"{lesson.name}.html").as_uri(), (1280, 390)) == []
    assert outside(page) == []


# The least distance of what an explorer says from its head, on the way down to it.
APART = """(() => {
  const [head, say] = ["head", "say"].map((one) => document.querySelector(`.tx > .tx-${one}`));
  document.body.style.paddingTop = "100vh";
  const places = [40, 80, 120, 160, 200, 240].map((y) => {
    scrollTo(0, y);
    return say.getBoundingClientRect().top - head.getBoundingClientRect().bottom;
  });
  document.body.style.paddingTop = "";
  return Math.min(...places);
})()"""


#: Controls that a reader scrolls to and then does not see what the explorer says.
UNSEEN = """(() => {
  const say = document.querySelector('.tx-here > .tx > .tx-say');
  return [...document.querySelectorAll('.tx :is(button, input, select, [tabindex="0"])')].filter((each) => {
    if (!each.checkVisibility() || say.contains(each) || each.closest('.tx-head')) return false;
    each.scrollIntoView({ block: 'center', behavior: 'instant' });
    const { top, bottom } = say.getBoundingClientRect();
    return bottom < 10 || top > innerHeight - 10;
  }).length;
})()"""


@pytest.mark.parametrize("name", ["07_your_own_gpt", "exercises", "index"])
def test_a_page_that_opens_answers_in_between(page, whole_kit, name):
    page.start_tracing()
    page.open((whole_kit / "site" / f"{name}.html").as_uri())
    page.settle()
    assert page.longest_task() < 200  # 100 on the machine it was made on; in one piece more than 300


def test_each_explorer_has_a_bare_page_that_lives_at_any_width(page, whole_kit):
    alone = sorted((whole_kit / "site" / "explorers").glob("*.html"))
    for path in alone:
        for width in (320, 390, 1280):
            page.size(width, 800)
            page.open(path.as_uri())
            page.wait(
                "/^(?!A new model is being made)./.test(document.querySelector('.tx-say')?.textContent)"
            )
            assert page.width() <= width and outside(page) == []
            assert page.evaluate(APART) > 0, (path.name, width)
            assert width > 640 or page.evaluate(UNSEEN) == 0, (path.name, width)
        assert "a course on transformers" in page.text(".tx-credit")
        first, asked = page.text(".tx-say"), page.all(".tx-tries > a", "e.hash")
        assert len(asked) == (0 if path.stem == "index-playground" else 3)
        for n, place in enumerate(asked):  # one after the other: a press does what is asked
            assert page.all(".tx-tries > .tx-now", "e.hash") == [place]
            page.focus(".tx-tries > .tx-now")
            page.press("Enter")
            page.wait(f"document.querySelectorAll('.tx-tried [href]').length === {n + 1}")
            page.wait(f"document.querySelector('.tx-say').textContent !== {json.dumps(first)}")
            assert page.text(".tx-tries [role=status]") == f"Done: step {n + 1} of 3."
            page.click(".tx-tries .tx-button")
            assert page.evaluate("getComputedStyle(document.activeElement).visibility") == "visible"
        (picture,) = page.all("[property='og:image']", "e.content")
        assert (path.parent / picture).is_file()
        target, _, name = page.all(".tx-credit a", "e.getAttribute('href')")[0].partition("#")
        assert (path.parent / target).is_file() and name[:-1] == path.stem.partition("-")[2]
    assert {path.name[:2] for path in alone} >= {"02", "17", "in", "pl"}
    assert violations(page, alone[0].as_uri(), (390,)) == []


def test_the_site_of_all_published_lessons_fits_a_stick_and_so_does_each_page(page, whole_kit, tmp_path):
    folder = whole_kit / "site"
    archive = Path(shutil.make_archive(str(tmp_path / "site"), "zip", folder))
    assert archive.stat().st_size <= 15_000_000
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) <= 13_000_000
    assert [path.name for path in folder.glob("[0-9]*.html") if path.stat().st_size > 600_000] == []
    assert (folder / "engine.js").stat().st_size + (folder / "index.html").stat().st_size < 3_000_000
    page.open((folder / "index.html").as_uri())
    page.wait("document.querySelector('[data-kind=live_model] .tx-say')?.textContent")
    assert outside(page) == []
