"""Translators measured once, and broken ones that differ in one ingredient."""

import random

import pytest

from experiments.translation import BROKEN, SOUND, broken_translation, translation, variants
from tinytx_course.labs.lesson_11 import DIAGNOSES
from tinytx_run.pairs import PairCorpus, Pairs
from tinytx_run.pretrain import train_translator

WORDS = {"red": "rouge", "book": "livre", "the": "le", "sees": "voit", "cat": "chat", "a": "un"}


@pytest.fixture(scope="module")
def pairs():
    rng = random.Random(0)
    sources = [" ".join(rng.choices(list(WORDS), k=rng.randint(1, 6))) for _ in range(90)]
    targets = [" ".join(WORDS[word] for word in source.split()) for source in sources]
    cuts = (slice(0, 70), slice(70, 80), slice(80, 90))
    return PairCorpus("toy", *(Pairs(tuple(sources[cut]), tuple(targets[cut])) for cut in cuts))


def test_both_searches_are_scored_on_the_test_split_and_nothing_is_measured_twice(once, pairs):
    found, records = once(translation, pairs)
    assert found["search"].tolist() == ["greedy", "beam of 4"]
    (record,) = records.values()
    assert record["scores"]["greedy"]["split"] == "test" and record["seconds"] > 0
    assert found["bleu"].tolist() == [score["bleu"] for score in record["scores"].values()]
    assert set(record["sentences"]["I am a student"]) == {"greedy", "beam of 4"}


def test_broken_translators_are_trained_with_their_ingredients(settings, pairs, monkeypatch):
    for name, ingredients in variants().items():
        if ":" in name:
            base = BROKEN if name.startswith("repaired") else SOUND
            assert [key for key in base if ingredients[key] != base[key]] == [name.split(": ")[1]]
    asked = []

    def spy(*args, **changes):
        asked.append((changes["model_changes"], changes["training_changes"]))
        return train_translator(*args, **changes)

    monkeypatch.setattr("experiments.translation.train_translator", spy)
    found = broken_translation(settings(), pairs, ["all four faults", "sound"])
    assert found["variant"].tolist() == ["all four faults", "sound"] and found["bleu"].notna().all()
    (model, training), (sound_model, sound_training) = asked
    assert model == {"norm": "last", "dropout": 0.0} and training["warmup_steps"] == 0
    assert sound_model == {"norm": "first", "dropout": 0.1} and sound_training["lr"] == SOUND["rate"]
    first, *_ = settings().store.data.values()
    assert set(first["shown"][0]) == {"source", "reference", *DIAGNOSES}
    with pytest.raises(ValueError, match="all four faults, .*got all"):
        broken_translation(settings(), pairs, ["all"])
