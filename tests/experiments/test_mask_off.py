"""A copy of the model goes on without the mask: from the same loss, on its own way."""

import pytest

from experiments.mask_off import SMOKE, mask_off
from tinytx_course.engine.node import node_program


@pytest.mark.skipif(node_program() is None, reason="needs node: the JavaScript cannot be run without it")
def test_the_copy_begins_where_the_first_model_was_and_is_measured_once(once):
    found, records = once(mask_off)
    (record,) = records.values()
    masked, unmasked = dict(record["masked"]), dict(record["unmasked"])
    branch = SMOKE["branch"]
    assert [min(unmasked), max(unmasked), max(masked)] == [branch, SMOKE["end"], SMOKE["n_steps"]]
    assert unmasked[branch] == masked[branch] and unmasked[SMOKE["end"]] != masked[SMOKE["end"]]
    assert record["bound"] < masked[30] < masked[branch] < masked[0]
    moments = [(text["curve"], text["step"]) for text in record["texts"]]
    assert moments == [*(("masked", step) for step in SMOKE["moments"]), ("unmasked", SMOKE["end"])]
    assert all(len(text["words"]) == len(text["allowed"]) for text in record["texts"])
    assert found["model"].tolist() == ["masked", "unmasked"] and found["allowed"].between(0, 100).all()
