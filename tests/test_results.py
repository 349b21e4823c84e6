"""Stored results belong to the texts and recipes of today: where one changed, its command is due again."""

import ast

import pytest

from experiments.predictions import calls_of
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


def test_predictions_were_resolved_among_the_options_of_today():
    stored = read_results("predictions").data
    for record in stored.values():
        asked = {
            number: ast.literal_eval(calls["course.predict"].node.value.args[2])
            for number, calls in calls_of(record["lesson"]).items()
            if isinstance(calls["course.predict"].node.value.args[2], ast.List)
        }
        assert {number: record["options"][number] for number in asked} == asked, (
            f"run `python -m experiments predictions --lessons {record['lesson']}` again"
        )
        assert not record["problem"]
