"""Runs by seed: hand numbers for mean, range and windows."""

import pytest
import torch

from tinytx_course import plots

RUNS = [[1.0, 3.0, 5.0, 7.0, 100.0], [3.0, 5.0, 1.0, 1.0, 100.0]]


def test_the_band_goes_from_the_lowest_seed_to_the_highest():
    curve = plots.seed_band("loss", torch.tensor(RUNS))
    assert list(curve.x) == [1, 2, 3, 4, 5]
    assert list(curve.y) == [2, 4, 3, 4, 100]
    assert list(curve.low) == [1, 3, 1, 1, 100]
    assert list(curve.high) == [3, 5, 5, 7, 100]


def test_windows_are_means_and_what_is_left_over_is_not_shown():
    curve = plots.seed_band("loss", RUNS, every=2, dashed=True)
    assert list(curve.x) == [2, 4]
    assert list(curve.y) == [3, 3.5]
    assert (list(curve.low), list(curve.high)) == ([2, 1], [4, 6])
    assert curve.dashed and curve.label == "loss"


@pytest.mark.parametrize("runs", [[1.0, 2.0], [[1.0, 2.0]]])
def test_shapes_that_do_not_fit_are_refused(runs):
    with pytest.raises(ValueError, match=r"shape \(n_seeds, n_steps >= 3\), got"):
        plots.seed_band("loss", runs, every=3)
