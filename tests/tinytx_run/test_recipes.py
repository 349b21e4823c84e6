"""Budgets: names, seconds, and recipes that every model can be built from."""

import json

import pytest
import torch

from tinytx.counting import count_parameters
from tinytx.transformer import LanguageModel
from tinytx_run.recipes import (
    BUDGETS,
    KINDS,
    OBJECTIVES,
    PAIR_KINDS,
    Recipe,
    corpus_kind,
    default_budget,
    named_budget,
    parse_budget,
    plan,
    plan_finetuning,
)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("budget", BUDGETS)
def test_every_recipe_can_be_built_and_survives_json(objective, budget):
    for kind in PAIR_KINDS if objective == "translation" else KINDS:
        recipe = plan(kind, objective, budget, seed=7)
        assert recipe.settings.seed == 7 and recipe.budget == budget
        assert recipe.settings.tokens_per_batch >= recipe.config.max_len
        assert Recipe.from_dict(json.loads(json.dumps(recipe.to_dict()))) == recipe
    if budget == "smoke":
        assert count_parameters(LanguageModel(recipe.config)) < 100_000


@pytest.mark.parametrize("objective", [one for one in OBJECTIVES if one not in ("causal", "translation")])
def test_a_model_of_the_world_that_reads_both_ways_can_tell_left_from_right(objective):
    torch.manual_seed(0)
    body = LanguageModel(plan("world", objective, "smoke").config.replace(causal=False)).eval().body
    with torch.no_grad():
        read = [body(torch.tensor([ids]))[0, 2] for ids in ([7, 8, 9, 10, 11], [11, 10, 9, 8, 7])]
    assert not torch.allclose(*read, atol=1e-3)


@pytest.mark.parametrize("objective", [one for one in OBJECTIVES if one != "causal"])
def test_all_but_causal_models_are_tied_and_learn_by_muon(objective):
    for kind in PAIR_KINDS if objective == "translation" else KINDS:
        recipe = plan(kind, objective, "laptop")
        assert recipe.config.tie_embeddings and recipe.settings.optimizer == "muon"


def test_the_environment_sets_the_default_and_seconds_choose_the_model_of_a_named_budget(monkeypatch):
    monkeypatch.setenv("TINYTX_BUDGET", "study")
    assert default_budget() == "study" and plan("world").budget == "study"
    monkeypatch.delenv("TINYTX_BUDGET")
    assert default_budget() == "laptop" and parse_budget(None) == "laptop"
    monkeypatch.setenv("TINYTX_BUDGET", "45")
    assert parse_budget(None) == 45.0 and named_budget(None) == "laptop"
    assert [named_budget(seconds) for seconds in (3.0, 80.0, 900.0)] == ["smoke", "laptop", "study"]


@pytest.mark.parametrize("budget", ["lunch", "-3", "nan", "inf", 0.0, True])
def test_what_is_no_budget_is_refused(budget):
    with pytest.raises(ValueError, match=f"smoke, laptop, study, gpu, .* got {budget!r}"):
        parse_budget(budget)


def test_unknown_objectives_kinds_and_missing_labels_are_refused(corpus):
    with pytest.raises(ValueError, match="objective must be one of .*, got 'mlm'"):
        plan("world", "mlm", "smoke")
    with pytest.raises(ValueError, match="kind of corpus must be one of"):
        plan("poems", "causal", "smoke")
    with pytest.raises(ValueError, match="needs a corpus with labels, got one of kind 'text'"):
        plan_finetuning("text", "smoke")
    assert corpus_kind(corpus) == "reviews"
