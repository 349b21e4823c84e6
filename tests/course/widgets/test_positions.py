"""The positions explorer against the package, and its JavaScript against its Python."""

import math

import numpy as np
import pytest

import tinytx as tx
import tinytx_course as course
from tinytx.model.positions import shift_matrix
from tinytx_course.widgets.positions import LARGEST_BASE, LONGEST, WIDEST


def some(seed):
    random = np.random.default_rng(seed)
    return course.widgets.positions(
        int(random.integers(2, 130)),
        2 * int(random.integers(1, 40)),
        int(10 ** random.uniform(0.4, 9)),
        position=int(random.integers(LONGEST)) if seed % 3 == 0 else int(random.integers(30)),
        hand=int(random.integers(WIDEST // 2)) if seed % 4 == 0 else int(random.integers(20)),
        shift=int(random.integers(30)),
    )


def test_the_table_is_that_of_the_package():
    explorer = course.widgets.positions(17, 10, 100)
    np.testing.assert_allclose(explorer.table(), tx.sinusoidal_positions(17, 10, 100), atol=1e-6)
    assert explorer.table().dtype == np.float64


def test_the_rotation_moves_the_hand_whatever_the_place():
    explorer = course.widgets.positions(40, 12, 50, hand=2, shift=7)
    turned = explorer.rotation()
    for explorer.position in (0, 1, 13, 32):
        here, there = explorer.tips()
        np.testing.assert_allclose(turned @ here, there, atol=1e-12)
        np.testing.assert_array_equal(explorer.rotation(), turned)
        row = shift_matrix(7, 12, 50).numpy() @ explorer.table()[explorer.position]
        np.testing.assert_allclose(row[4:6], there, atol=1e-12)


def test_similarity_depends_on_the_distance_only():
    explorer = course.widgets.positions(23, 14, 1000)
    table, alike = explorer.table(), explorer.similarity()
    for distance in range(23):
        diagonal = (table @ table.T).diagonal(distance)
        np.testing.assert_allclose(diagonal, np.full(23 - distance, 7 * alike[distance]), atol=1e-12)
    assert alike[0] == pytest.approx(1)


def test_the_example_can_be_checked_on_paper():
    explorer = course.widgets.positions(4, 4, 100, position=1, hand=1, shift=2)
    text = explorer.describe()
    assert f"the fastest comes round in {2 * math.pi:.1f} places, the slowest in {20 * math.pi:.1f}" in text
    assert "Place 1: hand 1 (dimensions 2 and 3" in text
    assert f"= ({math.sin(0.1):.3f}, {math.cos(0.1):.3f})" in text
    assert f"turns it by 0.200 radians to ({math.sin(0.3):.3f}, {math.cos(0.3):.3f})" in text
    assert f"dot product {math.cos(2) + math.cos(0.2):.2f} of 2." in text


def test_what_lies_outside_the_table_counts_as_its_last():
    explorer = course.widgets.positions(8, 4, position=300, hand=50, shift=90)
    assert explorer.chosen() == (7, 1, 7)
    explorer.max_len = 400
    assert explorer.chosen() == (300, 1, 90)


def test_the_page_computes_what_python_computes(node):
    explorers = [course.widgets.positions(), course.widgets.positions(LONGEST, 6), *map(some, range(20))]
    found = node(
        "positions",
        "[js.speedsOf(get), js.tableOf(get), js.rotationOf(get), js.tipsOf(get), js.similarityOf(get), "
        "js.chosenOf(get), js.describe(get)]",
        *explorers,
    )
    for explorer, (*numbers, chosen, text) in zip(explorers, found, strict=True):
        own = (explorer.speeds(), explorer.table().ravel(), explorer.rotation().ravel(), explorer.tips())
        for theirs, ours in zip(numbers, (*own, explorer.similarity()), strict=True):
            np.testing.assert_allclose(theirs, ours, atol=1e-5)
        assert tuple(chosen) == explorer.chosen()
        assert text == explorer.describe()


def test_the_page_is_small():
    assert len(course.widgets.positions(LONGEST, WIDEST).to_html()) < 60_000


def test_what_does_not_fit_is_refused():
    positions = course.widgets.positions
    with pytest.raises(ValueError, match="d_model must be even, got 7"):
        positions(d_model=7)
    with pytest.raises(ValueError, match=rf"d_model must lie in 2\.\.{WIDEST}, got 258"):
        positions(d_model=258)
    with pytest.raises(ValueError, match=rf"max_len must lie in 2\.\.{LONGEST}, got 1"):
        positions(1)
    with pytest.raises(ValueError, match=rf"base must lie in 2\.\.{LARGEST_BASE}, got 1"):
        positions(base=1)
    for name in ("position", "hand", "shift"):
        with pytest.raises(ValueError, match=rf"{name} must lie in 0\.\.\d+, got -1"):
            positions(**{name: -1})
