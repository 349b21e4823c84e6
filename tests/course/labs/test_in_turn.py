"""Contestants in turn: order, ratios round by round, and their intervals."""

import time

import pytest

from tinytx.training.timing import Times
from tinytx_course.labs.timing import Turns, ratio_of, take_turns


def test_tasks_take_turns_and_the_warm_up_is_not_kept():
    order = []
    tasks = {"a": lambda: order.append("a"), "b": lambda: order.append("b")}
    turns = take_turns(tasks, n_rounds=3, n_warmup=1, n_calls=2)
    assert "".join(order) == "ab" + 3 * "aabb"
    assert len(turns.wall["a"].seconds) == len(turns.processor["b"].seconds) == 3


def test_ratios_are_taken_within_each_round():
    wall = {"ours": Times((1.0, 10.0, 2.0)), "theirs": Times((3.0, 30.0, 6.0))}  # a slow moment in round 2
    ratio = Turns(wall, wall).ratio("theirs", "ours")
    assert (ratio.median, ratio.low, ratio.high) == (3.0, 3.0, 3.0)


def test_the_interval_holds_the_median_and_lies_among_the_ratios():
    ratio = ratio_of([1.0, 1.5, 2.0, 2.5, 3.0])
    assert ratio.median == 2.0
    assert 1.0 <= ratio.low < 2.0 < ratio.high <= 3.0


def test_waiting_costs_time_on_the_wall_and_none_of_the_processor():
    turns = take_turns({"wait": lambda: time.sleep(0.03)}, n_rounds=2, n_warmup=0)
    assert turns.wall["wait"].median >= 0.03
    assert turns.processor["wait"].median < 0.02


def test_the_fastest_has_the_smallest_median():
    turns = Turns({"a": Times((1.0, 9.0, 1.0)), "b": Times((2.0, 2.0, 2.0))}, {})
    assert turns.fastest(["a", "b"]) == "a"


def test_what_cannot_be_measured_is_refused():
    with pytest.raises(ValueError, match="at least one task, one round and one call are needed, got 0 tasks"):
        take_turns({}, n_rounds=1)
    with pytest.raises(ValueError, match="n_rounds=0"):
        take_turns({"a": int}, n_rounds=0)
    with pytest.raises(ValueError, match="at least one ratio, got none"):
        ratio_of([])
