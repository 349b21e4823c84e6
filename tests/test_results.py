"""The figures kept in results/ belong to the code beside them, and keep what the course promises."""

import pytest

from experiments.ladder import table
from tinytx.text.corpora import load_corpus
from tinytx.training.intervals import paired_interval
from tinytx.training.recipes import plan, plan_finetuning
from tinytx.training.tasks import fingerprint
from tinytx_course.results import read_results

AGAIN = "measured with other texts or settings than those of today: run {} again"


@pytest.fixture(scope="module")
def texts():
    return fingerprint(load_corpus("world"))


def records_of(name, texts, command):
    records = read_results(name).data
    assert all(record["origin"]["texts"] == texts for record in records.values()), AGAIN.format(command)
    return records


def test_the_transformer_covers_most_of_the_way_from_counting_to_the_floor(texts):
    records = records_of("ladder", texts, "python -m experiments ladder")
    for key, record in records.items():
        if key.startswith("world/laptop"):
            stored, seed = record["origin"]["recipe"], int(key.split()[-1])
            assert stored == plan("world", "causal", "laptop", seed=seed).to_dict(), AGAIN.format(
                "python -m experiments ladder"
            )
    rows = {row.model: row for row in table(records).itertuples()}
    counting = [rows[f"{order}-gram"] for order in range(1, 7)]
    transformer = rows["transformer, laptop"]
    assert all(row.mean > transformer.mean for row in counting)
    floor = next(iter(records.values()))["floor"]
    assert all(row.mean > floor for row in rows.values())
    assert transformer.n >= 3 and transformer.share >= 0.8


def test_pretraining_pays_with_few_labels(texts):
    command = "python -m experiments transfer"
    records = records_of("transfer", texts, command)
    found = {"pretrained": {}, "scratch": {}}
    for record in records.values():
        recipe = record["origin"]["finetuning"]
        assert recipe == vars(plan_finetuning("world", recipe["budget"])), AGAIN.format(command)
        if record["n_labels"] == 50 and record["start"] in found:
            found[record["start"]][record["seed"]] = record["accuracy"]
    seeds = sorted(found["pretrained"])
    assert len(seeds) >= 5 and seeds == sorted(found["scratch"])
    gain = paired_interval([found["pretrained"][seed] - found["scratch"][seed] for seed in seeds])
    assert gain.mean >= 0.08 and gain.low > 0
