"""A minute of training on the world: measured once, on the smallest budget."""

import pytest

from experiments.world_minute import world_minute


@pytest.mark.slow
def test_the_smallest_budget_is_measured_once(once, corpus, monkeypatch):
    monkeypatch.setattr("experiments.world_minute.load_corpus", lambda name: corpus)
    monkeypatch.setattr("experiments.world_minute.PACE_STEPS", 3)
    found, _ = once(world_minute, changes={"n_seeds": 2})
    assert found["variant"].tolist() == ["recipe"] and found["n"].tolist() == [2]
    assert found["seconds"].item() > 0 and found["mean"].item() > 10
