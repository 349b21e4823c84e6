"""Linear readers: the same answers from fewer columns, several classes, letters beside words."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from experiments.transfer_encoders import bag_of_words, beside_words, read_columns, tfidf, turned
from tinytx.text.corpora import Split

TOPICS = ("axes figure plot legend", "graph node edge path", "frame column row index", "tensor layer loss")


def topics(n_texts, seed, n_topics=4):
    """Texts of six words, four of them of one topic; the topic is the label."""
    rng = np.random.default_rng(seed)
    labels = [i % n_topics for i in range(n_texts)]
    texts = []
    for label in labels:
        own, other = TOPICS[label].split(), TOPICS[rng.integers(n_topics)].split()
        texts.append(" ".join([*rng.choice(own, 4), *rng.choice(other, 2)]))
    return Split(tuple(texts), tuple(labels))


@pytest.mark.parametrize("n_topics", [2, 4])
def test_turned_rows_keep_all_products_and_a_linear_model_answers_the_same(n_topics):
    train, tested = topics(37, 0, n_topics), topics(101, 1, n_topics)
    table, others = tfidf(train.texts, tested.texts, letters=True)
    rows, beside = turned(table, others)
    assert rows.shape[1] <= 37 < table.shape[1]
    np.testing.assert_allclose(rows @ rows.T, (table @ table.T).toarray(), atol=1e-10)
    np.testing.assert_allclose(beside @ rows.T, (others @ table.T).toarray(), atol=1e-10)
    probs = [
        LogisticRegression(C=10.0, tol=1e-8, max_iter=2_000).fit(own, train.labels).predict_proba(told)
        for own, told in ((table, others), (rows, beside))
    ]
    np.testing.assert_allclose(probs[0], probs[1], atol=1e-4)


@pytest.mark.parametrize("kind", ["logistic", "bayes", "letters"])
def test_bags_of_words_tell_four_topics_apart(kind):
    train, tested = topics(60, 2), topics(200, 3)
    answers, chosen = bag_of_words(train, tested, kind, seed=0)
    assert np.mean(answers == np.asarray(tested.labels)) > 0.9 and set(chosen) == {"chosen"}


def test_columns_alone_and_beside_words_tell_four_topics_apart():
    train, tested = topics(60, 4), topics(200, 5)
    noise = np.random.default_rng(0)
    own, others = (
        np.eye(4)[list(part.labels)] + noise.normal(0, 0.1, (len(part), 4)) for part in (train, tested)
    )
    for read in (read_columns, beside_words):
        answers, _ = read(train, tested, own, others, 0)
        assert np.mean(answers == np.asarray(tested.labels)) > 0.95


@pytest.mark.parametrize("labels", [(0, 1, 2, 3), (1, 3, 1, 3), (0, 0, 0, 3)])
def test_one_text_of_a_class_or_none_is_enough_to_go_on(labels):
    texts = tuple(TOPICS[label] + f" {i}" for i, label in enumerate(labels))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in ("logistic", "bayes", "letters"):
            answers, _ = bag_of_words(Split(texts, labels), topics(9, 6), kind, seed=0)
            assert set(answers) <= set(labels)


def test_letters_see_that_two_words_are_of_one_stem():
    train = Split(("plotting", "connected", "plotted", "connecting") * 3, (0, 1, 0, 1) * 3)
    tested = Split(("replot", "disconnect"), (0, 1))
    assert bag_of_words(train, tested, "letters", 0)[0].tolist() == [0, 1]
    table, others = tfidf(train.texts, tested.texts)
    assert others.nnz == 0  # words alone know neither
