"""The picture of the README: it can be read on a phone, says what it shows, and marks what is not allowed."""

import re
from xml.etree import ElementTree

import pytest

from tinytx_course.building.picture import THEMES, WIDTH, alt_text, draw_picture
from tinytx_course.building.project import program_in

TEXT = {"curve": "masked", "step": 0, "words": ["A", "b", ".", "C"], "allowed": [True, False, False, True]}
RECORD = {
    "bound": 1.5,
    "masked": [[0, 6.0], [10, 3.0], [20, 1.8]],
    "unmasked": [[10, 3.0], [20, 0.2]],
    "texts": [TEXT, TEXT | {"step": 20}, TEXT | {"curve": "unmasked", "step": 20, "words": ["x"] * 4}],
}
NAMESPACE = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("theme", THEMES)
def test_letters_are_ten_pixels_on_a_phone_and_both_themes_say_the_same(theme):
    drawn, other = (draw_picture(RECORD, one) for one in (theme, "light"))
    sizes = [int(size) for size in re.findall(r"(\d+)px", drawn)]
    assert min(sizes) * 380 / WIDTH > 9.9
    tree = ElementTree.fromstring(drawn)
    assert [*tree.itertext()][4:] == [*ElementTree.fromstring(other).itertext()][4:]
    assert "20 % above" in drawn and tree.find(f"{NAMESPACE}title").text == alt_text(RECORD)


def test_what_the_grammar_does_not_allow_is_underlined():
    tree = ElementTree.fromstring(draw_picture(RECORD, "light"))
    rows = [row for row in tree.iter(f"{NAMESPACE}text") if row.find(f"{NAMESPACE}tspan") is not None]
    assert ["".join(row.itertext()) for row in rows] == ["A b. C", "A b. C", "x x x x"]
    assert [row.find(f"{NAMESPACE}tspan").text for row in rows] == ["b.", "b.", "x x"]


def test_every_point_lies_in_the_picture_and_the_copy_begins_on_the_first_curve():
    first, copy = re.findall(r'd="M([^"]+)"', draw_picture(RECORD, "dark"))
    points = [tuple(map(float, point.split(","))) for point in f"{first} {copy}".split()]
    assert all(0 < x < WIDTH and y > 0 for x, y in points)
    assert copy.split()[0] in first.split()


def test_a_page_without_a_program_is_refused():
    assert program_in("a\n```python\nx = 1\n```\n") == "x = 1\n"
    with pytest.raises(ValueError, match="must show a program"):
        program_in("```\nx\n```")
