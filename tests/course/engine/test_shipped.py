"""The shipped model: eight bits a weight; that the page reads the same numbers: widgets/test_live_model."""

import json

import numpy as np
import pytest
import torch

import tinytx as tx
from tinytx_course.building import shipped as building
from tinytx_course.engine.shipped import FOLDER, WEIGHTS, quantise, read_shipped, shipped_bytes, shipped_model
from tinytx_run.evaluate import evaluate_language_model, exact_nats


def test_rounding_moves_no_weight_by_more_than_half_a_step():
    matrix = np.random.default_rng(0).normal(size=(5, 7)).astype(np.float32)
    matrix[2] = 0.0
    numbers, scale = quantise(matrix)
    assert numbers.dtype == np.int8 and np.abs(numbers).max(axis=1).tolist() == [127, 127, 0, 127, 127]
    assert (np.abs(scale[:, None] * numbers - matrix) <= scale[:, None] * 0.5001).all()


@pytest.mark.parametrize("tied", [True, False])
def test_a_model_is_read_as_it_was_written_to_half_a_step(tied):
    tokenizer = tx.Tokenizer.train(["le chat", "la table"] * 9, vocab_size=18)
    changes = {"vocab_size": 18, "tie_embeddings": tied, "positions": "learned"}
    model = tx.LanguageModel(tx.PRESETS["tiny"].replace(**changes))
    content = shipped_bytes(model, tokenizer)
    read, its_tokenizer = read_shipped(content)
    assert its_tokenizer.encode("la cale") == tokenizer.encode("la cale") and read.config == model.config
    for (name, ours), theirs in zip(model.named_parameters(), read.parameters(), strict=True):
        step = ours.abs().amax(dim=-1, keepdim=True) / 127 if ours.ndim == 2 else torch.zeros(())
        assert ((ours - theirs).abs() <= 0.5001 * step).all(), name
    assert shipped_bytes(read, its_tokenizer) == content


def test_its_loss_is_the_one_stated_and_near_that_of_float32():
    shipped, corpus = shipped_model(), tx.load_corpus("world")
    texts = corpus.valid.texts[:200]
    bound = float(exact_nats(corpus, texts).sum())
    above = evaluate_language_model(shipped.model, shipped.tokenizer, texts).total_nats / bound - 1
    facts, nats = shipped.facts, shipped.facts["nats_per_review"]
    assert above == pytest.approx(facts["above_bound"], abs=0.005)
    assert facts["above_bound"] == pytest.approx(nats["8 bits"] / nats["entropy bound"] - 1)
    assert facts["bytes"] == (FOLDER / WEIGHTS).stat().st_size <= building.LIMIT
    assert abs(nats["8 bits"] - nats["float32"]) < 0.01 * nats["float32"]


def test_it_is_not_trained_again_while_its_recipe_is_the_same(monkeypatch):
    assert not building.is_due()
    monkeypatch.setattr(building, "TRAINING_CHANGES", {"precision": "bf16"})
    assert building.is_due()


@pytest.mark.slow
def test_what_is_trained_is_written_with_its_facts(tmp_path, monkeypatch):
    monkeypatch.setattr(torch, "set_num_threads", lambda n: None)  # other tests share this process
    facts = building.write_shipped(tmp_path, "smoke", 20)
    assert facts == json.loads((tmp_path / building.FACTS).read_text(encoding="utf-8"))
    assert facts["bytes"] == (tmp_path / WEIGHTS).stat().st_size
    model, _ = read_shipped((tmp_path / WEIGHTS).read_bytes())
    assert tx.count_parameters(model) == facts["n_params"]
    assert facts["nats_per_review"]["8 bits"] > facts["nats_per_review"]["entropy bound"]
