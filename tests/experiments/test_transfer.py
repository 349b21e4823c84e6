"""Pretrained against scratch: cell by cell, interrupted and resumed, accuracies of the whole split."""

import pytest

from experiments.transfer import transfer


def test_accuracies_are_those_of_the_whole_split_and_means_those_of_the_seeds(once, reviews):
    found, records = once(transfer, reviews, changes={"n_seeds": 2}, label_counts=(4, 9))
    assert len(found) == 6 and set(found["n"]) == {2}
    for record in records.values():
        assert record["split"] == "test" and record["n"] == 11
        assert record["accuracy"] == record["correct"] / 11
    for row in found.itertuples():
        same = [r for r in records.values() if (r["n_labels"], r["start"]) == (row.n_labels, row.start)]
        assert row.mean == pytest.approx(sum(one["correct"] for one in same) / 22)


@pytest.mark.parametrize("label_counts", [(4, 121), ()])
def test_impossible_requests_are_refused_before_anything_is_trained(
    settings, reviews, tmp_path, label_counts
):
    with pytest.raises(ValueError, match="from 1 to 120"):
        transfer(settings(), reviews, label_counts=label_counts)
    assert not list(tmp_path.iterdir())
