"""Budgets: names, seconds, and recipes that every model can be built from."""

import time

import pytest

from tinytx.model.counting import count_parameters
from tinytx.model.transformer import LanguageModel
from tinytx.training import recipes
from tinytx.training.recipes import (
    BUDGETS,
    KINDS,
    Recipe,
    corpus_kind,
    default_budget,
    named_budget,
    parse_budget,
    plan,
    plan_finetuning,
)
from tinytx.training.tasks import causal_objective, new_language_model, steps_within


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("budget", BUDGETS)
def test_every_recipe_can_be_built_and_survives_json(kind, budget):
    recipe = plan(kind, "causal", budget, seed=7)
    assert recipe.settings.seed == 7 and recipe.budget == budget
    assert recipe.settings.tokens_per_batch >= recipe.config.max_len
    assert Recipe.from_dict(recipe.to_dict()) == recipe
    if budget == "smoke":
        assert count_parameters(LanguageModel(recipe.config)) < 100_000


def test_each_budget_spends_more_than_the_one_before():
    for kind in KINDS:
        spent = [
            recipe.settings.n_steps * recipe.settings.tokens_per_batch
            for recipe in (plan(kind, "causal", budget) for budget in BUDGETS)
        ]
        assert spent == sorted(spent) and len(set(spent)) == len(BUDGETS)


def test_the_environment_sets_the_default(monkeypatch):
    monkeypatch.setenv("TINYTX_BUDGET", "study")
    assert default_budget() == "study" and plan("world").budget == "study"
    monkeypatch.delenv("TINYTX_BUDGET")
    assert default_budget() == "laptop" and parse_budget(None) == "laptop"
    monkeypatch.setenv("TINYTX_BUDGET", "45")
    assert parse_budget(None) == 45.0


def test_seconds_choose_the_model_of_a_named_budget():
    assert [named_budget(seconds) for seconds in (3.0, 80.0, 900.0)] == ["smoke", "laptop", "study"]


@pytest.mark.parametrize("budget", ["lunch", "-3", "0", "nan", "inf", -1, 0.0])
def test_what_is_no_budget_is_refused(budget):
    with pytest.raises(
        ValueError, match="budget must be one of smoke, laptop, study, gpu, or a positive number"
    ):
        parse_budget(budget)


def test_unknown_objectives_kinds_and_missing_labels_are_refused(corpus):
    with pytest.raises(ValueError, match=r"objective must be one of causal, masked, masked\+nsp, got 'mlm'"):
        plan("world", "mlm", "smoke")
    with pytest.raises(ValueError, match="kind of corpus must be one of"):
        plan("poems", "causal", "smoke")
    with pytest.raises(ValueError, match="needs a corpus with labels, got one of kind 'text'"):
        plan_finetuning("text", "smoke")
    assert corpus_kind(corpus) == "reviews"


def test_steps_within_plans_no_more_than_fits(tokenizer, corpus, config):
    """Steps that sleep for 50 ms: no machine, however busy, can plan more than the rest of the time holds."""
    objective = causal_objective(tokenizer, corpus.train.texts, config.max_len)

    class Slow:
        epoch_batches = staticmethod(objective.epoch_batches)

        @staticmethod
        def loss(model, indices):
            time.sleep(0.05)
            return objective.loss(model, indices)

    recipe = plan("world", "causal", "smoke")
    settings, expected = steps_within(2.0, lambda: new_language_model(config, 0), Slow(), recipe.settings)
    assert 1 <= settings.n_steps <= (2.0 - 10 * 0.05) / 0.05
    assert expected / settings.n_steps >= 0.05
    assert settings.warmup_steps == int(recipes.WARMUP_SHARE * settings.n_steps)
    assert settings.lr == recipe.settings.lr
