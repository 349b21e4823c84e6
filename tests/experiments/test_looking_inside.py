"""The experiment of lesson 17 as a whole, on the smallest budget."""

import numpy as np
import pytest

from experiments.looking_inside import N_MOMENTS, looking_inside


@pytest.mark.slow
def test_the_smallest_budget_is_measured_once_with_all_controls(once, corpus, monkeypatch):
    monkeypatch.setattr("experiments.looking_inside.load_corpus", lambda name: corpus)
    found, records = once(looking_inside)
    names = set(found["name"][found["measure"] == "probe of genre"])
    assert names == {"prior", "trained", "shuffled", "random"}
    world = records["smoke/seed 0/world"]
    assert len(world["moments"]["step"]) == N_MOMENTS
    for name, scores in world["probes"].items():
        assert world["moments"][name][-1] == pytest.approx(scores["trained"][-1], rel=1e-3)  # the same model
    for kind in world["pairs"].values():
        patch = {role: np.array(levels) for role, levels in kind["patch"].items()}
        assert patch["last word"][-1] == pytest.approx(patch["changed word"][0], abs=1e-4)  # the whole effect
    copies = records["smoke/seed 0/repeats"]
    assert copies["nats"].keys() == {"nothing", "the best head", "induction heads", "control", "one layer"}
