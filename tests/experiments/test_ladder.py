"""The ladder: rows are measured once, at equal parameters or equal time, tuned on other text."""

import pytest

from experiments.ladder import ladder, table
from tinytx_course.labs.ladder import MIXERS


def test_every_row_is_measured_once_tuned_on_other_text_and_given_equal_time(once, corpus, monkeypatch):
    sizes = {"LEARNING_RATES": (1e-3, 1e-2), "N_BEYOND": 1, "ORDERS": (1, 2), "N_ROUNDS": 2}
    for name, value in {**sizes, "load_corpus": lambda name: corpus}.items():
        monkeypatch.setattr(f"experiments.ladder.{name}", value)
    found, records = once(ladder, changes={"n_seeds": 2})
    (n_steps,) = {
        one["n_steps"] for one in records.values() if one["measure"] in ("tuning", "equal parameters")
    }
    assert 1 < n_steps < 9, "one pass over 150 reviews"
    n = len(MIXERS)
    assert len(records) == 2 + n + 3 * n + 2 * n + 2 * (n - 1)
    assert found.groupby("equal")["model"].count().tolist() == [n + 1, n + 1]
    costs = {name: records[f"{name}/cost"] for name in MIXERS}
    n_params = [cost["n_params"] for cost in costs.values()]
    assert max(n_params) / min(n_params) < 1.01
    for kind in MIXERS:
        tuning = [one for key, one in records.items() if key.startswith(f"{kind}/tuning/")]
        tried = {one["lr"]: one["valid"] for one in tuning}  # two, and one beyond the better end
        for seed in (1, 2):
            equal = records[f"{kind}/equal parameters/seed {seed}"]
            assert equal["lr"] == min(tried, key=tried.get) and equal["n_steps"] == n_steps
            if kind != "transformer":
                steps = records[f"{kind}/equal time/seed {seed}"]["n_steps"]
                ratio = costs["transformer"]["milliseconds"] / costs[kind]["milliseconds"]
                assert steps == round(n_steps * ratio)
    assert (found["above"] > 0).all()
    for equal in ("parameters", "time"):
        rows = found[found["equal"] == equal].set_index("model")
        assert rows.loc["transformer", "n"] == 2 and rows.loc["2-gram", "n"] == 1


def test_the_order_of_the_n_gram_model_is_chosen_on_the_valid_split():
    def counts(order, valid, test):
        losses = {"valid": valid, "test": test, "bound": 1.0, "n_params": 5}
        return {"measure": "counts", "model": f"{order}-gram", **losses}

    found = table({"1-gram/counts": counts(1, 2.0, 1.5), "2-gram/counts": counts(2, 1.8, 1.7)})
    assert set(found["model"]) == {"2-gram"} and found["above"].tolist() == pytest.approx([0.7, 0.7])
