"""Diagrams as a browser draws them: letters as wide as estimated, legible on a phone, no overflow."""

import pytest

from tinytx_course.plots.diagrams.diagram import DIAGRAMS, diagram
from tinytx_course.site.pages import style_sheet

LETTERS = """[...document.querySelectorAll('.txd-panels text')].map(t => { const box = t.getBBox(),
  view = t.ownerSVGElement.viewBox.baseVal, scale = t.getScreenCTM().a;
  return [t.textContent, box.x, box.y, box.x + box.width, box.y + box.height, view.width, view.height,
    scale * t.getAttribute('font-size')]; })"""


@pytest.fixture
def shown(page, tmp_path):
    """Every diagram on one page in the style of the site."""
    body = "".join(diagram(name).to_html() for name in DIAGRAMS)
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    path = tmp_path / "diagrams.html"
    path.write_text(
        f"<!DOCTYPE html><html><head>{head}<style>{style_sheet()}</style></head>"
        f'<body><div class="frame"><main>{body}</main></div></body></html>',
        encoding="utf-8",
    )
    page.open(path.as_uri())
    return page


@pytest.mark.parametrize("width", [390, 1280])
def test_every_letter_lies_in_its_picture_and_can_be_read(shown, width):
    shown.size(width, 800)
    shown.settle()
    assert shown.width() <= width
    letters = shown.evaluate(LETTERS)
    assert len(letters) == sum(len(panel.labels) for name in DIAGRAMS for panel in diagram(name).panels)
    for words, left, top, right, bottom, wide, high, size in letters:
        assert left >= 0 and top >= 0 and right <= wide and bottom <= high, words
        assert size >= 10.5, f"{words!r} has letters of {size:.1f} pixels"


def test_no_label_is_wider_than_estimated(shown):
    labels = [label for name in DIAGRAMS for panel in diagram(name).panels for label in panel.labels]
    for label, (words, left, _, right, *_) in zip(labels, shown.evaluate(LETTERS), strict=True):
        assert right - left <= 1.02 * label.box.width + 1, words


def test_a_page_decides_between_light_and_dark_and_the_still_is_hidden(shown):
    ink = "getComputedStyle(document.querySelector('.txd text')).fill"
    shown.size(1280, 800)
    light = shown.evaluate(ink)
    shown.size(1280, 800, dark=True)
    assert shown.evaluate(ink) != light
    hidden = "[...document.querySelectorAll('.txd-still')].every(e => getComputedStyle(e).display === 'none')"
    assert shown.evaluate(hidden)
    assert shown.outside() == []
