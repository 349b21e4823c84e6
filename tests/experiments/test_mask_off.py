"""A copy of the model goes on without the mask: from the same loss, on its own way."""

import pytest

from experiments.mask_off import mask_off
from tinytx_course.engine.node import node_program

FEW = {"n_steps": 15, "branch": 5, "end": 10, "moments": [0, 5, 15]}


@pytest.mark.skipif(node_program() is None, reason="needs node: the JavaScript cannot be run without it")
def test_the_copy_begins_where_the_first_model_was_and_is_measured_once(once, monkeypatch):
    monkeypatch.setattr("experiments.mask_off.SMOKE", FEW)
    monkeypatch.setattr("experiments.mask_off.N_REVIEWS", 2)
    found, records = once(mask_off)
    (record,) = records.values()
    masked, unmasked = dict(record["masked"]), dict(record["unmasked"])
    assert list(unmasked) == [5, 10] and list(masked) == [0, 5, 10, 15]
    assert unmasked[5] == masked[5] and unmasked[10] != masked[10]
    assert record["bound"] < masked[15] < masked[5] < masked[0]
    moments = [(text["curve"], text["step"]) for text in record["texts"]]
    assert moments == [("masked", 0), ("masked", 5), ("masked", 15), ("unmasked", 10)]
    assert all(len(text["words"]) == len(text["allowed"]) for text in record["texts"])
    assert found["model"].tolist() == ["masked", "unmasked"] and found["allowed"].between(0, 100).all()
