"""The same pages in Firefox: they come alive, train the same model, and log no error."""

import pytest

from experiments.chromium import write_page
from tests.browser.firefox import find_firefox, firefox
from tests.browser.test_playground import READY, SUMMARY, small
from tests.environments import published
from tinytx_course.building.notebooks import Run
from tinytx_course.lessons import LESSONS
from tinytx_course.site.pages import write_index
from tinytx_course.site.pages import write_page as write_lesson

pytestmark = pytest.mark.proof
SAY = "document.querySelector('[data-kind={}] .tx-say')?.textContent"


@pytest.fixture(scope="module")
def other():
    """The tab of a Firefox, in which nothing may go wrong."""
    executable = find_firefox()
    if executable is None:
        pytest.skip("needs Firefox: `apt-get install firefox-esr` on Debian")
    with firefox(executable) as page:
        yield page
        assert page.errors == []


def test_a_model_learns_the_same_in_both_browsers(other, page, tmp_path):
    address = write_page(small(), tmp_path / "page.html").as_uri()
    said = []
    for browser in (other, page):
        browser.open(address)
        browser.wait(READY, 120)
        browser.evaluate("document.querySelector('.tx-play').click()")
        browser.wait(f"{SUMMARY}.includes('Held-out reviews after step 12')", 120)
        said.append(browser.evaluate(SUMMARY))
    assert said[0] == said[1]


def test_front_page_exercises_and_a_lesson_are_alive(other, tmp_path, root):
    lesson = LESSONS[2]
    write_lesson(Run(lesson=lesson, notebook=published(lesson)), tmp_path, [], root / "figures")
    index = write_index([], tmp_path)
    other.size(1280, 900)
    other.open(index.as_uri())
    other.wait(SAY.format("live_model"))
    other.open((tmp_path / "exercises.html").as_uri())
    other.wait(SAY.format("by_hand"))
    other.evaluate("document.querySelector('.tx-hand .tx-cell').click()")
    other.wait(f"{SAY.format('by_hand')}.startsWith('1 of 25')")
    style = "getComputedStyle(document.querySelector('.tx-hand .tx-cell'))"
    assert other.evaluate(f"{style}.width") == "44px"  # of the style that is limited to one explorer
    other.open((tmp_path / f"{lesson.name}.html").as_uri())
    other.wait("!document.querySelector('.tx-explorer:not(.tx-live)')")
    for width in (1280, 390):
        other.size(width, 900)
        assert other.evaluate("document.documentElement.scrollWidth") <= width + 1  # it rounds up
