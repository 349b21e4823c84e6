"""Boxes as wide as their pieces, letter under letter."""

import pytest

pytest.importorskip("matplotlib")

from matplotlib.patches import Rectangle

from tinytx_course import plots
from tinytx_course.plots.matrices import GAP

ROWS = {"letters": ["l", "e", "s"], "joined": ["le", "s"]}


def test_boxes_lie_where_their_letters_are():
    _, ax = plots.piece_rows(ROWS)
    boxes = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    spans = [(round(box.get_x() - GAP), round(box.get_x() + box.get_width() + GAP)) for box in boxes]
    assert spans == [(0, 1), (1, 2), (2, 3), (0, 2), (2, 3)]


def test_letters_stand_under_equal_letters():
    _, ax = plots.piece_rows(ROWS)
    places = {(text.get_text(), *text.get_position()) for text in ax.texts}
    assert {("e", 1.5, 0), ("e", 1.5, 1), ("s", 2.5, 0), ("s", 2.5, 1)} <= places


def test_each_row_is_named_and_counted():
    _, ax = plots.piece_rows(ROWS, unit="tokens", title="Cut", ylabel="how")
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["letters", "joined"]
    assert {"3 tokens", "2 tokens"} <= {text.get_text() for text in ax.texts}
    assert (ax.get_title(loc="left"), ax.get_ylabel()) == ("Cut", "how")


def test_neighbours_differ_in_colour():
    _, ax = plots.piece_rows(ROWS)
    faces = [patch.get_facecolor() for patch in ax.patches]
    assert faces[0] != faces[1] and faces[0] == faces[2]


@pytest.mark.parametrize("rows", [{}, {"nothing": []}])
def test_rows_without_pieces_are_refused(rows):
    with pytest.raises(ValueError, match="rows must hold at least one row"):
        plots.piece_rows(rows)
