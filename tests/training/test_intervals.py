"""Intervals against printed tables and against simulation."""

import random

import pytest

from tinytx.training.intervals import paired_interval, t_quantile, wilson_interval


@pytest.mark.parametrize(
    ("probability", "dof", "printed"),
    [
        (0.975, 1, 12.706),
        (0.975, 2, 4.303),
        (0.975, 4, 2.776),
        (0.95, 7, 1.895),
        (0.995, 10, 3.169),
        (0.975, 29, 2.045),
        (0.9995, 3, 12.924),
        (0.975, 120, 1.980),
        (0.90, 1000, 1.282),
    ],
)
def test_t_quantile_equals_the_printed_table(probability, dof, printed):
    assert t_quantile(probability, dof) == pytest.approx(printed, abs=6e-4)
    assert t_quantile(1 - probability, dof) == pytest.approx(-printed, abs=6e-4)


def test_t_quantile_with_one_degree_is_the_cauchy_quantile():
    assert t_quantile(0.75, 1) == pytest.approx(1.0, abs=1e-10)
    assert t_quantile(0.5, 1) == 0.0


def test_wilson_interval_equals_a_worked_example():
    # 8 of 10 with z = 1.959964: centre (0.8 + 0.19207) / 1.38415, half width 0.31344 / 1.38415
    low, high = wilson_interval(8, 10)
    assert low == pytest.approx(0.4901625, abs=1e-6)
    assert high == pytest.approx(0.9433178, abs=1e-6)


def test_wilson_interval_stays_within_0_and_1_and_is_symmetric():
    low, high = wilson_interval(0, 7)
    assert low == 0.0 and 0 < high < 1
    mirrored = wilson_interval(7, 7)
    assert mirrored.high == 1.0 and mirrored.low == pytest.approx(1 - high)


def test_paired_interval_covers_the_true_mean_about_95_times_in_100():
    rng = random.Random(3)
    hits = 0
    for _ in range(400):
        interval = paired_interval([rng.gauss(0.3, 2.0) for _ in range(5)])
        hits += interval.low <= 0.3 <= interval.high
    assert 0.91 <= hits / 400 <= 0.985


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: wilson_interval(3, 0), "n >= 1, got correct=3, n=0"),
        (lambda: wilson_interval(5, 4), "correct=5, n=4"),
        (lambda: wilson_interval(1, 2, confidence=1.0), "confidence must lie between 0 and 1, got 1.0"),
        (lambda: paired_interval([0.1]), "at least 2 differences, got 1"),
        (lambda: t_quantile(1.0, 3), "probability must lie between 0 and 1"),
        (lambda: t_quantile(0.9, 0), "dof must be positive, got 0"),
    ],
)
def test_impossible_questions_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
