"""A map of kinds: each cell has the colour that the legend names, and nothing else is taken."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from tinytx_course import plots

KINDS = {"kept": "#f4f4f4", "hidden": "#0072B2", "replaced": "#E69F00"}
CELLS = [[0, 1, 2], [2, 0, 0]]


def colours_of(ax):
    """Return the colour of each cell, row after row."""
    plots.png_bytes(ax.get_figure(root=True))  # colours are settled when the figure is drawn
    return ax.collections[0].get_facecolors()[:, :3]


def test_each_cell_has_the_colour_of_its_kind():
    _, ax = plots.kind_map(CELLS, KINDS)
    expected = [to_rgb(list(KINDS.values())[kind]) for row in CELLS for kind in row]
    np.testing.assert_allclose(colours_of(ax), expected, atol=0.01)


def test_a_kind_that_does_not_occur_moves_no_colour():
    _, ax = plots.kind_map([[0, 2]], KINDS)
    np.testing.assert_allclose(colours_of(ax), [to_rgb("#f4f4f4"), to_rgb("#E69F00")], atol=0.01)


def test_the_legend_names_every_kind_once():
    fig, _ = plots.kind_map(CELLS, ["kept", "hidden", "replaced"])
    (legend,) = fig.legends
    assert [text.get_text() for text in legend.get_texts()] == ["kept", "hidden", "replaced"]


@pytest.mark.parametrize("cells", [[[0, 3]], [[-1, 0]], [[0.5, 1]]])
def test_a_cell_that_is_no_kind_is_refused(cells):
    with pytest.raises(ValueError, match="cells must hold 0 to 2"):
        plots.kind_map(cells, KINDS)


def test_more_kinds_than_colours_are_refused():
    with pytest.raises(ValueError, match="at most 6, got 7"):
        plots.kind_map([[0]], list("abcdefg"))
