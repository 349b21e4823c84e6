"""What the ladder kept, read again: means over seeds, between the best counting model and the floor."""

import pytest

from experiments.ladder import means

HERE = {"texts": "aa", "pieces": 700}
OTHER = {"texts": "aa", "pieces": 600}


def record(nats, origin=HERE, **more):
    return {"nats_per_token": nats, "floor": 1.0, "origin": origin | more}


RECORDS = {
    "world/laptop/transformer, seed 0": record(1.1, recipe={}),
    "world/laptop/transformer, seed 1": record(1.3, recipe={}),
    "world/smoke/transformer, seed 0": record(5.0, OTHER),
    "world/counts/3-gram": record(2.2),
    "world/counts/4-gram": record(2.0),
    "world/counts/5-gram": record(1.9),
}


def test_means_stand_between_the_best_counting_model_and_the_floor():
    by_model = {row.model: row for row in means(RECORDS)}
    assert list(by_model) == ["3-gram", "4-gram", "5-gram", "transformer, laptop"]
    assert by_model["4-gram"].share == 0
    assert by_model["3-gram"].share == pytest.approx(-0.2)
    transformer = by_model["transformer, laptop"]
    assert transformer.n_runs == 2
    assert transformer.nats_per_token == pytest.approx(1.2)
    assert transformer.spread == pytest.approx(0.02**0.5)
    assert transformer.share == pytest.approx(0.8)


def test_a_single_run_has_no_spread_and_says_so_in_its_line():
    row = means(RECORDS)[0]
    assert row.spread is None and "±" not in str(row) and "1 run " in str(row)
    assert "2 runs" in str(means(RECORDS)[-1]) and "±" in str(means(RECORDS)[-1])


def test_without_a_counting_model_there_is_nothing_to_compare_with():
    with pytest.raises(ValueError, match="counting model of order 1 to 4, got"):
        means({"world/laptop/transformer, seed 0": record(1.1)})
