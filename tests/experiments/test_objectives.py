"""Objectives compared: every contestant at its own rates, measures checked against the exact language."""

from collections import Counter

import numpy as np
import pytest
import torch

from experiments.harness import best_label_accuracy
from experiments.objectives import (
    CONTESTANTS,
    FINETUNING_RATES,
    RATES,
    FewPositions,
    fill_measures,
    objectives,
    table,
)
from tinytx.masking import Masking
from tinytx_run.finetune import finetune
from tinytx_run.pretrain import causal_objective, train_tokenizer
from tinyworld.world import World


@pytest.fixture(scope="module")
def tokenizer(corpus):
    return train_tokenizer(corpus.train.texts, 400, exact=False, kind="world")


@pytest.mark.proof
def test_every_contestant_is_measured_once_with_equal_tokens_and_its_own_rates(once, corpus, monkeypatch):
    reads_one_way = []

    def watched(start, *args, **how):
        reads_one_way.append((start.model.body.config.causal, how["body"]))
        return finetune(start, *args, **how)

    monkeypatch.setattr("experiments.objectives.finetune", watched)
    sizes = {"N_BLANKS": 3, "N_LABELS": 8, "N_BEYOND": 0}
    for name, value in {**sizes, "load_corpus": lambda name: corpus}.items():
        monkeypatch.setattr(f"experiments.objectives.{name}", value)
    _, records = once(objectives)
    tuning = {key: one for key, one in records.items() if one["measure"] == "tuning"}
    measures = Counter(one["contestant"] for one in records.values() if one["measure"] != "tuning")
    fresh = {"from scratch, one way": 1, "from scratch, both ways": 1, "bag of words": 1}
    own = {"causal": 3, "hybrid": 3, "masked": 2, "causal, few positions": 1}
    assert measures == {**own, **fresh} and set(measures) == set(CONTESTANTS)
    assert len(tuning) == 4 * len(RATES) + 5 * len(FINETUNING_RATES)
    # A hybrid classifier reads both ways, too.
    assert Counter(reads_one_way) == Counter({
        (False, "pretrained"): 8, (True, "pretrained"): 4, (True, "fresh"): 4, (False, "fresh"): 4
    })  # fmt: skip
    recipes = {one["contestant"]: one["origin"]["recipe"] for key, one in records.items() if "/fill" in key}
    assert len({recipe["settings"]["n_steps"] for recipe in recipes.values()}) == 1
    assert len({str(recipe["config"] | {"causal": None}) for recipe in recipes.values()}) == 1
    for name in ("causal", "masked", "hybrid"):
        tried = {one["excess"]: one["origin"]["recipe"]["settings"]["lr"]
                 for one in tuning.values() if one["contestant"] == name and "excess" in one}  # fmt: skip
        assert set(tried.values()) == set(RATES)
        assert recipes[name]["settings"]["lr"] == tried[min(tried)]
    for one in records.values():
        if one["measure"] == "finetune 8" and "lr" in one:
            name = one["contestant"]
            tried = {t["lr"]: t["accuracy"] for t in tuning.values() if t["contestant"] == name and "lr" in t}
            assert set(tried) == set(FINETUNING_RATES) and tried[one["lr"]] == max(tried.values())

    best = best_label_accuracy(corpus.test.texts, corpus.test.labels)
    assert records["smoke/seed 0/masked/finetune 8"]["exact"]["accuracy"] == best >= 0.8
    fill = records["smoke/seed 0/masked/fill"]
    assert fill["exact"]["nats"] < fill["nats"] and records["smoke/seed 0/causal/fill"]["excess"] > 0
    assert "smoke/seed 0/masked/fill, left side" not in records


def test_few_positions_count_and_the_others_do_not(corpus, tokenizer):
    asked = []

    class Model:
        def loss(self, inputs, targets, ignore_id):
            asked.append((inputs, targets, ignore_id))
            return targets.sum()

    whole = causal_objective(tokenizer, corpus.train.texts, 64)
    rows = list(range(50))
    FewPositions(whole, tokenizer.pad_id).loss(Model(), rows)
    ((inputs, targets, ignored),), (own_inputs, own_targets) = asked, whole.batch(rows)
    counted = targets != ignored
    assert torch.equal(inputs, own_inputs) and torch.equal(targets[counted], own_targets[counted])
    assert 0.7 < counted.sum() / (own_targets != ignored).sum() / Masking().p < 1.3


def test_the_table_has_differences_from_the_causal_model_and_no_rates_that_were_tried():
    def cell(name, measure, seed, **fields):
        return {"contestant": name, "measure": measure, "seed": seed, **fields}

    cells = [cell("causal", "finetune 8", s, accuracy=0.5) for s in (0, 1)]
    cells += [cell("masked", "finetune 8", s, accuracy=0.6 + s / 10) for s in (0, 1)]
    cells += [
        cell("causal", "fill", 0, nats=3.0, excess=0.25, accuracy=0.5),
        cell("causal", "tuning", 0, excess=1),
    ]
    rows = table({f"smoke/{i}": one for i, one in enumerate(cells)}).set_index(["row", "variant"])
    assert rows.loc[("finetune 8: accuracy", "masked"), "minus causal"] == pytest.approx(0.15)
    assert rows.loc[("fill: excess", "causal"), "mean"] == 0.25 and len(rows) == 5


@pytest.mark.parametrize("sides", ["both", "left"])
def test_the_exact_distribution_given_a_side_has_no_excess(tokenizer, corpus, monkeypatch, sides):
    through = World().through(tokenizer)

    def exact_probs(model, tokenizer, ids, position, sides, hybrid):
        if sides == "both":
            return through.fill_token(ids, position)
        probs = through.next_token(ids[:position])
        words = np.arange(len(probs)) != tokenizer.eos_id
        return np.where(words, probs, 0) / probs[words].sum()

    monkeypatch.setattr("experiments.objectives.fill_probs", exact_probs)
    found = fill_measures(None, tokenizer, corpus.test.texts, 5, sides)
    assert found["exact_given"] == sides
    assert found["excess"] == pytest.approx(0, abs=1e-9)
    assert found["nats"] == pytest.approx(found["exact"]["nats"])
    assert found["accuracy"] == found["exact"]["accuracy"]
