"""Stored results belong to the texts and recipes of today: where one changed, its command is due again."""

import ast
from itertools import product

import pytest

from experiments.predictions import THREADS, calls_of, table
from tinytx_course.lessons import written_lessons
from tinytx_course.progress.predictions import OPEN
from tinytx_course.results import read_results
from tinytx_run.corpora import load_corpus
from tinytx_run.recipes import plan, plan_finetuning
from tinytx_run.training import fingerprint


@pytest.mark.parametrize("name", ["ladder", "since-2017", "transfer"])
def test_results_on_the_world_were_measured_with_its_texts_and_recipes_of_today(name):
    again = f"measured otherwise than today: run `python -m experiments {name}` again"
    texts = fingerprint(load_corpus("world"))
    for record in read_results(name).data.values():
        assert record["origin"]["texts"] == texts, again
        if name == "transfer":
            budget = record["origin"]["budget"]
            assert record["origin"]["pretraining"] == plan("world", "causal", budget).to_dict(), again
            assert record["origin"]["finetuning"] == vars(plan_finetuning("world", budget)), again


def test_predictions_of_today_were_resolved_among_their_options_with_ten_seeds_and_one_thread_and_two():
    stored = read_results("predictions").data
    asking = {name for name in (f"{one.number:02d}" for one in written_lessons()) if calls_of(name)}
    assert stored.keys() == {
        f"{name}/seed {seed}/threads {n}" for name, seed, n in product(asking, range(10), THREADS)
    }
    for record in stored.values():
        calls = calls_of(record["lesson"])
        again = f"run `python -m experiments predictions --lessons {record['lesson']}` again"
        assert record["answers"].keys() == calls.keys(), again
        for number, call in calls.items():
            options = call["course.predict"].node.value.args[2]
            if isinstance(options, ast.List):
                assert record["answers"][number] in {OPEN, *ast.literal_eval(options)}, again
        assert not record["problem"]


def test_no_prediction_flips_and_at_most_one_in_ten_is_open():
    found = table(read_results("predictions").data)
    assert (found["same"] + found["open"] == 1).all()
    assert found["open"].mean() <= 0.1 and (found["answer"] != OPEN).all()
