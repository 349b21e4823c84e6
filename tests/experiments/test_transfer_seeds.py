"""The transfer experiment: cell by cell, interrupted and gone on with, statistics of pairs."""

import pytest

from experiments.transfer_world import transfer
from tests.training.interrupted import StopsAfter
from tinytx.training.intervals import paired_interval
from tinytx_course.results import Results


def run(corpus, tmp_path, store=None, **settings):
    store = store or Results("transfer", tmp_path / "results")
    settings = {"n_seeds": 2, "label_counts": (4, 9)} | settings
    return transfer(
        corpus, store=store, budget="smoke", work_dir=tmp_path / "build", device="cpu", **settings
    )


def test_rows_hold_paired_differences_of_the_kept_records(corpus, tmp_path):
    rows = run(corpus, tmp_path)
    records = Results("transfer", tmp_path / "results").data
    assert len(records) == 12 and [row.n_labels for row in rows] == [4, 9]
    for row in rows:
        by_start = {
            start: [
                record["accuracy"]
                for record in records.values()
                if (record["n_labels"], record["start"]) == (row.n_labels, start)
            ]
            for start in ("pretrained", "scratch", "frozen")
        }
        assert list(row.pretrained) == by_start["pretrained"] and list(row.scratch) == by_start["scratch"]
        assert list(row.frozen) == by_start["frozen"]
        pairs = zip(row.pretrained, row.scratch, strict=True)
        assert row.gain == paired_interval([a - b for a, b in pairs])
    for record in records.values():
        assert record["split"] == "test" and record["accuracy"] == record["accuracy_by_epoch"][-1]


def test_an_interrupted_run_goes_on_where_it_stopped(corpus, tmp_path):
    whole = run(corpus, tmp_path / "whole")
    store = Results("transfer", tmp_path / "results")
    with pytest.raises(ConnectionAbortedError):
        run(corpus, tmp_path, StopsAfter(store, 5))
    assert len(Results("transfer", tmp_path / "results").data) == 5
    counting = StopsAfter(Results("transfer", tmp_path / "results"), 7)
    assert run(corpus, tmp_path, counting) == whole
    assert counting.left == 0  # the five that were there were not measured again


def test_cells_of_another_checkpoint_are_measured_anew(corpus, tmp_path):
    run(corpus, tmp_path, n_seeds=1, label_counts=(4,))
    from tinytx.training.fit import fit

    fit(corpus, budget="smoke", seed=9, out=tmp_path / "other", device="cpu")
    counting = StopsAfter(Results("transfer", tmp_path / "results"), 3)
    run(corpus, tmp_path, counting, n_seeds=1, label_counts=(4,), checkpoint=tmp_path / "other")
    assert counting.left == 0


def test_a_curve_may_look_at_fewer_texts_than_the_reported_accuracy(corpus, tmp_path):
    (few,) = run(corpus, tmp_path / "few", n_seeds=1, label_counts=(4,), n_scored=3)
    (all_,) = run(corpus, tmp_path / "all", n_seeds=1, label_counts=(4,))
    assert few == all_
    for record in Results("transfer", tmp_path / "few" / "results").data.values():
        assert record["n"] == 20 and all(accuracy * 3 % 1 == 0 for accuracy in record["accuracy_by_epoch"])


def test_a_single_seed_has_no_interval(corpus, tmp_path):
    (row,) = run(corpus, tmp_path, n_seeds=1, label_counts=(4,))
    assert row.gain is None and row.to_dict()["gain"] is None


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_seeds": 0}, "n_seeds must be at least 1, got 0"),
        ({"label_counts": (4, 121)}, r"from 1 to 120, got \[4, 121\]"),
        ({"label_counts": ()}, "from 1 to 120"),
    ],
)
def test_impossible_requests_are_refused_before_anything_is_trained(corpus, tmp_path, settings, words):
    with pytest.raises(ValueError, match=words):
        run(corpus, tmp_path, **settings)
    assert not (tmp_path / "build").exists() and not (tmp_path / "results").exists()
