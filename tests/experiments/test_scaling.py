"""The scaling law: each run is measured once, its rate chosen on other text; sizes are those of models."""

from experiments.scaling import scaling
from tinytx.config import TransformerConfig
from tinytx.counting import count_parameters
from tinytx.transformer import LanguageModel


def test_every_run_is_measured_once_at_the_rate_that_was_best_on_other_text(once, corpus, monkeypatch):
    sizes = {"WIDTHS": (8, 16), "STEPS": (3, 5), "LEARNING_RATES": (1e-3, 1e-2), "TUNING_STEPS": 2}
    for name, value in {**sizes, "load_corpus": lambda name: corpus}.items():
        monkeypatch.setattr(f"experiments.scaling.{name}", value)
    found, records = once(scaling)
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
