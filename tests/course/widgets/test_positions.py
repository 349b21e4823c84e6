"""The positions explorer: what its JavaScript computes, compared with the package."""

import math

import pytest
import torch

import tinytx as tx
import tinytx_course as course
from tests.course.widgets.conftest import changed, close
from tinytx.positions import shift_matrix

NUMBERS = "[js.tableOf(get), js.rotationOf(get), js.tipsOf(get), js.similarityOf(get), js.chosenOf(get)]"


@pytest.mark.parametrize(
    ("max_len", "d_model", "base", "position", "hand", "shift"),
    [
        (17, 10, 100, 3, 1, 5),
        (512, 6, 10_000, 300, 2, 211),
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
    pair = slice(2 * hand, 2 * hand + 2)
    close(table, expected[:max_len])
    close(tips, expected[[position, position + shift], pair])
    turn = shift_matrix(shift, d_model, base)[pair, pair].double()
    close(rotation, turn)
    torch.testing.assert_close(turn @ expected[position, pair], expected[position + shift, pair])
    products = expected[:max_len] @ expected[:max_len].T / (d_model / 2)
    for distance in (0, 1, 5, max_len - 1):  # the same at every position
        diagonal = products.diagonal(distance)
        torch.testing.assert_close(diagonal, torch.full_like(diagonal, alike[distance]))


@pytest.mark.parametrize(("hand", "shift"), [(0, 3), (2, 5), (4, 0)])
def test_a_turned_query_and_key_are_those_of_rotate_and_their_score_does_not_know_the_position(
    node, describe, hand, shift
):
    made = [
        changed(course.widgets.positions(23, 10, 50, position=place, hand=hand, shift=shift), mode="rotary")
        for place in (0, 7, 19)
    ]
    pages = node("positions", "[js.CONTENT, js.rotaryOf(get), js.scoresOf(get)]", *made)
    scores = []
    for place, (content, turned, curve) in zip((0, 7, 19), pages, strict=True):
        vectors = torch.zeros(2, 10, dtype=torch.float64)
        vectors[:, 2 * hand : 2 * hand + 2] = torch.tensor([content["q"], content["k"]])
        q, k = tx.rotate(vectors, torch.tensor([place, place + shift]), base=50)[:, 2 * hand : 2 * hand + 2]
        close(turned["q"], q)
        close(turned["k"], k)
        scores += [float(q @ k), turned["score"], curve[shift]]
    torch.testing.assert_close(scores, [scores[0]] * 9)
    assert all(f"product is {scores[0]:.3f} at".replace("-", "−") in text for text in describe(*made))


def test_the_example_can_be_checked_on_paper(describe):
    (text,) = describe(course.widgets.positions(4, 4, 100, position=1, hand=1, shift=2))
    assert f"the fastest takes {2 * math.pi:.1f} positions for a turn, the slowest {20 * math.pi:.1f}" in text
    assert "Position 1: hand 1 (dimensions 2 and 3" in text
    assert f"= ({math.sin(0.1):.3f}, {math.cos(0.1):.3f})" in text
    assert f"turns it by 0.200 radians to ({math.sin(0.3):.3f}, {math.cos(0.3):.3f})" in text
    assert f"dot product {math.cos(2) + math.cos(0.2):.2f} of 2." in text


@pytest.mark.parametrize("mode", ["added", "rotary"])
def test_the_finding_holds_at_every_position_while_play_runs(describe, mode):
    made = [changed(course.widgets.positions(position=p, shift=3), mode=mode) for p in (0, 9, 40)]
    findings = {text.split("\n")[0] for text in describe(*made)}
    assert len(findings) == 1 and " 3 apart" in findings.pop()


def test_what_lies_outside_the_table_counts_as_its_last(node):
    explorer = course.widgets.positions(8, 4, position=300, hand=50, shift=90)
    assert node("positions", "js.chosenOf(get)", explorer) == [[7, 1, 7]]
    explorer.max_len = 400
    assert node("positions", "js.chosenOf(get)", explorer) == [[300, 1, 90]]
