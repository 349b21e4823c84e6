"""What results/ holds of real reviews and of docstrings by package keeps what the course says of it."""

import pytest

from tinytx.teaching.results import read_results
from tinytx.training.intervals import paired_interval
from tinytx.training.transfer_experiment.kept import kept_rows
from tinytx.training.transfer_experiment.tasks import PACKAGES, REVIEWS

PACKAGES_KEPT = f"transfer-{PACKAGES.corpus}"


@pytest.fixture(scope="module")
def accuracies():
    """By condition and number of labels, then by seed."""
    found = {}
    for record in read_results("transfer-cls-books").data.values():
        key = record["condition"], record["n_labels"]
        found.setdefault(key, {})[record["seed"]] = record["correct"] / record["n"]
    return found


def test_stars_of_other_readers_pay_beside_words_up_to_400_labels(accuracies):
    for n_labels in (50, 100, 200, 400):
        own, bare = accuracies["tfidf+linear-stars", n_labels], accuracies["tfidf-logistic", n_labels]
        assert set(own) == set(bare) and len(own) % REVIEWS.n_folds == 0
        assert paired_interval(own[seed] - bare[seed] for seed in own).low > 0


def test_every_review_is_tested_once_in_a_repetition():
    tested = {}
    for record in read_results("transfer-cls-books").data.values():
        key = record["condition"], record["n_labels"], record["repeat"]
        tested.setdefault(key, []).append(record["n"])
    whole = [sum(sizes) for sizes in tested.values() if len(sizes) == REVIEWS.n_folds]
    assert whole and len(set(whole)) == 1


def test_counts_of_plain_docstrings_pay_beside_words_and_letters_with_few_labels():
    rows = {(row.condition, row.n_labels): row for row in kept_rows(read_results(PACKAGES_KEPT).data)}
    for n_labels in (50, 100, 200):
        for way, control in (("tfidf", "tfidf-logistic"), ("letters", "tfidf-letters")):
            assert rows[f"counts:docstrings/{way}", n_labels].gains[control].low > 0
        assert rows["tfidf-letters", n_labels].gains["tfidf-logistic"].low > 0
