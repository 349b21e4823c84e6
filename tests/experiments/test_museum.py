"""The bug museum measured on the smallest budget: every patient once, and what a table says of records."""

import pytest

from experiments.museum import museum, table
from tests.course.museum.test_diagnosing import AT_ONCE
from tinytx_course.museum.examining import TESTS
from tinytx_course.museum.faults import FAULTS


def test_a_table_counts_seeds_and_leaves_out_what_does_not_apply():
    numbers = {"twice": 0.0, "singles": 0.0}
    records = {
        str(seed): {"fault": fault, "task": "classifier", "tests": {**numbers, "singles": x}}
        for seed, (fault, x) in enumerate([("padding_read", 0.7), ("padding_read", 0.0), ("healthy", 0.0)])
    }
    rows = table(records).set_index("fault")
    assert list(rows.index) == ["padding_read", "healthy classifier"]
    assert rows.loc["padding_read", ["seeds", "named", "singles", "twice"]].tolist() == [2, "singles", 1, 0]
    assert rows["leak"].isna().all() and rows.loc["healthy classifier", "named"] == ""


@pytest.mark.slow
def test_the_smallest_budget_measures_each_patient_once(once, monkeypatch):
    """The healthy ones and those in which no test finds anything without training."""
    others = {name: fault for name, fault in FAULTS.items() if name not in AT_ONCE}
    monkeypatch.setattr("experiments.museum.FAULTS", others)
    found, records = once(museum)
    assert len(found) == len(others) + 3 and set(TESTS) <= set(found)
    assert (found["seeds"] == 1).all()
    assert all("evidence" in record for record in records.values())
