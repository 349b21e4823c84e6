"""What results/ holds of real reviews and of docstrings by package keeps what the course says of it."""

import pytest

from experiments.transfer import kept_rows
from experiments.transfer_conditions import PACKAGES, REVIEWS
from tinytx.training.intervals import paired_interval
from tinytx_course.results import read_results


@pytest.fixture(scope="module")
def accuracies():
    """By condition and number of labels, then by seed."""
    found = {}
    for record in read_results("transfer-cls-books").data.values():
        key = record["condition"], record["n_labels"]
        found.setdefault(key, {})[record["seed"]] = record["correct"] / record["n"]
    return found


@pytest.fixture(scope="module")
def packages():
    """Rows of docstrings by package, by condition and number of labels."""
    rows = kept_rows(read_results(f"transfer-{PACKAGES.corpus}").data)
    return {(row.condition, row.n_labels): row for row in rows}


def gain(accuracies, learned_first, control, n_labels):
    """The paired interval, over folds that both have whole."""
    own, bare = accuracies[learned_first, n_labels], accuracies[control, n_labels]
    assert set(own) == set(bare) and len(own) % REVIEWS.n_folds == 0
    return paired_interval(own[seed] - bare[seed] for seed in own)


@pytest.mark.parametrize(
    ("learned_first", "control"), [("tfidf+linear-stars", "tfidf-logistic"), ("masked:near", "scratch")]
)
def test_learning_the_stars_and_reading_near_text_pay_with_50_to_400_labels(
    accuracies, learned_first, control
):
    for n_labels in (50, 100, 200, 400):
        assert gain(accuracies, learned_first, control, n_labels).low > 0


@pytest.mark.parametrize(("objective", "control"), [("masked", "scratch"), ("causal", "scratch-causal")])
def test_near_text_pays_and_far_text_does_not_for_either_objective(accuracies, objective, control):
    gains = {text: gain(accuracies, f"{objective}:{text}", control, 200) for text in REVIEWS.texts}
    assert all(gains[text].low > 0 for text in ("readers", "near"))
    assert all(gains[text].low < 0 for text in ("novels", "tatoeba"))


def test_every_review_is_tested_once_in_a_repetition():
    tested = {}
    for record in read_results("transfer-cls-books").data.values():
        key = record["condition"], record["n_labels"], record["repeat"]
        tested.setdefault(key, []).append(record["n"])
    whole = [sum(sizes) for sizes in tested.values() if len(sizes) == REVIEWS.n_folds]
    assert whole and len(set(whole)) == 1


def test_counts_of_plain_docstrings_pay_beside_words_and_letters_with_few_labels(packages):
    for n_labels in (50, 100, 200):
        for way, control in (("tfidf", "tfidf-logistic"), ("letters", "tfidf-letters")):
            assert packages[f"counts:docstrings/{way}", n_labels].gains[control].low > 0
        assert packages["tfidf-letters", n_labels].gains["tfidf-logistic"].low > 0


def test_a_body_that_read_docstrings_is_ahead_of_words_and_letters_with_200_labels(packages):
    for name in ("masked:docstrings", "masked:docstrings/letters", "counts:docstrings/letters"):
        gains = packages[name, 200].gains
        assert gains["scratch"].low > 0 and gains["tfidf-letters"].low > 0
