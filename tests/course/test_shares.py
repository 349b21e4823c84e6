"""Parts of a whole: areas and bars that add up to 100 percent, named where they end."""

import numpy as np
import pytest

from tinytx_course import plots

WIDTHS = [2, 4, 8]
PARTS = {"a": [1.0, 1.0, 1.0], "b": [3.0, 1.0, 0.0], "c": [0.0, 0.0, 3.0]}


def test_areas_reach_from_nothing_to_everything():
    fig, ax = plots.share_areas(WIDTHS, PARTS, xlabel="width", ylabel="percent", title="Shares", x_log=True)
    edges = [area.get_paths()[0].vertices for area in ax.collections]
    assert len(edges) == 3
    for vertices, (low, high) in zip(edges, [(0, 50), (25, 100), (25, 100)], strict=True):
        assert (vertices[:, 1].min(), vertices[:, 1].max()) == pytest.approx((low, high))
    assert ax.get_ylim() == (0, 100) and ax.get_xlim() == (2, 8) and ax.get_xscale() == "log"
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title(loc="left")) == ("width", "percent", "Shares")
    plots.png_bytes(fig)


def test_names_stand_beside_their_areas_and_apart():
    _, ax = plots.share_areas(WIDTHS, PARTS, xlabel="", ylabel="")
    places = {text.get_text(): text.get_position()[1] for text in ax.texts}
    assert places["a"] == pytest.approx(0.125) and places["c"] == pytest.approx(0.625)
    assert np.diff([places["a"], places["b"], places["c"]]).min() >= 0.0649


def test_bars_add_up_and_carry_their_notes():
    wholes = {"one": {"x": 1, "y": 3}, "two": {"x": 5, "y": 5}}
    fig, ax = plots.share_bars(wholes, xlabel="percent", notes={"one": "4 M"})
    bars = [patch for container in ax.containers for patch in container]
    assert [bar.get_width() for bar in bars] == [25, 50, 75, 50]
    assert [bar.get_x() for bar in bars] == [0, 0, 25, 50]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["one", "two"] and ax.yaxis_inverted()
    assert [text.get_text() for text in ax.texts] == ["4 M"]
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["x", "y"]
    plots.png_bytes(fig)


def test_parts_that_a_whole_lacks_are_nothing():
    _, ax = plots.share_bars({"one": {"x": 1}, "two": {"y": 2}}, xlabel="percent")
    assert [patch.get_width() for container in ax.containers for patch in container] == [100, 0, 0, 100]


def test_both_draw_into_axes_of_another_figure():
    _, (left, right) = plots.figure(1, 2)
    assert plots.share_areas(WIDTHS, PARTS, xlabel="", ylabel="", ax=left)[1] is left
    assert plots.share_bars({"one": {"x": 1}}, xlabel="", ax=right)[1] is right
