"""What results/ holds of the real reviews keeps what the course says of it."""

import pytest

from tinytx.teaching.results import read_results
from tinytx.training.intervals import paired_interval
from tinytx.training.transfer_experiment.tasks import REVIEWS


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
