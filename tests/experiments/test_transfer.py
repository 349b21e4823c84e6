"""Transfer on real text: folds without leaks, linear models, PPMI vectors, and every kind of variant."""

import dataclasses
import functools

import numpy as np
import pytest
import torch
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression

from experiments.transfer import _Cells, transfer_on_folds
from experiments.transfer_data import (
    DocstringSources,
    ReviewSources,
    distinct_texts,
    readable,
    stratified_folds,
)
from experiments.transfer_encoders import SMOOTHING, WINDOW, StarsObjective, cooccurrences, ppmi_vectors
from experiments.transfer_linear import (
    StarRegression,
    bag_of_words,
    gram_features,
    probe,
    tfidf,
    with_words,
)
from experiments.transfer_variants import PACKAGES, REVIEWS, TASKS, variant
from tinytx.model.config import TransformerConfig
from tinytx.model.transformer import Classifier
from tinytx.text.corpora import Corpus, Split
from tinytx_course.labs.docstrings import without_giveaways
from tinytx_course.labs.lesson_15 import same_text

WORDS = dict.fromkeys(ReviewSources.names, 10**6)
TOPICS = ("axes figure plot legend", "graph node edge path", "frame column row index", "tensor layer loss")


def topics(n_texts, seed):
    """Texts of six words, four of them of one topic; the topic is the label."""
    rng = np.random.default_rng(seed)
    labels = [i % 4 for i in range(n_texts)]
    rows = [
        [*rng.choice(TOPICS[i].split(), 4), *rng.choice(TOPICS[rng.integers(4)].split(), 2)] for i in labels
    ]
    return Split(tuple(" ".join(row) for row in rows), tuple(labels))


def test_every_text_is_tested_once_and_never_learned_from(reviews):
    split, n_repeated = distinct_texts(reviews)
    assert n_repeated == 1 and len(split) == 150 == len({same_text(text) for text in split.texts})
    label_of = dict(zip(split.texts, split.labels, strict=True))
    tested = {}
    for repeat in (0, 1):
        folds = stratified_folds(split, 7, repeat)
        tested[repeat] = [fold.test.texts for fold in folds]
        assert sorted(sum(tested[repeat], ())) == sorted(split.texts)
        for fold in folds:
            assert not set(fold.test.texts) & set(fold.train.texts)
            assert len(fold.test) + len(fold.train) == 150
            assert [label_of[text] for text in fold.test.texts] == list(fold.test.labels)
            assert abs(2 * sum(fold.test.labels) - len(fold.test)) <= 2
    assert tested[0] != tested[1] and [fold.seed for fold in folds] == list(range(7, 14))
    with pytest.raises(ValueError, match="from 2 to 75, .* got 76"):
        stratified_folds(split, 76)


def test_a_text_with_two_labels_is_left_out_and_the_test_split_untouched():
    splits = Split(("a b", "c d", "e f"), (0, 1, 0)), Split(("A, b!", "g h"), (1, 1)), Split(("x",), (0,))
    split, n_repeated = distinct_texts(Corpus("c", *splits))
    assert split.texts == ("c d", "e f", "g h") and n_repeated == 2
    assert readable("d?abord l\u2019idée\u00a0? oui?") == "d'abord l'idée ? oui?"


def test_no_source_gives_a_text_of_the_task(reviews, data_dir):
    texts = distinct_texts(reviews)[0].texts
    sources = ReviewSources(data_dir, texts)
    assert len(ReviewSources(data_dir).rated) == 81 and len(sources.rated) == 80
    around = sources.texts("around", WORDS)
    assert around == [text for name in sources.names for text in sources.texts(name, WORDS)]
    assert not {same_text(text) for text in texts} & set(map(same_text, around))
    few = sources.texts("novels", {"novels": 50})
    assert 50 <= sum(len(text.split()) for text in few) < 50 + max(len(text.split()) for text in few)


def test_documents_that_hold_a_tested_text_are_left_out():
    clean = ["Something else altogether.", "Return the mean of an array."]
    leaks = [
        "return the MEAN of an array -- quickly",
        "First this. Return the mean of an array, quickly. Then that.",
        "As in NumPy. Return the mean of an array, quickly. So does SciPy.",
        "Return the mean of. Unlike NumPy it is fast. An array, quickly.",
    ]
    sources = DocstringSources(None, ["Return the mean of an array, quickly."], [*clean, *leaks])
    assert sorted(sources.texts("docstrings", {"docstrings": 10**6})) == sorted(clean)


def test_missing_folders_and_broken_lines_are_named(tmp_path):
    with pytest.raises(ValueError, match="got None"):
        ReviewSources(None)
    with pytest.raises(ValueError, match="eltec-fra"):
        ReviewSources(tmp_path).texts("novels", WORDS)
    (tmp_path / "reader-reviews-fr").mkdir()
    (tmp_path / "reader-reviews-fr" / "a.jsonl").write_text('{"reader_review": "très bon livre"}')
    with pytest.raises(ValueError, match="line 1"):
        _ = ReviewSources(tmp_path).rated


def test_fewer_features_keep_inner_products_and_so_the_answers():
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
    answers = [bag_of_words(train, test, kind, seed=0)[0] for kind in ("logistic", "bayes", "letters")]
    answers += [read(train, test, *columns, 0)[0] for read in (probe, with_words)]
    assert [np.mean(one == np.asarray(test.labels)) > 0.9 for one in answers] == [True] * 5


def test_one_text_of_a_class_is_enough_and_characters_see_stems():
    texts = Split(tuple(f"{TOPICS[i]} {i}" for i in (0, 0, 0, 3)), (0, 0, 0, 3))
    for kind in ("logistic", "bayes", "letters"):
        assert set(bag_of_words(texts, topics(9, 6), kind, seed=0)[0]) <= {0, 3}
    train = Split(("plotting", "connected", "plotted", "connecting") * 3, (0, 1, 0, 1) * 3)
    assert bag_of_words(train, Split(("replot", "disconnect")), "letters", 0)[0].tolist() == [0, 1]


def test_ratings_are_predicted_from_words_and_become_balanced_soft_labels(data_dir, reviews):
    predicted = StarRegression(ReviewSources(data_dir).rated)(reviews.train.texts)
    assert predicted.shape == (120, 1)
    assert np.mean((predicted[:, 0] > 0) == np.asarray(reviews.train.labels)) > 0.9
    config = TransformerConfig(vocab_size=11, d_model=6, n_heads=2, n_layers=1, d_ff=5, max_len=7)
    model = Classifier(config).eval()
    objective = StarsObjective([[7, 8], [9, 10, 7], [8]], [1.0, 5.0, 5.0], pad_id=0)
    shares = torch.tensor([1 / 6, 2 / 3, 2 / 3])
    log_probs = objective.logits(model, [0, 1, 2]).log_softmax(dim=1)
    expected = -(shares * log_probs[:, 1] + (1 - shares) * log_probs[:, 0]).mean()
    torch.testing.assert_close(objective.loss(model, [0, 1, 2]), expected)
    assert rankdata([1, 5, 5]).mean() == 2  # ties share a rank, so that the mean label is a half


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
    with pytest.raises(ValueError, match="vocab_size=4, got 5"):
        ppmi_vectors([[0, 1]], 4, 5)


TWO_FOLDS = dataclasses.replace(REVIEWS, n_folds=2)
ALL_KINDS = (
    *("majority", "tfidf-logistic", "tfidf+linear-stars", "scratch", "scratch/brief", "causal:novels"),
    *("masked:all", "counts:near/probe", "stars/tfidf", "masked:readers+stars/tfidf+stars"),
)


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_every_kind_of_variant_runs_and_an_interrupted_run_resumes(settings, reviews, data_dir, stop_after):
    def run():
        some = settings("transfer-books", data_dir=data_dir)
        return transfer_on_folds(some, reviews, variants=ALL_KINDS, label_counts=(20,), task=TWO_FOLDS)

    stop_after(7)
    with pytest.raises(ConnectionAbortedError):
        run()
    left = stop_after(2 * len(ALL_KINDS) - 7)
    rows = run().set_index("variant")
    assert left == [0] and set(rows.index) == set(ALL_KINDS) and set(rows["n"]) == {2}
    assert rows.loc["majority", "mean"] == pytest.approx(0.5, abs=0.02)
    assert (rows.loc[["tfidf-logistic", "tfidf+linear-stars"], "mean"] > 0.9).all()
    n_steps = {}
    for record in settings("transfer-books").store.data.values():
        assert record["accuracy"] == record["correct"] / record["n"]
        if "accuracy_by_epoch" in record:
            n_steps.setdefault(record["condition"], set()).add(record["accuracy_by_epoch"][-1]["step"])
    assert {2 * n for n in n_steps["scratch/brief"]} == n_steps["scratch"]


def test_pretraining_reads_no_tested_text(settings, reviews, data_dir):
    cells = _Cells(settings(data_dir=data_dir), reviews, TWO_FOLDS, (20,))
    stages = {}
    for fold in cells.folds:
        read = set(cells.encoders.sources.texts("around", WORDS)) | set(fold.train.texts)
        assert not read & set(fold.test.texts)
        for name in ("masked:novels", "masked:near", "counts:near"):
            folders = [folder for _, folder in cells.encoders.stages(variant(name, REVIEWS), fold)]
            stages.setdefault(name, set()).update(folders)
    # One for both folds; one more for each fold; one for each fold alone.
    n_stages = {name: len(folders) for name, folders in stages.items()}
    assert n_stages == {"masked:novels": 1, "masked:near": 3, "counts:near": 2}


def test_other_documents_are_other_cells(settings):
    documents = [
        f"{text}. Unlike NumPy it is fast. Number {i}." for i, text in enumerate(topics(120, 0).texts)
    ]
    labels = tuple(i % 4 for i in range(120))
    texts = tuple(map(without_giveaways, documents))
    corpus = Corpus("packages", Split(texts[:80], labels[:80]), Split(texts[80:], labels[80:]))
    origins = []
    for some in (documents + ["One more."], documents + ["Another."]):
        sources = functools.partial(DocstringSources, documents=some)
        task = dataclasses.replace(PACKAGES, sources=sources, n_texts=60, n_folds=2)
        cells = _Cells(settings(), corpus, task, (8,))
        assert sum(len(fold.test) for fold in cells.folds) == 60
        wanted = [variant(name, task) for name in ("majority", "counts:docstrings")]
        origins.append([cells.origin(one, 8, cells.folds[0]) for one in wanted])
    assert origins[0][0] == origins[1][0] and origins[0][1] != origins[1][1]


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_names_of_variants_have_one_meaning_each(task):
    assert len({variant(name, task) for name in task.variants}) == len(task.variants)
    assert task.recipe("laptop") == ("study", task.recipes["study"])
    for name in ("scratch/guess", "denoised:novels", "masked:poems", "majority/probe"):
        with pytest.raises(ValueError, match=name):
            variant(name, task)
    with pytest.raises(ValueError, match="smoke, study, got 30"):
        task.recipe(30.0)
