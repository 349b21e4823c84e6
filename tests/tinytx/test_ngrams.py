"""Counts by hand, a dictionary version to compare with, and probabilities that sum to one."""

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinytx.ngrams import NGramModel

VOCAB_SIZE = 7
SMALL = [[4, 5, 4, 6], [4, 5], [], [6, 6, 4, 5, 4], [0, 1]]
sequences = st.lists(st.lists(st.integers(0, VOCAB_SIZE - 1), max_size=9), min_size=1, max_size=6)


def witten_bell(training, order, history, token):
    """P(token | history) straight from the definition, by recursion over dictionaries."""
    following = defaultdict(Counter)
    for sequence in training:
        padded = [2] * (order - 1) + sequence + [3]
        for i in range(order - 1, len(padded)):
            for length in range(order):
                following[tuple(padded[i - length : i])][padded[i]] += 1

    def prob(context):
        lower = prob(context[1:]) if context else 1 / VOCAB_SIZE
        counts = following[context]
        if not counts:
            return lower
        return (counts[token] + len(counts) * lower) / (counts.total() + len(counts))

    padded = [2] * (order - 1) + history
    return prob(tuple(padded[len(padded) - order + 1 :]))


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@given(training=sequences, probe=st.lists(st.integers(0, VOCAB_SIZE - 1), max_size=7))
def test_log_prob_equals_the_definition(order, training, probe):
    model = NGramModel(order, VOCAB_SIZE).fit(training)
    expected = [np.log(witten_bell(training, order, probe[:i], token)) for i, token in enumerate([*probe, 3])]
    np.testing.assert_allclose(model.log_prob(probe), expected, rtol=1e-10)


def test_log_prob_reads_off_next_probs():
    model = NGramModel(3, VOCAB_SIZE).fit(SMALL)
    probe = [6, 4, 5, 5]
    expected = [model.next_probs(probe[:i])[token] for i, token in enumerate([*probe, 3])]
    np.testing.assert_allclose(np.exp(model.log_prob(probe)), expected, rtol=1e-12)


def test_a_smaller_order_is_the_model_fitted_with_that_order():
    large = NGramModel(4, VOCAB_SIZE).fit(SMALL)
    for order in (1, 2, 3):
        expected = NGramModel(order, VOCAB_SIZE).fit(SMALL).log_prob([4, 6, 5])
        np.testing.assert_allclose(large.log_prob([4, 6, 5], order=order), expected, rtol=1e-12)


@given(sequences, st.integers(1, 4))
def test_the_counts_are_those_of_all_different_ngrams(training, order):
    padded = [[2] * 3 + sequence + [3] for sequence in training]
    grams = {
        tuple(row[i - n + 1 : i + 1])
        for row in padded
        for i in range(3, len(row))
        for n in range(1, order + 1)
    }
    assert NGramModel(4, VOCAB_SIZE).fit(training).n_counts(order) == len(grams)


def test_the_mean_over_sequences_is_that_of_their_tokens():
    model = NGramModel(3, VOCAB_SIZE).fit(SMALL)
    singles = np.concatenate([model.log_prob(sequence) for sequence in SMALL])
    np.testing.assert_allclose(model.nats_per_token(SMALL), -singles.mean(), rtol=1e-12)


def test_six_tokens_of_a_large_vocabulary_are_kept_apart():
    vocab_size = 50_001
    training = [[49_000 + i for i in range(6)], [49_000 + i for i in range(1, 7)]]
    model = NGramModel(6, vocab_size).fit(training)
    probs = model.next_probs(training[0][:5])
    assert int(probs.argmax()) == training[0][5]
    np.testing.assert_allclose(probs.sum(), 1, rtol=1e-9)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda _: NGramModel(0, VOCAB_SIZE), "order must be at least 1, got 0"),
        (lambda _: NGramModel(2, 3), "bos_id and eos_id must be from 0 to 2, got bos_id=2, eos_id=3"),
        (lambda model: model.fit([]), "at least one sequence, got none"),
        (lambda _: NGramModel(2, VOCAB_SIZE).log_prob([4]), "must be fitted"),
        (lambda model: model.log_prob([4, -1]), "ids must be from 0 to 6, got -1"),
        (lambda model: model.log_prob([4, VOCAB_SIZE]), "ids must be from 0 to 6, got 7"),
        (lambda model: model.log_prob([4], order=0), "order must be from 1 to 2, got 0"),
        (lambda model: model.n_counts(3), "order must be from 1 to 2, got 3"),
    ],
)
def test_bad_arguments_are_named(call, words):
    with pytest.raises(ValueError, match=words):
        call(NGramModel(2, VOCAB_SIZE).fit(SMALL))
