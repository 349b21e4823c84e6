"""Frozen, LoRA and full: rates searched where nothing is reported, cells measured once, controls alike."""

import numpy as np
import torch

from experiments.lora import PLANS, STARTS, TUNING_SEEDS, best_rate, lora
from tinytx_course.engine.shipped import shipped_model
from tinytx_course.labs.lesson_16 import RANK, WAYS, adapted, fine_tune, random_body
from tinytx_run.corpora import load_corpus
from tinytx_run.training import weights_fingerprint


def test_every_way_has_searched_the_same_rates_where_nothing_is_reported(once):
    found, records = once(lora, changes={"n_seeds": 2})
    assert len(found) == 2 * len(STARTS) and set(found["n"]) == {2}
    assert len(records) == 1 + len(PLANS["smoke"].passes) * len(STARTS) * 3
    searches = [one for one in records.values() if one["measure"] == "rates"]
    assert {np.shape(one["accuracies"]) for one in searches} == {(2, len(TUNING_SEEDS))}
    runs = [one for one in records.values() if one["measure"] == "accuracy"]
    head = 2 * shipped_model().model.config.d_model
    assert not {one["seed"] for one in runs} & set(TUNING_SEEDS)
    for one in runs:
        (search,) = [s for s in searches if (s["n_labels"], s["start"]) == (one["n_labels"], one["start"])]
        assert one["lr"] == best_rate(search)
        assert (one["n_trained"] == head) == one["start"].endswith("frozen")
        assert one.get("forgotten", 0) == 0 or one["start"] != "pretrained frozen"


def test_the_best_rate_is_that_of_the_highest_mean_and_the_lowest_of_equal_ones():
    tuned = {"rates": [1e-3, 1e-2, 1e-1], "accuracies": [[0.9, 0.5], [0.8, 0.7], [0.75, 0.75]]}
    assert best_rate(tuned) == 1e-2


def test_what_is_trained_follows_from_the_way_and_the_body_itself_is_not_touched():
    shipped, corpus = shipped_model(), load_corpus("world")
    body, config = shipped.model.body, shipped.model.config
    before, head = weights_fingerprint(body), 2 * config.d_model
    lora_only = config.n_layers * 2 * RANK * 2 * config.d_model
    whole = sum(p.numel() for p in body.parameters())
    ids = torch.tensor([shipped.tokenizer.encode(corpus.test.texts[0])])
    first = [adapted(body, way, seed=3).eval()(ids) for way in WAYS]
    assert torch.equal(first[0], first[1]) and torch.equal(first[0], first[2])
    for way, extra in zip(WAYS, (0, lora_only, whole), strict=True):
        model = adapted(body, way, seed=3)
        start = {name: p.detach().clone() for name, p in model.named_parameters()}
        learned = corpus.train.take([0, 1, 2])
        fine_tune(model, shipped.tokenizer, learned, lr=0.1, n_epochs=2, seed=0)
        moved = [name for name, p in model.named_parameters() if not torch.equal(p, start[name])]
        trained = [name for name, p in model.named_parameters() if p.requires_grad]
        assert set(moved) <= set(trained) and "head.weight" in moved
        assert sum(p.numel() for p in model.parameters() if p.requires_grad) == head + extra
    assert weights_fingerprint(body) == before
    assert weights_fingerprint(random_body(config, 0)) != weights_fingerprint(random_body(config, 1))
