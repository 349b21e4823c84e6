"""Generation beside others: what is compared writes the same, and every contestant is timed."""

import json

import pytest
import torch

from benchmarks import generation
from benchmarks.ceiling import Ceiling
from benchmarks.report import OURS, line_of
from benchmarks.settings import BenchSettings

CEILING = Ceiling({"fp32": 1e11, "bf16": 2e11}, {"fp32": 64, "bf16": 64}, 1e10)


@pytest.fixture(scope="module")
def records():
    settings = BenchSettings(n_rounds=2, tiny=True, progress=False, report=lambda line: None)
    return dict(generation.measure(settings, CEILING))


def test_ours_and_theirs_write_the_same_ids(records):
    compared = [record for record in records.values() if "contestants" in record]
    assert len(compared) == 3
    for record in compared:
        assert record["same_ids"] == 1.0 and record["left_out"] == {}


def test_ratios_are_those_of_the_times_that_are_kept(records):
    for record in records.values():
        for name, ratio in record.get("fastest", {}).items():
            theirs = record["contestants"][ratio["name"]]["seconds_by_round"]
            ours = record["contestants"][OURS]["seconds_by_round"]
            rounds = [slow / fast for slow, fast in zip(theirs, ours, strict=True)]
            assert ratio["median"] == pytest.approx(sum(rounds) / 2), name


def test_greedy_generation_is_compared_with_theirs_and_with_reading_anew(records):
    groups = {key: set(record["fastest"]) for key, record in records.items() if "fastest" in record}
    both = {"equal precision", "no cache"}
    assert [groups[key] for key in groups if key.startswith("greedy")] == [both] * 2


def test_reading_anew_is_timed_at_lengths_evenly_spread():
    sizes, lengths = generation.TINY, []
    config = generation.TransformerConfig(**sizes.of_model(50), **generation.GPT2)
    model = generation.LanguageModel(config).eval()
    model.body.register_forward_pre_hook(lambda module, given: lengths.append(given[0].shape[1]))
    generation._read_anew(model, torch.zeros(3, sizes.prompt, dtype=torch.long), sizes)
    every = range(sizes.prompt, sizes.prompt + sizes.new)
    assert len(lengths) == generation.SAMPLED and set(lengths) <= set(every)
    assert sum(lengths) / len(lengths) == pytest.approx(sum(every) / len(every), abs=0.6)


def test_records_are_json_and_have_a_line(records):
    json.dumps(records)
    for key, record in records.items():
        assert line_of(key, record).startswith(key)
