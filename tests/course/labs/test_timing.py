"""Timing in turn: order, ratios within rounds, bootstrap intervals, and fits whose answer is known."""

import pytest

from tinytx_course.labs.timing import Spent, Times, Turns, ratio_of, take_turns


def test_tasks_take_turns_after_a_warm_up():
    order = []
    tasks = {"a": lambda: order.append("a"), "b": lambda: order.append("b")}
    turns = take_turns(tasks, n_rounds=3, n_warmup=1)
    assert "".join(order) == 4 * "ab"
    assert len(turns.wall["a"].seconds) == len(turns.processor["b"].seconds) == 3


def test_a_quick_task_is_called_until_the_clock_can_see_it():
    calls = []
    turns = take_turns({"quick": lambda: calls.append(1)}, n_rounds=2, min_seconds=0.005)
    assert len(calls) > 100 and turns.wall["quick"].median < 0.005


def test_a_task_may_supply_its_own_times():
    turns = take_turns({"other": lambda: Spent(3.0, 2.0)}, n_rounds=2)
    assert turns.wall["other"] == Times((3.0, 3.0)) and turns.processor["other"] == Times((2.0, 2.0))
    assert turns.per({"other": 4}).wall["other"].median == 0.75
    assert turns.times_of("other")["processor_seconds"] == 2.0


def test_ratios_are_taken_within_each_round():
    wall = {"ours": Times((1.0, 10.0, 2.0)), "theirs": Times((3.0, 30.0, 6.0))}  # a slow moment in round 2
    ratio = Turns(wall, wall).ratio("theirs", "ours")
    assert (ratio.median, ratio.low, ratio.high) == (3.0, 3.0, 3.0)
    assert Turns(wall, {}).fastest(["theirs", "ours"]) == "ours"


def test_the_interval_contains_the_median_and_is_among_the_ratios():
    ratio = ratio_of([1.0, 1.5, 2.0, 2.5, 3.0])
    assert ratio.median == 2.0 and 1.0 <= ratio.low < 2.0 < ratio.high <= 3.0


def test_quartiles_by_hand():
    times = Times((5.0, 1.0, 4.0, 2.0, 3.0))
    assert (times.low, times.median, times.high) == (2.0, 3.0, 4.0)
    assert Times((1.0, 1.1, 50.0)).median == 1.1


@pytest.mark.parametrize(
    ("call", "got"),
    [
        (lambda: take_turns({}, n_rounds=1), "got 0 tasks"),
        (lambda: take_turns({"a": int}, n_rounds=0), "n_rounds=0"),
        (lambda: ratio_of([]), "got none"),
    ],
)
def test_impossible_requests_raise(call, got):
    with pytest.raises(ValueError, match=got):
        call()
