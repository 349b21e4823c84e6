"""The split of what a model of the world loses, and the experiment as a whole on the smallest budget."""

import pytest
import torch

from experiments.world_minute import PARTS, missing, world_minute
from tinytx_run.corpora import load_corpus
from tinytx_run.evaluate import evaluate_language_model, exact_nats
from tinytx_run.pretrain import pretrain
from tinytx_run.training import RunOptions


@pytest.fixture(scope="module")
def trained():
    return pretrain(
        "world",
        budget="smoke",
        vocab_size=1300,
        model_changes={"n_heads": 2},
        options=RunOptions(progress=False, report=lambda line: None),
    )


def test_the_parts_add_up_to_the_whole_excess(trained):
    texts = load_corpus("world").valid.texts[:7]
    parts = missing(trained.model, trained.tokenizer, texts)
    score = evaluate_language_model(trained.model, trained.tokenizer, texts)
    excess = (score.total_nats - exact_nats(load_corpus("world"), texts).sum()) / len(texts)
    assert tuple(parts) == PARTS
    torch.testing.assert_close(sum(parts.values()), float(excess), rtol=1e-5, atol=1e-5)


def test_a_model_that_confuses_only_forms_loses_by_agreement_alone(trained):
    """The exact language, with the mass of each adjective spread evenly over its forms."""
    from experiments.world_minute import _Levels, _names
    from tinyworld.lexicon import Lexicon
    from tinyworld.world import World

    world, levels = World(), _Levels(trained.tokenizer)
    text = "la scène est belle ."
    words = text[0].upper() + text[1:]
    p = levels.first_token(world.next_words(words.split(" ")[:3])[-1])
    names = _names(Lexicon())
    first = {word: trained.tokenizer.word_pieces(word)[0] for word in names if word in world.vocabulary}
    adjectives = [word for word in first if names[word][0] == "adjective"]
    target = next(
        word for word in adjectives if p[first[word]] > 0 and levels._kinds[first[word]] == "adjective"
    )
    forms = {first[word] for word in adjectives if names[word] == names[target]}
    q = p.copy()
    q[list(forms)] = p[list(forms)].sum() / len(forms)
    found = dict(levels.parts(p, q, first[target], False, 1))
    assert found["agreement"] > 0.1
    assert all(abs(nats) < 1e-9 for part, nats in found.items() if part != "agreement")


@pytest.mark.slow
def test_the_smallest_budget_is_measured_once_and_says_its_parts(once, corpus, monkeypatch):
    monkeypatch.setattr("experiments.world_minute.load_corpus", lambda name: corpus)
    monkeypatch.setattr("experiments.world_minute.PACE_STEPS", 3)
    found, _ = once(world_minute, changes={"n_seeds": 2})
    assert found["variant"].tolist() == ["recipe"] and found["n"].tolist() == [2]
    assert found["seconds"].item() > 0 and found["mean"].item() > 10
    assert found[list(PARTS)].sum(axis=1).item() == pytest.approx(found["mean"].item(), rel=1e-4)
