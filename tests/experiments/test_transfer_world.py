"""Pretrained against scratch: cell by cell, interrupted and resumed, accuracies of the whole split."""

import pytest

from experiments.transfer_world import transfer


def run(settings, corpus, **changes):
    return transfer(
        settings("transfer", n_seeds=changes.pop("n_seeds", 2)), corpus, **{"label_counts": (4, 9)} | changes
    )


def test_an_interrupted_run_resumes_and_its_records_are_those_of_a_whole_run(settings, reviews, stop_after):
    stop_after(5)
    with pytest.raises(ConnectionAbortedError):
        run(settings, reviews, n_scored=3)
    assert len(settings("transfer").store.data) == 5
    left = stop_after(7)
    found = run(settings, reviews, n_scored=3)
    assert left == [0]  # the five that were there were not measured again
    records = settings("transfer").store.data
    assert len(found) == 6 and set(found["n"]) == {2}
    for record in records.values():
        assert record["split"] == "test" and record["n"] == 11
        assert all((accuracy * 3) % 1 == 0 for accuracy in record["accuracy_by_epoch"])
    for row in found.itertuples():
        same = [r for r in records.values() if (r["n_labels"], r["start"]) == (row.n_labels, row.start)]
        assert row.mean == pytest.approx(sum(one["correct"] for one in same) / 22)


@pytest.mark.parametrize("changes", [{"label_counts": (4, 121)}, {"label_counts": ()}])
def test_impossible_requests_are_refused_before_anything_is_trained(settings, reviews, tmp_path, changes):
    with pytest.raises(ValueError, match="from 1 to 120"):
        run(settings, reviews, **changes)
    assert not list(tmp_path.iterdir())
