"""The baseline for next sentences: words that go together, and words that are shared."""

import numpy as np
import pytest

from tinytx_course.labs.lesson_10 import TopicOverlap


def topical_pairs(n, rng, topics=5, words=6):
    """Each passage draws 4 words of one topic and 2 of none; a pair that follows has one topic."""
    firsts, seconds, labels = [], [], []
    for _ in range(n):
        label = int(rng.integers(2))
        first = int(rng.integers(topics))
        second = (first + label * int(rng.integers(1, topics))) % topics
        for topic, side in ((first, firsts), (second, seconds)):
            of_topic = rng.choice(words, 3, replace=False) + topic * words
            side.append([*of_topic.tolist(), *(topics * words + rng.choice(9, 2)).tolist()])
        labels.append(label)
    return firsts, seconds, labels


def test_topics_are_found_from_counts_and_shared_words_find_fewer():
    rng = np.random.default_rng(0)
    train, test = topical_pairs(4000, rng), topical_pairs(1000, rng)
    accuracy = {}
    for associations in (True, False):
        model = TopicOverlap(39, associations=associations).fit(*train)
        accuracy[associations] = (model.predict(*test[:2]) == np.array(test[2])).mean()
    assert accuracy[True] > 0.97 > 0.9 > accuracy[False] > 0.7


def test_a_weight_is_the_log_of_how_much_more_often_words_meet():
    # Counted are the first, third, ... pair: words 0 and 1 meet in 2 of 3 that follow, in 1 of 2 that do not.
    firsts = [[0], [2], [0], [2], [2], [2], [0], [2], [2], [2]]
    seconds = [[1], [2], [1, 1], [2], [2], [2], [1], [2], [2], [2]]
    labels = [0, 0, 0, 1, 0, 0, 1, 1, 1, 1]
    model = TopicOverlap(3, certainty=0).fit(firsts, seconds, labels)
    assert model.weights[0, 1] == pytest.approx(np.log(((2 + 1) / (3 + 1)) / ((1 + 1) / (2 + 1))))
    assert model.weights[1, 0] == pytest.approx(np.log((1 / 4) / (1 / 3)))
    both = (model.weights[0, 1] + model.weights[0, 2]) / 2
    assert model.scores([[0, 0]], [[2, 1]]) == pytest.approx([both])


def test_what_chance_could_explain_weighs_nothing():
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=4000)
    # Word 0 meets word 1 far more often where passages follow; all else is noise.
    firsts = [[0, *rng.integers(2, 40, 3).tolist()] for _ in labels]
    seconds = [
        [*([1] if rng.random() < (0.2 if label else 0.6) else []), *rng.integers(2, 40, 3).tolist()]
        for label in labels
    ]
    model = TopicOverlap(40).fit(firsts, seconds, labels.tolist())
    assert model.weights[0, 1] == pytest.approx(np.log(3), abs=0.2)
    assert (np.delete(model.weights[2:], 1, axis=1) != 0).mean() < 0.01
    noisy = TopicOverlap(40, certainty=0).fit(firsts, seconds, labels.tolist())
    assert (noisy.weights[2:, 2:] != 0).mean() > 0.9


def test_shared_words_count_as_their_share_of_all_pairs():
    model = TopicOverlap(9, associations=False)
    assert model.scores([[1, 2], [3], []], [[2, 5, 7], [3], [1]]).tolist() == pytest.approx([1 / 6, 1.0, 0.0])


@pytest.mark.parametrize(("labels", "answer"), [([0, 1, 0, 0, 0, 0, 1, 0], 0), ([0, 1, 1, 1, 0, 1, 0, 1], 1)])
def test_where_nothing_can_be_told_the_commoner_answer_is_given(labels, answer):
    same = [[1]] * 8
    model = TopicOverlap(3).fit(same, same, labels)
    assert model.predict([[1]] * 3, [[1]] * 3).tolist() == [answer] * 3


def test_impossible_requests_are_refused():
    for call, words in (
        (lambda: TopicOverlap(0), "vocab_size must be at least 1"),
        (lambda: TopicOverlap(3, certainty=-1), "certainty must be 0 or more"),
        (lambda: TopicOverlap(3).predict([[1]], [[1]]), "must be fitted before"),
        (lambda: TopicOverlap(3).fit([[1]] * 4, [[1]] * 4, [0] * 4), "of both kinds, got 4 labels"),
        (lambda: TopicOverlap(3).scores([[1]], []), "must be as many, got 1 and 0"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
