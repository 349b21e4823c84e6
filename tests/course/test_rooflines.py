"""A roofline has its ridge where slope and top meet, and names and numbers every point."""

import numpy as np
import pytest

from tinytx_course import plots

GROUPS = {"many": {"map": (8.0, 60e9), "sum": (0.1, 1e9)}, "one": {"map": (0.5, 4e9)}}


def drawn():
    return plots.roofline(GROUPS, flops=100e9, slopes={"memory": 20e9, "cache": 50e9}, title="Roof")


def test_slope_and_top_meet_at_the_ridge():
    _, ax = drawn()
    memory, cache = ax.lines
    np.testing.assert_allclose([memory.get_xdata()[1], cache.get_xdata()[1]], [5.0, 2.0])
    np.testing.assert_allclose(memory.get_ydata()[1:], [100.0, 100.0])
    assert memory.get_linestyle() != cache.get_linestyle()


def test_points_stand_where_they_were_measured_and_a_name_keeps_its_number():
    _, ax = drawn()
    np.testing.assert_allclose(ax.collections[0].get_offsets(), [[8.0, 60.0], [0.1, 1.0]])
    assert [text.get_text() for text in ax.texts] == ["1", "2", "1", "1  map\n2  sum"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "roof, memory",
        "roof, cache",
        "many",
        "one",
    ]


def test_what_has_no_logarithm_is_refused():
    with pytest.raises(ValueError, match="smallest number 0"):
        plots.roofline({"many": {"map": (0.0, 1.0)}}, flops=1.0, slopes={"memory": 1.0})
