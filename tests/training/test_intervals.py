"""Confidence intervals against printed tables, a worked example and simulation."""

import random

import pytest

from tinytx.training.intervals import paired_interval, wilson_interval


@pytest.mark.parametrize(("n", "printed"), [(2, 12.706), (5, 2.776), (8, 2.365), (30, 2.045)])
def test_a_paired_interval_has_the_half_width_of_the_printed_t_table(n, printed):
    values = [(-1) ** i + 0.1 * i for i in range(n)]
    mean = sum(values) / n
    deviation = (sum((value - mean) ** 2 for value in values) / (n - 1)) ** 0.5
    interval = paired_interval(values)
    assert interval.n == n and interval.mean == pytest.approx(mean)
    for end in (interval.high - mean, mean - interval.low):
        assert end * n**0.5 / deviation == pytest.approx(printed, abs=6e-4)


def test_a_wilson_interval_equals_a_worked_example():
    # 8 of 10 with z = 1.959964: centre (0.8 + 0.19207) / 1.38415, half width 0.31344 / 1.38415
    assert tuple(wilson_interval(8, 10)) == pytest.approx((0.4901625, 0.9433178), abs=1e-6)


def test_a_wilson_interval_stays_within_0_and_1_and_is_symmetric():
    low, high = wilson_interval(0, 7)
    assert low == 0.0 and 0 < high < 1
    assert tuple(wilson_interval(7, 7)) == pytest.approx((1 - high, 1.0))


def test_a_paired_interval_covers_the_true_mean_about_95_times_in_100():
    rng = random.Random(3)
    intervals = [paired_interval([rng.gauss(0.3, 2.0) for _ in range(5)]) for _ in range(400)]
    assert 0.91 <= sum(each.low <= 0.3 <= each.high for each in intervals) / 400 <= 0.985


@pytest.mark.parametrize(
    ("call", "got"),
    [
        (lambda: wilson_interval(3, 0), "correct=3, n=0"),
        (lambda: wilson_interval(5, 4), "correct=5, n=4"),
        (lambda: paired_interval([0.1]), "got 1"),
    ],
)
def test_impossible_requests_raise(call, got):
    with pytest.raises(ValueError, match=got):
        call()
