"""The explorer of certainty: the posterior of prefixes compared with the world, its JavaScript with both."""

import numpy as np
import pytest
import torch

import tinytx_course as course
from tests.course.widgets.conftest import changed, close
from tinytx_course.widgets.how_sure import _turning, prefix_log_odds


def prefix_posterior(world, words):
    return 1 / (1 + np.exp(-prefix_log_odds(world, words)))


@pytest.fixture(scope="module")
def reviews(world):
    return _turning(world)


@pytest.fixture(scope="module")
def explorer(world):
    return course.widgets.how_sure(world=world)


def test_a_whole_review_has_the_posterior_of_the_world(world):
    for review in world.reviews(20, seed=7):
        exact = prefix_posterior(world, review.words)
        assert len(exact) == len(review.words) + 1 and exact[0] == pytest.approx(0.5)
        assert exact[-1] == pytest.approx(world.label_posterior(review.words))


def test_on_average_the_next_word_leaves_the_posterior_where_it_is(world, reviews):
    words = reviews[0].words
    for n in (0, 2, 5, len(words) - 1):
        exact = prefix_posterior(world, words[:n])
        after = {word: p for word, p in world.next_word(words[:n]).items() if word is not None}
        mean = sum(p * prefix_posterior(world, [*words[:n], word])[-1] for word, p in after.items())
        assert mean / sum(after.values()) == pytest.approx(exact[-1])


def test_each_review_gets_its_own_numbers(node, world, explorer, reviews):
    states = [explorer.state() | {"review": i, "n_read": 4} for i in range(4)]
    answers = node("how_sure", "(({ words, exact, n }) => [words, exact, n])(js.chosenOf(get))", *states)
    for (words, exact, n), review in zip(answers, reviews, strict=True):
        assert tuple(words) == review.words and n == 4
        close(exact, torch.tensor(prefix_posterior(world, review.words)), rtol=1e-5, atol=1e-6)


def test_a_review_that_is_shorter_than_what_was_read_is_read_to_its_end(node, explorer, reviews):
    shortest = min(range(4), key=lambda i: len(reviews[i].words))
    state = explorer.state() | {"review": shortest, "n_read": 99}
    assert node("how_sure", "js.chosenOf(get).n", state) == [len(reviews[shortest].words)]


def test_evidence_adds_up_to_the_log_odds(node, world, explorer, reviews):
    (evidence,) = node("how_sure", "js.evidenceOf(js.chosenOf(get).odds)", explorer)
    close(evidence, torch.tensor(prefix_log_odds(world, reviews[0].words)).diff(), rtol=1e-4, atol=1e-5)


def test_what_is_nearly_certain_keeps_its_evidence_and_is_not_said_to_be_certain(node, world, monkeypatch):
    review = world.reviews(60, seed=1)[17]  # 1 - P(favourable) is 2e-8 in the end: more than float32 can hold
    n = len(review.words) - 1
    before, after = (world.automaton.read(review.words[:i]).hidden.sum(axis=(1, 2)) for i in (n - 1, n))
    moved = np.log(after[1] / after[0] / (before[1] / before[0]))
    assert after[0] < 1e-7 and moved > 1
    monkeypatch.setitem(course.widgets.how_sure.__globals__, "_turning", lambda world: [review])
    explorer = changed(course.widgets.how_sure(world=world), n_read=n)
    (text,) = node("how_sure", "js.describe(get)", explorer)
    assert f"stays, above 0.999 → above 0.999 (+{moved:.2f} nats of log-odds)" in text


def test_what_is_said_hides_what_is_not_read(node, explorer, world, reviews):
    words, exact = reviews[0].words, prefix_posterior(world, reviews[0].words)
    states = [explorer.state() | {"n_read": n} for n in (0, 3, len(words))]
    start, early, end = node("how_sure", "js.describe(get)", *states)
    assert start == "Review 1. No word is read: the exact probability that the review is favourable is 0.500."
    assert f"“{words[2]}”, word 3 of {len(words)}: exact P(favourable) " in early
    assert f", {exact[2]:.3f} → {exact[3]:.3f} (" in early
    assert early.endswith(" nats of log-odds).")
    label = "favourable" if reviews[0].label else "unfavourable"
    assert end.endswith(f" The label: {label}.")
