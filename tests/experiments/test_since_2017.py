"""Swaps since 2017: equal parameters, tuned on other text with another seed, measured once, corrected."""

import pytest

from experiments.harness import best_rate
from experiments.since_2017 import MODEL, STARTS, SWAPS, VARIANTS, recipe_of, since_2017, table
from tinytx.config import TransformerConfig
from tinytx.counting import parameter_table


def test_all_variants_have_equally_many_parameters_up_to_half_a_unit_of_the_feed_forward_network():
    due = parameter_table(TransformerConfig(vocab_size=600, **MODEL)).total
    for changes in VARIANTS.values():
        model, training = recipe_of(changes, vocab_size=600)
        config = TransformerConfig(vocab_size=600, **model)
        wider = parameter_table(config.replace(d_ff=config.d_ff + 1)).total
        total = parameter_table(config).total
        assert 2 * abs(total - due) <= wider - total < 0.005 * due
        settings = {**model, **training}
        assert all(settings[name] == value for name, value in changes.items())
    together = {name: value for swap in SWAPS.values() for name, value in swap.items()}
    assert VARIANTS["all together"] == together and len(together) == len(SWAPS)


@pytest.mark.parametrize(
    ("best", "n_tried"), [(2.0, 3), (0.5, 5), (8.0, 5), (0.01, 5), (100.0, 5), (1.0, 4), (4.0, 4)]
)
def test_rates_beyond_an_end_of_the_grid_are_tried_until_the_best_is_inside_or_two_were(best, n_tried):
    tried = []

    def tune(lr):
        tried.append(lr)
        return abs(lr / best - best / lr)

    found = best_rate(tune, (1.0, 2.0, 4.0), n_beyond=2)
    assert len(tried) == len(set(tried)) == n_tried
    assert found == min(tried, key=lambda lr: abs(lr / best - best / lr))


def test_every_cell_is_measured_once_at_the_rate_that_was_best_on_other_text(once, corpus, monkeypatch):
    few = {name: VARIANTS[name] for name in ("2017", "tied embeddings", "all together")}
    monkeypatch.setattr("experiments.since_2017.VARIANTS", few)
    start, changes = list(STARTS.items())[-1]
    monkeypatch.setattr("experiments.since_2017.STARTS", {start: changes})
    sizes = {"N_STEPS": 2, "LEARNING_RATES": (1e-3, 1e-2), "N_BEYOND": 0}
    for name, value in {**sizes, "load_corpus": lambda name: corpus}.items():
        monkeypatch.setattr(f"experiments.since_2017.{name}", value)
    found, records = once(since_2017, changes={"n_seeds": 2})
    assert len(records) == 4 * (2 + 2)
    for name in (*few, start):
        tried = {lr: records[f"{name}/tuning/lr {lr:g}"]["above"] for lr in (1e-3, 1e-2)}
        for seed in (1, 2):
            assert records[f"{name}/result/seed {seed}"]["lr"] == min(tried, key=tried.get)
    assert found["variant"].tolist() == [*few, start] and (found["mean"] > 0).all()
    means = found.set_index("variant")["mean"]
    assert abs(means[start] - means["tied embeddings"]) > 1e-3  # it did start elsewhere
    counts = found["n_params"]
    assert counts.max() / counts.min() < 1.005


def test_intervals_that_hold_together_are_wider_and_differences_are_paired_by_seed():
    above = {"2017": (0.30, 0.50, 0.40), "rotary": (0.20, 0.41, 0.33)}
    records = {
        f"{name}/{seed}": {"measure": "test", "variant": name, "seed": seed, "above": value}
        | {"lr": 0.01, "d_ff": 7, "n_params": 11}
        for name, values in above.items()
        for seed, value in enumerate(values)
    }
    records["rotary/tuning"] = {**records["rotary/0"], "measure": "valid", "above": 9.0}
    row = table(records).set_index("variant").loc["rotary"]
    assert row["minus 2017"] == pytest.approx((-0.10 - 0.09 - 0.07) / 3)
    assert row["widest low"] < row["minus 2017 low"] < row["minus 2017"]
    assert row["minus 2017"] < row["minus 2017 high"] < row["widest high"]
    assert row["lr"] == 0.01 and row["d_ff"] == 7 and row["n_params"] == 11
