"""What a minute in the page reaches: measured once, judged at its moments, above the bound of the world."""

import sys
from functools import partial

import pytest

from experiments import playground
from tinytx_course.engine.node import node_program


@pytest.mark.skipif(node_program() is None, reason="needs node: the JavaScript cannot be run without it")
def test_runs_are_measured_once_and_judged_against_the_bound(once, monkeypatch):
    narrow = {"config": {"d_model": 16, "d_ff": 32, "n_layers": 1}}
    monkeypatch.setattr(playground, "CHANGES", narrow)
    for name, value in {"MOMENTS": (0.5, 1.5, 99), "LONG": 2, "PAGE": (1,)}.items():
        monkeypatch.setattr(playground, name, value)
    widget = sys.modules["tinytx_course.widgets.playground"]
    monkeypatch.setattr(widget, "playground", partial(_narrow, widget.playground))
    everything, records = once(playground.playground)
    found = everything[everything["variant"] == "recipe"]
    assert found["seconds"].tolist() == [1, 2] and found["n"].tolist() == [1, 1]
    page = records.pop(f"1 s/seed 0/{playground.VARIANT}", None)
    assert (page is not None) == playground.can_measure()
    if page:
        first, last = page["curve"][0], page["curve"][-1]
        assert last["bound"] < last["loss"]
        if first is not last:  # in its one second a busy machine may see the end only
            assert first["step"] == 5 and last["loss"] < first["loss"]
        assert page["first_sample"] > 0 and all(
            0 <= one["allowed"] <= 1 for one in page["curve"] if one["allowed"] is not None
        )
        assert everything["longest block"].iloc[-1] == max([0, *page["long_tasks"]])
        assert everything["longest task"].iloc[-1] == max(page["longest_task"].values()) > 0
    for one in records.values():
        seconds = [point["seconds"] for point in one["curve"]]
        assert seconds == sorted(seconds)
        assert one["curve"][-1]["step"] == one["settings"]["n_steps"] and one["config"]["d_model"] == 16
        assert one["curve"][-1]["bound"] < one["curve"][-1]["loss"] < one["curve"][0]["loss"]
    assert [len(one["curve"]) for one in records.values()] == [2, 3]
    assert found["possible"].between(0, 100).all() and (found["first sample"] > 0).all()


def _narrow(make, **given):
    """An explorer of a model that a busy machine trains for some steps in a second."""
    explorer = make(**given)
    explorer.d_model = 8
    return explorer
