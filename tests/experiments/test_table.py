"""The whole experiment on a small copy of the data: every condition, interrupted, gone on with, listed."""

import numpy as np
import pytest

from experiments.transfer import TransferExperiment, listing
from experiments.transfer_conditions import REVIEWS, TASKS, condition
from experiments.transfer_data import transfer_recipe
from tests.training.interrupted import StopsAfter
from tinytx.training.intervals import paired_interval
from tinytx_course.results import Results

BAGS = ("majority", "tfidf-logistic", "tfidf-bayes", "tfidf-letters", "tfidf+linear-stars")


def experiment(reviews, data_dir, tmp_path, store=None, **settings):
    settings = {"conditions": BAGS, "label_counts": (20,), "n_folds": 2} | settings
    return TransferExperiment(
        reviews,
        store=store or Results("transfer-books", tmp_path / "results"),
        data_dir=data_dir,
        budget="smoke",
        work_dir=tmp_path / "build",
        device="cpu",
        task=REVIEWS,
        **{"report": lambda line: None} | settings,
    )


def test_bags_of_words_learn_what_words_tell_and_majority_does_not(reviews, data_dir, tmp_path):
    rows = {row.condition: row for row in experiment(reviews, data_dir, tmp_path).run()}
    assert np.mean(rows["majority"].accuracies) == pytest.approx(0.5, abs=0.02)
    assert all(np.mean(rows[name].accuracies) > 0.9 for name in BAGS[1:])
    differences = np.subtract(rows["majority"].accuracies, rows["tfidf-logistic"].accuracies)
    assert rows["majority"].gains["tfidf-logistic"] == paired_interval(differences)
    assert set(rows["majority"].gains) == {"tfidf-logistic", "tfidf-letters"}


def test_an_interrupted_run_goes_on_where_it_stopped(reviews, data_dir, tmp_path):
    whole = experiment(reviews, data_dir, tmp_path / "whole").run()
    store = Results("transfer-books", tmp_path / "results")
    with pytest.raises(ConnectionAbortedError):
        experiment(reviews, data_dir, tmp_path, StopsAfter(store, 3)).run()
    left = experiment(reviews, data_dir, tmp_path, StopsAfter(store, 7))
    assert len(left.missing()) == 7 and len(left.rows()) == 1
    assert left.run() == whole


def test_every_condition_runs_and_says_what_it_learned(reviews, data_dir, tmp_path):
    names = ("scratch", "scratch-causal", "causal:novels", "masked:all", "counts:near/probe", "stars/tfidf")
    names += ("masked:readers+stars/tfidf+stars",)
    made = experiment(reviews, data_dir, tmp_path, conditions=names)
    # Adapted or counted for each of two folds, the rest once; nothing for new weights.
    assert len(listing(made).unfinished) == 1 + (1 + 2) + 2 + 1 + 2
    rows = {row.condition: row for row in made.run()}
    assert set(rows) == set(names) and listing(made).unfinished == ()
    records = Results("transfer-books", tmp_path / "results").data
    for record in records.values():
        assert record["accuracy"] == record["correct"] / record["n"]
        if record["condition"] in ("scratch", "masked:all"):
            epochs = [look["epoch"] for look in record["accuracy_by_epoch"]]
            assert len(epochs) == 2 and epochs == sorted(epochs)
    assert rows["masked:all"].gains["scratch"].n == 2


def test_a_brief_fine_tuning_takes_fewer_and_smaller_steps(reviews, data_dir, tmp_path):
    experiment(reviews, data_dir, tmp_path, conditions=("scratch", "scratch/brief")).run()
    found = {}
    for record in Results("transfer-books", tmp_path / "results").data.values():
        n_steps = record["accuracy_by_epoch"][-1]["step"]
        found.setdefault(record["condition"], set()).add((n_steps, record["origin"]["tuning"]["lr"]))
    ((usual, rate),), ((brief, small),) = found["scratch"], found["scratch/brief"]
    assert 2 * brief == usual and small == pytest.approx(0.3 * rate)


def test_pretraining_reads_no_tested_review(reviews, data_dir, tmp_path):
    made = experiment(reviews, data_dir, tmp_path, conditions=("masked:all", "counts:near"))
    for cell in made.cells:
        for plan, _ in made._bodies.stages(cell.condition, cell.fold):
            read = set(made._bodies._texts(plan, cell.fold))
            assert not read & set(cell.fold.tested.texts)


def test_cells_are_measured_anew_when_the_texts_change(reviews, data_dir, tmp_path):
    experiment(reviews, data_dir, tmp_path, conditions=("majority",)).run()
    from tinytx.text.corpora import Corpus, Split

    valid = Split((*reviews.valid.texts, "un autre texte"), (*reviews.valid.labels, 1))
    changed = Corpus(reviews.name, reviews.train, valid)
    assert len(experiment(changed, data_dir, tmp_path, conditions=("majority",)).missing()) == 2


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_seeds": 3}, "multiple of folds, as every text is tested, got 3 and 2"),
        ({"label_counts": (20, 76)}, r"labels must be numbers from 2 to 75, got \[20, 76\]"),
        ({"conditions": ("masked:poems",)}, "text must be one of novels"),
        (
            {"conditions": ("scratch/guess",)},
            "read by one of tuned, brief, probe, tfidf, letters, tfidf.stars, got",
        ),
        ({"conditions": ("denoised:novels",)}, "condition must be majority"),
    ],
)
def test_impossible_requests_are_refused_before_anything_is_written(
    reviews, data_dir, tmp_path, settings, words
):
    with pytest.raises(ValueError, match=words):
        experiment(reviews, data_dir, tmp_path, **settings)
    assert not (tmp_path / "build").exists() and not (tmp_path / "results").exists()


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_every_default_condition_has_a_meaning(task):
    assert len({condition(name, task) for name in task.conditions}) == len(task.conditions)


def test_a_condition_names_what_its_body_reads():
    wanted = condition("masked:around+stars/probe", REVIEWS)
    assert (wanted.way, wanted.stars, wanted.causal, wanted.needs_fold) == ("probe", True, False, False)
    assert condition("causal:novels", REVIEWS).causal and condition("counts:near", REVIEWS).needs_fold


def test_the_budget_laptop_is_taken_as_study_and_that_is_said():
    said = []
    assert transfer_recipe("laptop", REVIEWS.recipes, said.append) is REVIEWS.recipes["study"]
    assert said == ["the transfer experiment has no row for the budget laptop: taken as study"]
    with pytest.raises(ValueError, match="budget by name, one of smoke, study, gpu, got 30"):
        transfer_recipe(30, REVIEWS.recipes, said.append)
