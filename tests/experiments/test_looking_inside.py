"""The experiment of lesson 17 as a whole, on the smallest budget."""

import numpy as np
import pytest

from experiments.looking_inside import looking_inside


@pytest.mark.slow
def test_the_smallest_budget_is_measured_once_with_all_controls(once, corpus, monkeypatch):
    monkeypatch.setattr("experiments.looking_inside.load_corpus", lambda name: corpus)
    found, records = once(looking_inside)
    names = set(found["name"][found["measure"] == "probe of genre"])
    assert names == {"prior", "trained", "shuffled", "random"}
    world = records["smoke/seed 0/world"]
    for kind in world["pairs"].values():
        assert np.shape(kind["heads"]) == np.shape(kind["attention"]) == np.shape(world["ablation"]["zero"])
    copies = records["smoke/seed 0/repeats"]
    assert copies["nats"].keys() == {"nothing", "the best head", "induction heads", "control", "one layer"}
