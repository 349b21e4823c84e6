"""The explorers of the next word and of sampling: any beginning, by keys and by pointer."""

import re

import pytest

import tinytx_course as course
from tests.browser.test_live_model import FIELD, SUMMARY, type_in


def test_any_beginning_is_followed_and_nothing_typed_is_deleted(page, show):
    show(course.widgets.next_word("Bonjour les"))
    page.drag(page.place(".tx-may .tx-option:first-child"))
    page.settle()
    assert page.evaluate(FIELD) in ("Bonjour les amis", "Bonjour les lecteurs")
    type_in(page, " , mon  chat dort")
    typed = page.evaluate(FIELD)
    assert typed.endswith(" , mon  chat dort")
    assert "The language" in page.text(".tx-problem") and page.all(".tx-never", "e.hidden") == [True]
    page.focus("[aria-label='Token to look behind'] [tabindex='0']")
    for _ in range(3):
        page.press("ArrowLeft")
    page.settle()
    assert "What was written: “" in page.evaluate(SUMMARY)
    assert page.evaluate(FIELD) == typed  # looking changes nothing
    page.drag(page.place(".tx-may .tx-option:nth-child(2)"))
    page.settle()
    branch = page.evaluate(FIELD)  # a press takes the place of what followed
    assert re.fullmatch(r"Bonjour les (amis|lecteurs), mon \S+ .*", branch) and not branch.endswith("dort")
    assert "What was written" not in page.evaluate(SUMMARY) and page.outside() == []


def test_the_impossible_is_marked_and_never_the_longest_bar(page, show):
    show(course.widgets.next_word("Le roman est"))
    wide = "e.checkVisibility() && e.offsetWidth"
    may, never = (list(filter(None, page.all(f"{kind} i", wide))) for kind in (".tx-may", ".tx-never"))
    assert len(never) == 3 and max(never) < min(may)
    assert all("∅ never" in text for text in page.all(".tx-never .tx-option", "e.innerText"))


@pytest.mark.parametrize(
    ("line", "way", "said"), [("k", (-6 / 13, 0), "top-k 4,"), ("p", (0, 0.25), "top-p 0.5")]
)
def test_a_line_that_is_dragged_cuts(page, show, line, way, said):
    show(course.widgets.sampling("Le roman est"))
    if line == "p":  # the line of a sum is only in the stage that has its scale
        page.click(".tx-stage input", 2)
        page.settle()
    x, y = page.place(f".tx-cut-{line}", 0.5, 0.5)
    ((wide, tall),) = page.all(".tx-curve", "(b => [b.width, b.height])(e.getBoundingClientRect())")
    page.drag((x, y), (x + way[0] * wide, y + way[1] * tall))
    page.settle()
    assert said in page.evaluate(SUMMARY)
    assert page.all(".tx-stage input", "e.checked")[2] and page.all(".tx-gone")


def test_three_texts_are_written_and_said(page, show):
    show(course.widgets.sampling("Ce livre est"))
    page.focus(".tx-write")
    page.press("Enter")
    page.wait("document.querySelector('.tx-three small').textContent")
    page.press("Enter")
    page.settle()
    assert "At temperature 0.5: “" in page.evaluate(SUMMARY)
    assert page.text(".tx-write").startswith("✎")
