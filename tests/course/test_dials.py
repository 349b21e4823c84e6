"""Clocks: the hand stands where sine and cosine say."""

import math

import pytest
import torch

from tinytx_course import plots


def hands(ax):
    """Return (tip - middle) of each hand, with up as positive."""
    lines = [line.get_xydata() for line in ax.lines if len(line.get_xydata()) == 2]
    return [(tip - middle) * (1, -1) for middle, tip in lines[1::2]]  # before each hand its mark at the top


def test_a_hand_points_to_sine_and_cosine_of_its_angle():
    angles = torch.tensor([[0.0, 1.0, math.pi / 2], [2.5, -1.0, 7.0]])
    _, ax = plots.dials(angles)
    for angle, hand in zip(angles.flatten().tolist(), hands(ax), strict=True):
        assert hand / 0.4 == pytest.approx([math.sin(angle), math.cos(angle)], abs=1e-6)


def test_rows_run_downwards_and_carry_their_names():
    _, ax = plots.dials(torch.zeros(2, 3), row_labels=["fast", "slow"], xlabel="position (tokens)")
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["fast", "slow"]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0", "1", "2"]
    assert ax.transData.transform((0, 0))[1] > ax.transData.transform((0, 1))[1]
    assert ax.get_xlabel() == "position (tokens)"


def test_angles_must_form_a_table():
    with pytest.raises(ValueError, match=r"^angles must have two axes, got shape \(3,\)$"):
        plots.dials(torch.zeros(3))
