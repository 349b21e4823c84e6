"""Maps of layers by depth: one colour scale, equal on both sides of 1, rows that end where stacks end."""

import numpy as np
import pytest

from tinytx_course import plots

ROWS = {2: [1.0, 10.0, 100.0], 4: [1.0, 0.1, 0.01, 1e-9, 0.0]}


def color(ax, row, col):
    mesh = ax.collections[row]
    return np.array(mesh.to_rgba(mesh.get_array()))[0, col, :3]


def test_one_is_white_more_is_red_and_less_is_blue():
    _, ax = plots.depth_map(ROWS, low=0.01, high=100, bar_label="size")
    assert color(ax, 0, 0).min() > 0.95
    red, blue = color(ax, 0, 1), color(ax, 1, 1)
    assert red[0] > red[2] + 0.2
    assert blue[2] > blue[0] + 0.2


def test_a_scale_that_reaches_less_far_down_has_the_same_colours():
    _, whole = plots.depth_map(ROWS, low=0.01, high=100, bar_label="size")
    _, part = plots.depth_map(ROWS, low=0.1, high=100, bar_label="size")
    for row, col in [(0, 0), (0, 1), (0, 2), (1, 1)]:
        assert np.allclose(color(whole, row, col), color(part, row, col), atol=0.03)
    assert not np.allclose(color(whole, 1, 2), color(part, 1, 2), atol=0.03), "beyond its end"


def test_a_scale_that_ends_at_one_has_one_side():
    _, ax = plots.depth_map({"a": [1.0, 0.1, 0.01]}, low=1e-4, high=1, bar_label="share")
    steps = [color(ax, 0, col).sum() for col in range(3)]
    assert steps == sorted(steps, reverse=True), "darker the smaller"


def test_a_row_ends_where_its_stack_ends():
    _, ax = plots.depth_map(ROWS, low=0.01, high=100, bar_label="size", ylabel="layers")
    assert [mesh.get_array().size for mesh in ax.collections] == [3, 5]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["2", "4"]
    assert ax.yaxis_inverted()


def test_what_lies_beyond_the_scale_has_its_end_and_the_bar_an_arrow():
    fig, ax = plots.depth_map(ROWS, low=0.1, high=10, bar_label="size")
    assert np.allclose(color(ax, 1, 4), color(ax, 1, 3)), "zero counts as very small"
    bar = fig.axes[1]
    assert bar.get_ylabel() == "size"
    assert bar._colorbar.extend == "both"
    fig, _ = plots.depth_map({"a": [0.5, 2.0]}, low=0.1, high=10, bar_label="size")
    assert fig.axes[1]._colorbar.extend == "neither"
    fig, _ = plots.depth_map({"a": [0.5, 2.0]}, low=0.1, high=10)
    assert len(fig.axes) == 1, "no name, no bar"


def test_many_levels_are_numbered_in_even_steps():
    _, ax = plots.depth_map({32: [1.0] * 33}, low=0.1, high=10, bar_label="size")
    assert [tick.get_text() for tick in ax.get_xticklabels()] == [str(level) for level in range(0, 33, 4)]


def test_errors_say_what_is_wrong():
    with pytest.raises(ValueError, match="at least one stack, got none"):
        plots.depth_map({}, low=0.1, high=1, bar_label="size")
    with pytest.raises(ValueError, match="0 < low < high, got low=0, high=1"):
        plots.depth_map(ROWS, low=0, high=1, bar_label="size")
