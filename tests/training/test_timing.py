"""Timing: fair order, enough calls, and fits whose answer is known."""

import time

import numpy as np
import pytest

from tinytx.training.timing import Times, exponent, exponent_of_times, first_crossing, time_in_turn


def test_tasks_run_in_turn_after_a_warm_up():
    calls = []
    time_in_turn({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, n_rounds=3, min_seconds=0)
    # once to warm up and once to see how long it takes, each; then the rounds
    assert "".join(calls) == "aabb" + "ab" * 3


def test_what_is_quick_is_called_until_the_clock_can_see_it():
    n_calls = 0

    def quick():
        nonlocal n_calls
        n_calls += 1

    times = time_in_turn({"quick": quick}, n_rounds=2, min_seconds=0.005)
    assert n_calls > 100
    assert times["quick"].median < 0.005 / 10


def test_seconds_are_seconds_of_one_call():
    times = time_in_turn({"sleep": lambda: time.sleep(0.003)}, n_rounds=3, min_seconds=0.01)["sleep"]
    assert len(times.seconds) == 3
    assert min(times.seconds) >= 0.003


def test_one_slow_round_moves_the_median_little():
    assert Times((1.0, 1.1, 50.0)).median == 1.1


def test_the_clock_of_the_process_does_not_count_waiting():
    wait = {"wait": lambda: time.sleep(0.01)}
    waited = time_in_turn(wait, n_rounds=2, min_seconds=0, clock=time.process_time)["wait"]
    assert waited.median < 0.005


def test_the_middle_half_of_the_rounds_lies_between_low_and_high():
    times = Times((5.0, 1.0, 4.0, 2.0, 3.0))
    assert (times.low, times.median, times.high) == (2.0, 3.0, 4.0)
    assert Times((7.0,)).low == Times((7.0,)).high == 7.0


def test_the_exponent_of_a_power_is_found_whatever_the_factor():
    x = [3, 5, 11, 20]
    for power in (-1.0, 0.0, 0.5, 2.0):
        assert exponent(x, [0.7 * each**power for each in x]) == pytest.approx(power)


def test_the_exponent_is_that_of_the_medians_whatever_one_slow_round_does():
    x = [1, 10, 100]
    times = [Times((each**2.0, each**2.0, each**2.0, each**2.0, 70.0)) for each in x]
    assert exponent_of_times(x, times).value == pytest.approx(2.0)


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(0)
    x = np.array([1.0, 2.0, 4.0, 8.0])
    hits = 0
    for _ in range(200):
        noisy = x[:, None] ** 1.3 * rng.lognormal(sigma=0.2, size=(4, 15))
        slope = exponent_of_times(x, [Times(tuple(row)) for row in noisy], confidence=0.9, n_resamples=300)
        hits += slope.low <= 1.3 <= slope.high
    assert 0.8 <= hits / 200 <= 0.98


def test_without_noise_the_interval_has_no_width():
    slope = exponent_of_times([1, 2], [Times((1.0, 1.0)), Times((4.0, 4.0))])
    assert (slope.value, slope.low, slope.high) == pytest.approx((2, 2, 2))


def test_crossings_lie_where_two_powers_meet():
    x = [1, 2, 4, 8, 16]
    line, square = [6 * each for each in x], [each**2 for each in x]
    assert first_crossing(x, square, line) == pytest.approx(6)
    assert first_crossing(x, line, square) is None, "starts above"
    assert first_crossing(x, [1] * 5, line) is None, "stays below"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: time_in_turn({}), "tasks must hold at least one task, got none"),
        (lambda: time_in_turn({"a": list}, n_rounds=0), "n_rounds must be at least 1"),
        (lambda: exponent([1, 2], [1, 2, 3]), "as many y as x and two different x, got 2 x and 3 y"),
        (lambda: exponent([2, 2], [1, 3]), "two different x"),
        (lambda: exponent([1, 2], [0.0, 1.0]), "needs positive numbers, got 0"),
        (lambda: exponent_of_times([1, 2], [Times((1.0,))] * 2, 95), "confidence must lie between 0 and 1"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
