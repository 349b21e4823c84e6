"""The explorers of the next word and of sampling: any beginning, by keys and by pointer."""

import re

import pytest

import tinytx_course as course
from experiments.chromium import write_page
from tests.browser.test_live_model import FIELD, SUMMARY, type_in


def opened(page, tmp_path, explorer):
    page.open(write_page(explorer, tmp_path / "page.html").as_uri())
    page.wait("document.querySelector('.tx-say')?.textContent")


def test_any_beginning_is_followed_and_nothing_typed_is_deleted(page, tmp_path):
    opened(page, tmp_path, course.widgets.next_word("Bonjour les"))
    page.drag(page.place(".tx-may .tx-option:first-child"))
    page.settle()
    assert page.evaluate(FIELD) in ("Bonjour les amis", "Bonjour les lecteurs")
    type_in(page, " , mon  chat dort")
    typed = page.evaluate(FIELD)
    assert typed.endswith(" , mon  chat dort")
    assert "The language" in page.evaluate("document.querySelector('.tx-problem').textContent")
    assert page.evaluate("document.querySelector('.tx-never').hidden") is True
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


def test_the_impossible_is_marked_and_never_the_longest_bar(page, tmp_path):
    opened(page, tmp_path, course.widgets.next_word("Le roman est"))
    width = "[...document.querySelectorAll('{} i')].filter(e => e.checkVisibility()).map(e => e.offsetWidth)"
    may, never = (page.evaluate(width.format(kind)) for kind in (".tx-may", ".tx-never"))
    assert len(never) == 3 and max(never) < min(may)
    texts = page.evaluate("[...document.querySelectorAll('.tx-never .tx-option')].map(e => e.innerText)")
    assert all("∅ never" in text for text in texts)


@pytest.mark.parametrize(
    ("line", "way", "said"), [("k", (-6 / 13, 0), "top-k 4,"), ("p", (0, 0.25), "top-p 0.5")]
)
def test_a_line_that_is_dragged_cuts(page, tmp_path, line, way, said):
    opened(page, tmp_path, course.widgets.sampling("Le roman est"))
    if line == "p":  # the line of a sum is only in the stage that has its scale
        page.evaluate("document.querySelectorAll('.tx-stage input')[2].click()")
        page.settle()
    x, y = page.place(f".tx-cut-{line}", 0.5, 0.5)
    wide, tall = page.evaluate(
        "(b => [b.width, b.height])(document.querySelector('.tx-curve').getBoundingClientRect())"
    )
    page.drag((x, y), (x + way[0] * wide, y + way[1] * tall))
    page.settle()
    assert said in page.evaluate(SUMMARY)
    assert page.evaluate("document.querySelectorAll('.tx-stage input')[2].checked") is True
    assert page.evaluate("document.querySelectorAll('.tx-gone').length") > 0


def test_three_texts_are_written_and_said(page, tmp_path):
    opened(page, tmp_path, course.widgets.sampling("Ce livre est"))
    page.focus(".tx-write")
    page.press("Enter")
    page.wait("document.querySelector('.tx-three small').textContent")
    page.press("Enter")
    page.settle()
    assert "At temperature 0.5: “" in page.evaluate(SUMMARY)
    assert page.evaluate("document.querySelector('.tx-write').textContent").startswith("✎")
