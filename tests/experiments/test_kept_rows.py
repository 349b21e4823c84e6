"""The table from kept records alone is the table of the experiment."""

from dataclasses import asdict

import pytest

from experiments.transfer import kept_rows
from experiments.transfer_conditions import REVIEWS, condition
from tinytx.training.intervals import paired_interval
from tinytx_course.results import read_results


def cells(condition, accuracies, *, n_folds=3, n_labels=50, budget="study", texts="a"):
    """Records of a condition, a fold and repetition an accuracy."""
    found = {}
    for seed, accuracy in enumerate(accuracies):
        place = {"repeat": seed // n_folds, "fold": seed % n_folds}
        key = f"books/{budget}/{condition}/labels {n_labels}/repeat {place['repeat']}/fold {place['fold']}"
        found[key] = {"condition": condition, "n_labels": n_labels, "seed": seed, "accuracy": accuracy}
        found[key] |= {**place, "origin": {"texts": texts, "n_folds": n_folds}}
    return found


def test_gains_are_paired_by_fold_in_whatever_order_records_stand():
    ours, theirs = [0.6, 0.7, 0.9], [0.5, 0.65, 0.7]
    records = cells("stars", ours) | cells("scratch", theirs)
    shuffled = dict(sorted(records.items(), key=lambda item: hash(item[0])))
    rows = {row.condition: row for row in kept_rows(shuffled)}
    gain = paired_interval([a - b for a, b in zip(ours, theirs, strict=True)])
    assert rows["stars"].accuracies == tuple(ours) and rows["stars"].gains == {"scratch": gain}
    assert rows["scratch"].gains == {}


def test_rows_with_a_fold_missing_other_budgets_and_other_texts_are_left_out():
    records = cells("scratch", [0.5, 0.6, 0.7]) | cells("stars", [0.5, 0.6])
    records |= cells("majority", [0.5, 0.5, 0.5], budget="smoke")
    records |= cells("tfidf-logistic", [0.5, 0.5, 0.5], texts="b")
    assert [row.condition for row in kept_rows(records)] == ["scratch"]
    assert [row.condition for row in kept_rows(records, "smoke")] == ["majority"]
    assert kept_rows({}) == [] and kept_rows(records, "gpu") == []


def test_only_repetitions_that_all_rows_have_are_compared():
    records = cells("scratch", [0.5, 0.6, 0.7, 0.8, 0.9, 0.9]) | cells("stars", [0.6, 0.7, 0.9, 0.1])
    rows = {row.condition: row for row in kept_rows(records)}
    assert rows["scratch"].accuracies == (0.5, 0.6, 0.7) and rows["stars"].accuracies == (0.6, 0.7, 0.9)
    twice = cells("scratch", [0.5] * 6) | cells("stars", [0.6] * 6)
    assert [len(row.seeds) for row in kept_rows(twice)] == [6, 6]


def test_cells_of_another_fine_tuning_or_model_than_the_recipes_are_left_out():
    """Kept before a recipe changed, they would stand beside others as if they could be compared."""
    recipe = REVIEWS.recipes["study"]

    def of_reviews(name, **changes):
        origin = condition(name, REVIEWS).origin(recipe) | changes
        made = {f"cls-{key}": one for key, one in cells(name, [0.5, 0.6, 0.7]).items()}
        return {key: one | {"origin": one["origin"] | origin} for key, one in made.items()}

    now = of_reviews("scratch") | of_reviews("masked:near") | of_reviews("majority")
    assert [row.condition for row in kept_rows(now)] == ["scratch", "masked:near", "majority"]
    usual = asdict(recipe.tuning)
    for changes in ({"tuning": usual | {"lr": usual["lr"] / 2}}, {"tuning": None}, {"model": "another"}):
        assert [row.condition for row in kept_rows(now | of_reviews("masked:near", **changes))] == [
            "scratch",
            "majority",
        ]
    assert [row.condition for row in kept_rows(of_reviews("masked:near/brief", tuning=usual))] == []
    given_up = {f"cls-{key}": one for key, one in cells("masked:letters of kings", [0.5, 0.6, 0.7]).items()}
    assert kept_rows(now | given_up) == kept_rows(now)


def test_the_kept_results_hold_whole_rows():
    rows = kept_rows(read_results("transfer-cls-books").data)
    assert {("scratch", 200), ("tfidf-logistic", 200)} <= {(row.condition, row.n_labels) for row in rows}
    assert len({row.seeds for row in rows}) == 1
    for row in rows:
        assert all(0.3 < accuracy < 1 for accuracy in row.accuracies)
        if row.condition == "majority":
            assert sum(row.accuracies) / len(row.accuracies) == pytest.approx(0.5, abs=0.02)
