"""The contest of objectives: fair by construction, measured cell by cell, beside the exact optimum."""

import math

import numpy as np
import pytest
import torch

from experiments.objectives import (
    CONTESTANTS,
    _follows,
    best_label_accuracy,
    completion_measures,
    fill_measures,
    kept_rows,
    objectives,
    training_flops,
)
from tests.training.interrupted import StopsAfter
from tinytx.model.attention import record_attention
from tinytx.model.config import TransformerConfig
from tinytx.model.masked_lm import MaskedLanguageModel
from tinytx.text.corpora import Corpus, Split
from tinytx.training.fit import train_tokenizer
from tinytx.training.objectives import Masking, draw_pairs, make_passages
from tinytx.world.world import World
from tinytx_course.labs.layers import count_flops
from tinytx_course.results import Results

N = {"n_blanks": 3, "n_prefixes": 3, "label_counts": (8,)}


def world_split(n, seed, whole_alphabet=False):
    """Some reviews; with the whole alphabet, a few more, so that every letter of the world occurs."""
    world = World()
    reviews = world.reviews(n, seed=seed)
    if whole_alphabet:
        missing = set("".join(world.vocabulary)) - set("".join(word for one in reviews for word in one.words))
        for one in world.reviews(4000, seed=seed + 1):
            if missing & set("".join(one.words)):
                missing -= set("".join(one.words))
                reviews.append(one)
    return Split(tuple(" ".join(one.words) for one in reviews), tuple(one.label for one in reviews))


@pytest.fixture(scope="module")
def world_corpus():
    return Corpus("world", world_split(150, 1, whole_alphabet=True), world_split(20, 2), world_split(12, 3))


def run(corpus, tmp_path, store=None, **settings):
    return objectives(
        store=store or Results("objectives", tmp_path / "results"),
        corpus=corpus,
        budget="smoke",
        work_dir=tmp_path / "build",
        device="cpu",
        progress=False,
        report=lambda line: None,
        **N | {"n_seeds": 1} | settings,
    )


@pytest.mark.slow
def test_every_contestant_is_measured_and_what_is_kept_is_not_measured_again(world_corpus, tmp_path):
    with pytest.raises(ConnectionAbortedError):
        run(world_corpus, tmp_path, StopsAfter(Results("objectives", tmp_path / "results"), 9))
    rest = StopsAfter(Results("objectives", tmp_path / "results"), 99)
    rows = run(world_corpus, tmp_path, rest)
    records = Results("objectives", tmp_path / "results").data
    assert len(records) == 9 + (99 - rest.left) == 5 * 5 + 1 + 2
    nothing = StopsAfter(Results("objectives", tmp_path / "results"), 0)
    assert run(world_corpus, tmp_path, nothing) == rows
    begun = {**records, "smoke/seed 1/causal/complete": records["smoke/seed 0/causal/complete"]}
    assert kept_rows(begun, "smoke") == rows and kept_rows(records, "study") == []

    pretraining = {
        record["contestant"]: record for record in records.values() if record["measure"] == "pretraining"
    }
    assert set(pretraining) == {one.name for one in CONTESTANTS}
    causal, masked = pretraining["causal"], pretraining["masked"]
    assert len({record["n_body"] for record in pretraining.values()}) == 1
    assert causal["n_params"] == masked["n_params"] < pretraining["masked+nsp"]["n_params"]
    assert pretraining["masked, same tokens"]["n_steps"] == causal["n_steps"] < masked["n_steps"]
    spent = [record["n_steps"] * record["flops_per_id"] for record in (causal, masked)]
    assert abs(spent[1] / spent[0] - 1) < 1 / masked["n_steps"]

    found = {(row.measure, row.contestant): row for row in rows}
    test = world_corpus.test
    best = best_label_accuracy(test.texts, test.labels)
    for name in ("probe 8 labels", "finetune 8 labels"):
        assert found[name, "masked"].exact == best >= 0.8
    fill = found["fill: nats", "masked"]
    assert fill.exact < fill.values[0] and fill.exact == found["fill: nats", "causal"].exact
    assert found["fill: excess", "causal"].values[0] > 0 == found["fill: excess", "causal"].exact
    assert ("fill, left: nats", "masked") not in found and ("next: model", "masked") not in found
    assert found["next: model", "masked+nsp"].interval is None
    assert math.isfinite(sum(row.values[0] for row in rows)) and all(str(row) for row in rows)


@pytest.mark.parametrize("next_sentence", [False, True])
@pytest.mark.parametrize("transform", [False, True])
def test_operations_are_those_that_torch_counts(transform, next_sentence):
    config = TransformerConfig(vocab_size=41, d_model=14, n_heads=7, n_layers=3, d_ff=5, causal=False)
    model = MaskedLanguageModel(config, transform=transform, next_sentence=next_sentence)
    ids = torch.randint(0, 41, (1, 20))
    drawn = torch.arange(20) < 5
    masking = Masking(p=0.25, transform=transform, next_sentence=next_sentence)

    def run_once():
        with record_attention(model):
            hidden = model.body(ids)
        if model.next_head is not None:
            model.next_head(hidden)
        return model.head(hidden[:, drawn])

    assert training_flops(config, masking, 20) == pytest.approx(count_flops(run_once) / 20)


def test_a_pair_is_asked_about_with_its_own_segments_and_without_its_neighbours(config, tokenizer, corpus):
    model = MaskedLanguageModel(config.replace(n_segments=2), next_sentence=True).eval()
    passages = make_passages(tokenizer, corpus.valid.texts, 21)
    pairs = draw_pairs(passages, 21, np.random.default_rng(0))
    logits = []
    for first, second in zip(pairs.firsts, pairs.seconds, strict=True):
        row = [tokenizer.cls_id, *first, tokenizer.sep_id, *second, tokenizer.sep_id]
        segments = [0] * (len(first) + 2) + [1] * (len(second) + 1)
        logits.append(model.follows(torch.tensor([row]), segment_ids=torch.tensor([segments])).detach()[0])
    odds = torch.stack(logits).diff()[:, 0]
    model.next_head.output.bias.data[1] -= odds.mean()  # so that both answers occur
    expected = (odds > odds.mean()).int().tolist()
    assert _follows(model, tokenizer, pairs, n_rows=7).tolist() == expected
    assert 0 < sum(expected) < len(expected)


class Exact:
    """Stands for a model that knows the world: gives the exact fill in place of its own."""


def test_a_perfect_filler_has_no_excess(world_corpus, monkeypatch):
    tokenizer = train_tokenizer(world_corpus.train.texts, 400, exact=False, kind="world")
    through = World().through(tokenizer)
    monkeypatch.setattr(
        "experiments.objectives.fill_probs",
        lambda model, tokenizer, ids, place, sides: through.fill_token(ids, place),
    )
    found = fill_measures(Exact(), tokenizer, world_corpus.test.texts, 5)
    assert found["excess"] == pytest.approx(0, abs=1e-9)
    assert found["nats"] == found["exact"]["nats"] and found["accuracy"] == found["exact"]["accuracy"]


def test_a_completion_is_judged_by_the_world(world_corpus, monkeypatch):
    tokenizer = train_tokenizer(world_corpus.train.texts, 400, exact=False, kind="world")
    texts = world_corpus.test.texts[:4]
    truth = {}
    for text in texts:
        words = text.split(" ")
        half = len(words) // 2
        truth[tuple(tokenizer.encode(" ".join(words[:half])))] = words[half:]
    carried = "experiments.objectives._carried_on"
    monkeypatch.setattr(carried, lambda m, t, start, seed: tokenizer.encode(" ".join(truth[tuple(start)])))
    found = completion_measures(Exact(), tokenizer, texts, 4)
    n_new = np.mean([len(words) for words in truth.values()])
    assert (found["possible"], found["words_before_error"], found["new_words"]) == (1, n_new, n_new)
    monkeypatch.setattr(
        carried, lambda m, t, start, seed: tokenizer.encode(" ".join([*truth[tuple(start)][:2], "le", "le"]))
    )
    found = completion_measures(Exact(), tokenizer, texts, 4)
    assert found["possible"] == 0 and 2 <= found["words_before_error"] <= 3 and found["new_words"] == 4


def test_impossible_requests_are_refused_before_anything_is_trained(world_corpus, tmp_path):
    with pytest.raises(ValueError, match="n_seeds must be at least 1, got 0"):
        run(world_corpus, tmp_path, n_seeds=0)
    with pytest.raises(ValueError, match="a budget by name, as equal steps are compared, got 9.0 s"):
        objectives(store=Results("objectives", tmp_path), corpus=world_corpus, budget=9)
    assert not list(tmp_path.iterdir())
