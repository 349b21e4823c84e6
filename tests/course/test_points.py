"""Scattered points: kinds differ in mark and colour, the diagonal is named."""

import numpy as np
import pytest

from tinytx_course import plots

KINDS = [plots.Points("right", [0.0, 1.0], [0.0, 1.0]), plots.Points("wrong", [0.5], [0.2])]


def drawn(**settings):
    return plots.scatter(KINDS, xlabel="truth", ylabel="answer", **settings)


def test_kinds_differ_in_mark_and_not_in_colour_alone():
    _, ax = drawn()
    first, second = ax.collections
    assert not np.array_equal(first.get_facecolor(), second.get_facecolor())
    assert first.get_paths()[0].vertices.shape != second.get_paths()[0].vertices.shape
    np.testing.assert_array_equal(second.get_offsets(), [[0.5, 0.2]])


def test_all_kinds_and_the_diagonal_are_named():
    _, ax = drawn(diagonal="perfect")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["right", "wrong", "perfect"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("truth", "answer")


def test_without_a_diagonal_no_line_is_drawn():
    _, ax = drawn()
    assert not ax.lines


@pytest.mark.parametrize("ends", [(0.0, 2.0), (-1.0, 1.0)])
def test_ranges_are_kept(ends):
    _, ax = drawn(x_range=ends, y_range=ends, diagonal="perfect")
    assert ax.get_xlim() == ax.get_ylim() == ends
    assert plots.png_bytes(ax.figure)
