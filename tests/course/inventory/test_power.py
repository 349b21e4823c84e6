"""The power of the paired t test: against a hand number, a simulation of the statistic, and its own logic."""

import numpy as np
import pytest
from scipy import stats

from tinytx_course.inventory.survey import BEFORE, learners_needed, power, power_table


def test_half_a_standard_deviation_needs_34_learners():
    """The numbers of Cohen's tables for an effect of 0.5, two-sided at 5 %, with 80 % and 90 % power."""
    assert [learners_needed(0.5, 1 - BEFORE, wanted) for wanted in (0.8, 0.9)] == [34, 44]


@pytest.mark.parametrize("n, gain", [(7, 0.3), (15, 0.2), (40, 0.1)])
def test_it_is_how_often_the_t_statistic_exceeds_its_edge(n, gain):
    trials = 20_000
    draws = np.random.default_rng(0).normal(gain * (1 - BEFORE), 0.2, size=(trials, n))
    t = draws.mean(axis=1) / (draws.std(axis=1, ddof=1) / np.sqrt(n))
    share = (np.abs(t) > stats.t.ppf(0.975, n - 1)).mean()
    assert power(n, gain, 0.2) == pytest.approx(share, abs=4 * np.sqrt(0.25 / trials))


def test_more_spread_more_power_and_less_gain_need_more_learners():
    head, rows = power_table()
    assert all(len(row) == len(head) and row[1:] == sorted(row[1:]) for row in rows)
    for column in [*zip(*rows, strict=True)][1:]:
        assert [*column] == sorted(column, reverse=True)


def test_a_gain_too_small_to_be_found_has_no_number():
    assert learners_needed(0.001, 0.15) is None
