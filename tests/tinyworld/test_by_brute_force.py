"""In worlds small enough to list every review, every question has the answer that the list gives."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tinytx.tokenizer import Tokenizer
from tinyworld.world import mean_per_word

EXACT = {"rtol": 1e-9, "atol": 1e-12}


def assert_same_distribution(found, expected):
    assert set(found) == {outcome for outcome, chance in expected.items() if chance > 0}
    assert_allclose([found[key] for key in found], [expected[key] for key in found], **EXACT)
    assert list(found.values()) == sorted(found.values(), reverse=True)


def normalised(weights):
    total = sum(weights.values())
    return {key: weight / total for key, weight in weights.items()}


def test_log_prob_of_every_review_and_their_sum(truth):
    found = truth.world.batch_log_prob(truth.chance)
    assert_allclose(np.exp(found), list(truth.chance.values()), **EXACT)
    assert_allclose(np.exp(found).sum(), 1.0, **EXACT)


def test_nothing_else_is_possible(truth):
    for words in truth.sample(300, seed=1):
        swapped = (*words[:1], *reversed(words[1:3]), *words[3:])
        assert_allclose(np.exp(truth.world.log_prob(swapped)), truth.chance.get(swapped, 0.0), **EXACT)
        assert truth.world.log_prob(words[:-1]) == -math.inf
        assert truth.world.log_prob((*words, "?")) == -math.inf


def test_next_word_after_every_prefix(truth):
    follow = defaultdict(dict)
    for prefix, chance in truth.begins.items():
        if prefix:
            follow[prefix[:-1]][prefix[-1]] = chance
        if prefix in truth.chance:
            follow[prefix][None] = truth.chance[prefix]
    prefixes = sorted(follow)
    for index in np.random.default_rng(2).choice(len(prefixes), size=600, replace=False):
        prefix = prefixes[index]
        assert_same_distribution(truth.world.next_word(prefix), normalised(follow[prefix]))


def test_label_posterior(truth):
    for words in truth.sample(300, seed=3):
        hidden = truth.reviews[words] / truth.chance[words]
        assert_allclose(truth.world.label_posterior(words), hidden[1].sum(), **EXACT)


@pytest.mark.parametrize("n_hidden", [1, 2, 3, 99])
def test_fill_with_hidden_words(truth, n_hidden):
    rng = np.random.default_rng(n_hidden)
    for words in truth.sample(40, seed=4):
        hidden = sorted(rng.choice(len(words), size=min(n_hidden, len(words)), replace=False).tolist())
        expected = [defaultdict(float) for _ in hidden]
        for other, chance in truth.chance.items():
            if len(other) == len(words) and all(
                a == b or place in hidden for place, (a, b) in enumerate(zip(words, other, strict=True))
            ):
                for at, place in enumerate(hidden):
                    expected[at][other[place]] += chance
        for found, one in zip(truth.world.fill(words, hidden), expected, strict=True):
            assert_same_distribution(found, normalised(one))


def test_entropies_of_a_review(deep):
    for words in deep.sample(20, seed=5):
        found = deep.world.entropies(words)
        for place in range(len(words)):
            left = np.array(list(deep.world.next_word(words[:place]).values()))
            both = np.array(list(deep.world.fill(words, place).values()))
            assert_allclose(found.left[place], -(left * np.log(left)).sum(), **EXACT)
            assert_allclose(found.both[place], -(both * np.log(both)).sum(), **EXACT)


def test_the_mean_entropy_per_word_is_a_ratio_of_means_with_its_error(deep):
    found = [deep.world.entropies(review.words).left for review in deep.world.reviews(300, seed=8)]
    sums, lengths = np.array([one.sum() for one in found]), np.array([len(one) for one in found])
    estimate = mean_per_word(found)
    assert_allclose(estimate.mean, sums.sum() / lengths.sum(), **EXACT)
    rng = np.random.default_rng(9)  # the bootstrap finds the same spread
    draws = rng.integers(300, size=(4000, 300))
    spread = (sums[draws].sum(axis=1) / lengths[draws].sum(axis=1)).std()
    assert estimate.standard_error == pytest.approx(spread, rel=0.1)


@pytest.fixture(scope="module")
def in_pieces(deep):
    """The reviews as pieces of a tokenizer that breaks many words, with a chance each."""
    texts = [" ".join(words) for words in deep.chance]
    letters = len(set("".join(texts)))
    tokenizer = Tokenizer.train(texts[:500], vocab_size=letters + 20)
    pieces = {
        tuple(tokenizer.encode(text)): chance
        for text, chance in zip(texts, deep.chance.values(), strict=True)
    }
    assert len(pieces) == len(deep.chance)
    return tokenizer, pieces


def test_next_token_after_every_prefix_of_pieces(deep, in_pieces):
    tokenizer, reviews = in_pieces
    follow = defaultdict(lambda: np.zeros(tokenizer.vocab_size))
    for pieces, chance in reviews.items():
        for place, piece in enumerate((*pieces, tokenizer.eos_id)):
            follow[pieces[:place]][piece] += chance
    tokens = deep.world.through(tokenizer)
    prefixes = sorted(follow)
    for index in np.random.default_rng(6).choice(len(prefixes), size=600, replace=False):
        prefix = prefixes[index]
        expected = follow[prefix] / follow[prefix].sum()
        assert_allclose(tokens.next_token((tokenizer.bos_id, *prefix)), expected, **EXACT)


def test_fill_token_with_a_hidden_piece(deep, in_pieces):
    tokenizer, reviews = in_pieces
    tokens = deep.world.through(tokenizer)
    listed = sorted(reviews)
    rng = np.random.default_rng(7)
    for index in rng.choice(len(listed), size=80, replace=False):
        pieces = listed[index]
        place = int(rng.integers(len(pieces)))
        expected = np.zeros(tokenizer.vocab_size)
        for other, chance in reviews.items():
            if len(other) == len(pieces) and other[:place] == pieces[:place]:
                expected[other[place]] += chance * (other[place + 1 :] == pieces[place + 1 :])
        ids = (tokenizer.bos_id, *pieces, tokenizer.eos_id)
        assert_allclose(tokens.fill_token(ids, place + 1), expected / expected.sum(), **EXACT)
