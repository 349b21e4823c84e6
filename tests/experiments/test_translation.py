"""Translators measured once, by both searches."""

import random

from experiments.translation import translation
from tinytx_run.pairs import PairCorpus, Pairs

WORDS = {"red": "rouge", "book": "livre", "the": "le", "sees": "voit", "cat": "chat", "a": "un"}


def test_both_searches_are_scored_on_the_test_split_and_nothing_is_measured_twice(once):
    rng = random.Random(0)
    sources = [" ".join(rng.choices(list(WORDS), k=rng.randint(1, 6))) for _ in range(90)]
    targets = [" ".join(WORDS[word] for word in source.split()) for source in sources]
    cuts = (slice(0, 70), slice(70, 80), slice(80, 90))
    pairs = PairCorpus("toy", *(Pairs(tuple(sources[cut]), tuple(targets[cut])) for cut in cuts))
    found, records = once(translation, pairs)
    assert found["search"].tolist() == ["greedy", "beam of 4"]
    (record,) = records.values()
    assert record["scores"]["greedy"]["split"] == "test"
    assert found["bleu"].tolist() == [score["bleu"] for score in record["scores"].values()]
