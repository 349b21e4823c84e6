"""Linear models and embeddings from counts: the same answers in fewer columns, PPMI reconstructed."""

import numpy as np
from sklearn.linear_model import LogisticRegression

from experiments.linear import (
    SMOOTHING,
    WINDOW,
    bag_of_words,
    beside_tfidf,
    cooccurrences,
    gram_features,
    lsa,
    ppmi_vectors,
    probe,
    tfidf,
)
from tinytx_run.corpora import Split

TOPICS = ("axes figure plot legend", "graph node edge path", "frame column row index", "tensor layer loss")


def topics(n_texts, seed):
    """Texts of six words, four of them of one topic; the topic is the label."""
    rng = np.random.default_rng(seed)
    labels = [i % 4 for i in range(n_texts)]
    rows = [
        [*rng.choice(TOPICS[i].split(), 4), *rng.choice(TOPICS[rng.integers(4)].split(), 2)] for i in labels
    ]
    return Split(tuple(" ".join(row) for row in rows), tuple(labels))


def answers_of(predicted):
    return predicted[0].argmax(1)


def test_fewer_features_have_the_same_inner_products_and_so_the_same_answers():
    train, test = topics(37, 0), topics(101, 1)
    table, others = tfidf(train.texts, test.texts, letters=True)
    rows, other_rows = gram_features(table, others)
    assert rows.shape[1] <= 37 < table.shape[1]
    np.testing.assert_allclose(rows @ rows.T, (table @ table.T).toarray(), atol=1e-10)
    np.testing.assert_allclose(other_rows @ rows.T, (others @ table.T).toarray(), atol=1e-10)
    model = LogisticRegression(C=10.0, tol=1e-8, max_iter=2_000)
    whole = model.fit(table, train.labels).predict_proba(others)
    np.testing.assert_allclose(model.fit(rows, train.labels).predict_proba(other_rows), whole, atol=1e-4)


def test_linear_models_separate_four_topics():
    train, test = topics(60, 2), topics(200, 3)
    noise = np.random.default_rng(0)
    columns = [np.eye(4)[list(part.labels)] + noise.normal(0, 0.1, (len(part), 4)) for part in (train, test)]
    silent = [Split(("nothing",) * len(part), part.labels) for part in (train, test)]
    for predicted in (
        *(bag_of_words(train, test, 0, letters=letters) for letters in (False, True)),
        probe(train, test, *columns, 0),
        beside_tfidf(*silent, *columns, 0),  # columns suffice
        beside_tfidf(train, test, *map(np.zeros_like, columns), 0),  # as do words alone
    ):
        assert np.mean(answers_of(predicted) == np.asarray(test.labels)) > 0.9


def test_one_text_of_a_class_is_enough_and_characters_see_stems():
    texts = Split(tuple(f"{TOPICS[i]} {i}" for i in (0, 0, 0, 3)), (0, 0, 0, 3))
    for letters in (False, True):
        assert set(answers_of(bag_of_words(texts, topics(9, 6), 0, letters=letters))) <= {0, 3}
    train = Split(("plotting", "connected", "plotted", "connecting") * 3, (0, 1, 0, 1) * 3)
    found = answers_of(bag_of_words(train, Split(("replot", "disconnect")), 0, letters=True))
    assert found.tolist() == [0, 1]


def test_rows_of_unlabelled_texts_have_length_one_and_bring_words_of_the_same_texts_together():
    texts = ["dull tedious story", "dull tedious plot", "moving honest story", "moving honest plot"] * 5
    dull, tedious, moving = lsa(texts)(["dull", "tedious", "moving"])
    assert np.allclose([dull @ dull, tedious @ tedious, moving @ moving], 1)
    assert dull @ tedious > 0.7 > 0.5 > dull @ moving


def test_ppmi_vectors_reconstruct_the_information_of_cooccurrences():
    rng = np.random.default_rng(1)
    sequences = [rng.integers(0, 5, size=n).tolist() for n in (1, 2, 40, 40)]
    counts = np.zeros((5, 5))
    for ids in sequences:
        for i, one in enumerate(ids):
            for j, other in enumerate(ids):
                counts[one, other] += i != j and abs(i - j) <= WINDOW
    assert np.array_equal(cooccurrences(sequences, 5), counts)
    weights = counts.sum(0) ** SMOOTHING
    information = np.log(counts / (counts.sum(1)[:, None] * (weights / weights.sum())[None, :])).clip(0)
    vectors = ppmi_vectors(sequences, 5, 5)
    gram = vectors @ vectors.T  # U S U', of which the square is that of the information
    np.testing.assert_allclose(gram @ gram, information @ information.T, atol=1e-4)
    np.testing.assert_allclose(ppmi_vectors([[0, 1, 2, 1], [3]], 4, 2)[3], 0, atol=1e-6)
