"""Diagrams as a browser draws them: legible on a phone, no label cut off, crossed or on another one."""

import pytest

from tinytx_course.plots.diagrams.diagram import DIAGRAMS, diagram
from tinytx_course.plots.diagrams.svg import Panel
from tinytx_course.site.pages import style_sheet

LETTERS = """[...document.querySelectorAll('.txd-panels text')].map(t => { const box = t.getBBox(),
  view = t.ownerSVGElement.viewBox.baseVal, scale = t.getScreenCTM().a;
  return [t.textContent, box.x, box.y, box.x + box.width, box.y + box.height, view.width, view.height,
    scale * t.getAttribute('font-size')]; })"""


#: What a reader would stumble over in the pictures that a selector finds. A letter takes less than its line.
FAULTS = """[...document.querySelectorAll(SELECTOR)].flatMap((svg) => {
  const box = (e) => { const { x, y, width, height } = e.getBBox();
    return { left: x, right: x + width, top: y, bottom: y + height }; };
  const labels = [...svg.querySelectorAll("text")].map((text) => {
    const { left, right, top, bottom } = box(text), less = (bottom - top) / 8;
    return { words: text.textContent, left, right, top: top + less, bottom: bottom - less }; });
  const holds = (one, x, y) => one.left < x && x < one.right && one.top < y && y < one.bottom;
  const points = [...svg.querySelectorAll("path[fill=none]")].flatMap((path) =>
    Array.from({ length: Math.ceil(path.getTotalLength()) }, (_, i) => path.getPointAtLength(i)));
  const boxes = [...svg.querySelectorAll("rect")].map(box);
  return labels.flatMap((one, i) => [
    ...labels.slice(i + 1).filter((other) => one.left < other.right && other.left < one.right
      && one.top < other.bottom && other.top < one.bottom).map((other) => `${one.words} | ${other.words}`),
    ...boxes.filter((each) => holds(each, (one.left + one.right) / 2, (one.top + one.bottom) / 2)
      && Math.min(one.left - each.left, each.right - one.right) < 2).map(() => `${one.words} is too wide`),
    ...(points.some(({ x, y }) => holds(one, x, y)) ? [`${one.words} is crossed`] : []),
  ]);
})"""


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
    assert len(letters) > 200
    for words, left, top, right, bottom, wide, high, size in letters:
        assert left >= 0 and top >= 0 and right <= wide and bottom <= high, words
        assert size >= 10.5, f"{words!r} has letters of {size:.1f} pixels"


def test_no_label_is_on_another_crossed_by_a_line_or_wider_than_its_box(shown):
    assert shown.evaluate(FAULTS.replace("SELECTOR", "'.txd-panels svg'")) == []


def test_the_search_for_faults_finds_each_kind(page, tmp_path):
    panel = Panel(100, 60)
    panel.text(50, 20, "one")
    panel.text(55, 24, "two")
    panel.box(2, 30, 20, 20, "four and more")
    panel.line((0, 0), (100, 40))
    (tmp_path / "panel.html").write_text(panel.svg(""), encoding="utf-8")
    page.open((tmp_path / "panel.html").as_uri())
    found = page.evaluate(FAULTS.replace("SELECTOR", "'svg'"))
    assert {"one | two", "one is crossed", "four and more is too wide"} <= set(found)


def test_a_page_decides_between_light_and_dark_and_the_still_is_hidden(shown):
    ink = "getComputedStyle(document.querySelector('.txd text')).fill"
    shown.size(1280, 800)
    light = shown.evaluate(ink)
    shown.size(1280, 800, dark=True)
    assert shown.evaluate(ink) != light
    hidden = "[...document.querySelectorAll('.txd-still')].every(e => getComputedStyle(e).display === 'none')"
    assert shown.evaluate(hidden)
    assert shown.outside() == []
