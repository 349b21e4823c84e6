"""Confidence intervals against a printed table and closed forms."""

import pytest

from tinytx_run.intervals import paired_interval, wilson_interval


@pytest.mark.parametrize(("n", "printed"), [(2, 12.706), (5, 2.776), (8, 2.365), (30, 2.045)])
def test_a_paired_interval_has_the_half_width_of_the_printed_t_table(n, printed):
    values = [(-1) ** i + 0.1 * i for i in range(n)]
    mean = sum(values) / n
    deviation = (sum((value - mean) ** 2 for value in values) / (n - 1)) ** 0.5
    interval = paired_interval(values)
    assert interval.n == n and interval.mean == pytest.approx(mean)
    for end in (interval.high - mean, mean - interval.low):
        assert end * n**0.5 / deviation == pytest.approx(printed, abs=6e-4)
    assert paired_interval(values, n_comparisons=1) == interval


def test_a_wilson_interval_has_its_closed_form_and_stays_within_0_and_1():
    squared = 1.959964**2
    assert tuple(wilson_interval(0, 7)) == pytest.approx((0, squared / (7 + squared)), abs=1e-6)
    for correct, n in ((0, 7), (3, 7), (7, 7), (812, 1000)):
        low, high = wilson_interval(correct, n)
        assert (1 - high, 1 - low) == pytest.approx(tuple(wilson_interval(n - correct, n)))
        assert 0 <= low < high <= 1


def test_overlapping_training_sets_widen_an_interval_as_counted_by_hand():
    # Deviation sqrt(10/4), t of 4 degrees of freedom 2.7764; sqrt(1/5 + 1/4) in place of sqrt(1/5).
    interval = paired_interval([1, 2, 3, 4, 5], test_share=1 / 4)
    assert (interval.high - 3, 3 - interval.low) == pytest.approx((2.9449, 2.9449), abs=1e-4)
    assert (interval.high - 3) / (paired_interval([1, 2, 3, 4, 5]).high - 3) == pytest.approx(1.5)
    with pytest.raises(ValueError, match="test_share.*-1"):
        paired_interval([1, 2], test_share=-1)


def test_impossible_requests_raise():
    for correct, n in ((3, 0), (5, 4)):
        with pytest.raises(ValueError, match=f"correct={correct}, n={n}"):
            wilson_interval(correct, n)
    with pytest.raises(ValueError, match="got 1"):
        paired_interval([0.1])
    with pytest.raises(ValueError, match="got 0"):
        paired_interval([0.1, 0.2], n_comparisons=0)
    with pytest.raises(ValueError, match="finite numbers, got .*nan"):
        paired_interval([0.1, float("nan")])
