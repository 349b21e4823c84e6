"""The scaling law: each run is measured once, its rate chosen on other text; sizes are those of models."""

import numpy as np
import pytest

from experiments.scaling import laws, scaling, table
from tinytx.config import TransformerConfig
from tinytx.counting import count_parameters
from tinytx.transformer import LanguageModel
from tinytx_course.labs.scaling_law import ScalingLaw


def test_every_run_is_measured_once_at_the_rate_that_was_best_on_other_text(once, corpus):
    sizes = {"widths": (8, 16), "steps": (3, 5), "learning_rates": (1e-3, 1e-2), "tuning_steps": 2}
    found, records = once(scaling, corpus, **sizes)
    assert len(records) == 2 * 2 + 2 * 2
    for row in found.itertuples():
        tried = {lr: records[f"{row.width}/tuning/lr {lr:g}"]["loss"] for lr in (1e-3, 1e-2)}
        assert row.lr == min(tried, key=tried.get) and row.above == row.loss - row.bound > 0
        config = records[f"{row.width}/{row.n_steps} steps/seed 1"]["origin"]["recipe"]["config"]
        model = LanguageModel(TransformerConfig.from_dict(config))
        outside = (model.body.token_embed, model.head)
        assert row.n_params == count_parameters(model)
        assert row.n_non_embedding == row.n_params - sum(map(count_parameters, outside))
    assert found["n_tokens"].nunique() == 2 and found["bound"].nunique() == 1


def test_the_constant_of_the_law_is_compared_with_the_bound():
    law = ScalingLaw(E=1.3, A=40.0, a=0.5, B=3e3, b=0.7)
    records = {}
    for n in np.geomspace(3e3, 3e5, 4):
        for d in np.geomspace(3e5, 9e6, 5):
            run = {"measure": "test", "width": 8, "n_steps": 3, "seed": 1, "lr": 0.1, "n_tokens": d}
            run |= {"n_params": n, "n_non_embedding": n / 2, "loss": float(law(n, d)), "bound": 1.2}
            records[f"{n}/{d}"] = run
    records["tuning"] = {"measure": "valid"}
    assert len(table(records)) == 20
    found = laws(records).set_index("N")
    assert found["miss"].tolist() == pytest.approx([0.1, 0.1], abs=0.01)
    assert found.loc["n_params", "A"] == pytest.approx(40, rel=0.1)
    for ends in ("bootstrap", "leave-one-out"):
        assert (found[f"{ends} low"] <= found["E"] + 1e-6).all() and (found[f"{ends} high"] > 1.25).all()
