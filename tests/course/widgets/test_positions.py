"""The positions explorer: what its JavaScript computes, compared with the package."""

import math

import pytest
import torch

import tinytx as tx
import tinytx_course as course
from tinytx.model.positions import shift_matrix
from tinytx_course.widgets.positions import LARGEST_BASE, LONGEST, WIDEST

NUMBERS = "[js.tableOf(get), js.rotationOf(get), js.tipsOf(get), js.similarityOf(get), js.chosenOf(get)]"


@pytest.mark.parametrize(
    ("max_len", "d_model", "base", "position", "hand", "shift"),
    [
        (17, 10, 100, 3, 1, 5),
        (LONGEST, 6, 10_000, 300, 2, 211),
        (40, 12, 50, 13, 2, 7),
        (23, 62, 10**9, 1, 30, 2),
    ],
)
def test_table_rotation_and_similarity_are_those_of_the_package(
    node, max_len, d_model, base, position, hand, shift
):
    explorer = course.widgets.positions(max_len, d_model, base, position=position, hand=hand, shift=shift)
    ((table, rotation, tips, alike, chosen),) = node("positions", NUMBERS, explorer)
    assert chosen == [position, hand, shift]
    expected = tx.sinusoidal_positions(max_len + shift, d_model, base, dtype=torch.float64)
    shown = torch.tensor(table, dtype=torch.float64).view(max_len, d_model)
    torch.testing.assert_close(shown, expected[:max_len])
    pair = slice(2 * hand, 2 * hand + 2)
    turned = torch.tensor(rotation, dtype=torch.float64).view(2, 2)
    torch.testing.assert_close(turned, shift_matrix(shift, d_model, base)[pair, pair].double())
    here, there = torch.tensor(tips, dtype=torch.float64)
    torch.testing.assert_close(turned @ here, there)
    torch.testing.assert_close(there, expected[position + shift, pair])
    torch.testing.assert_close(here, expected[position, pair])
    products = shown @ shown.T / (d_model / 2)
    for distance in (0, 1, 5, max_len - 1):  # the same at every position
        diagonal = products.diagonal(distance)
        torch.testing.assert_close(diagonal, torch.full_like(diagonal, alike[distance]))


def test_the_example_can_be_checked_on_paper(describe):
    (text,) = describe(course.widgets.positions(4, 4, 100, position=1, hand=1, shift=2))
    assert f"the fastest comes round in {2 * math.pi:.1f} places, the slowest in {20 * math.pi:.1f}" in text
    assert "Place 1: hand 1 (dimensions 2 and 3" in text
    assert f"= ({math.sin(0.1):.3f}, {math.cos(0.1):.3f})" in text
    assert f"turns it by 0.200 radians to ({math.sin(0.3):.3f}, {math.cos(0.3):.3f})" in text
    assert f"dot product {math.cos(2) + math.cos(0.2):.2f} of 2." in text


def test_what_lies_outside_the_table_counts_as_its_last(node):
    explorer = course.widgets.positions(8, 4, position=300, hand=50, shift=90)
    assert node("positions", "js.chosenOf(get)", explorer) == [[7, 1, 7]]
    explorer.max_len = 400
    assert node("positions", "js.chosenOf(get)", explorer) == [[300, 1, 90]]


def test_what_does_not_fit_is_refused():
    refused = [
        ({"d_model": 7}, "d_model .* even, got 7"),
        ({"d_model": 258}, rf"d_model .* 2\.\.{WIDEST}, got 258"),
        ({"max_len": 1}, rf"max_len .* 2\.\.{LONGEST}, got 1"),
        ({"base": 1}, rf"base .* 2\.\.{LARGEST_BASE}, got 1"),
        *(({name: -1}, rf"{name} .* 0\.\.\d+, got -1") for name in ("position", "hand", "shift")),
    ]
    for options, values in refused:
        with pytest.raises(ValueError, match=values):
            course.widgets.positions(**options)
