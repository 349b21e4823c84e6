"""Generation next to `transformers`: the same tokens, every candidate timed, ratios of stored times."""

import json

import pytest
import torch

from benchmarks import generation
from benchmarks.report import OURS, line_of
from benchmarks.settings import BenchSettings


@pytest.fixture(scope="module")
def records():
    settings = BenchSettings(n_rounds=2, tiny=True, progress=False, report=lambda line: None)
    return dict(generation.measure(settings, None))


def test_both_generate_the_same_ids_and_ratios_are_those_of_the_stored_times(records):
    json.dumps(records)
    compared = {key: record for key, record in records.items() if "contestants" in record}
    assert len(compared) == 3
    for key, record in compared.items():
        assert record["same_ids"] == 1.0 and record["left_out"] == {} and key in line_of(key, record)
        groups = {"equal precision", "no cache"} if key.startswith("greedy") else {"equal precision"}
        assert set(record["fastest"]) == groups
        for ratio in record["fastest"].values():
            theirs = record["contestants"][ratio["name"]]["seconds_by_round"]
            ours = record["contestants"][OURS]["seconds_by_round"]
            rounds = [slow / fast for slow, fast in zip(theirs, ours, strict=True)]
            assert ratio["median"] == pytest.approx(sum(rounds) / 2)


def test_generation_without_cache_is_timed_at_lengths_evenly_spread():
    sizes, lengths = generation.TINY, []
    config = generation.TransformerConfig(**sizes.of_model(50), **generation.GPT2)
    model = generation.LanguageModel(config).eval()
    model.body.register_forward_pre_hook(lambda module, given: lengths.append(given[0].shape[1]))
    generation._read_anew(model, torch.zeros(3, sizes.prompt, dtype=torch.long), sizes)
    every = range(sizes.prompt, sizes.prompt + sizes.new)
    assert len(lengths) == generation.SAMPLED and set(lengths) <= set(every)
    assert sum(lengths) / len(lengths) == pytest.approx(sum(every) / len(every), abs=0.6)
