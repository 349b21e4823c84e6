"""Generation next to `transformers`: the same tokens, every candidate timed, ratios of stored times."""

import json

import pytest
import torch

from benchmarks import generation
from benchmarks.report import OURS
from benchmarks.settings import BenchSettings
from tinytx.config import TransformerConfig
from tinytx.transformer import LanguageModel


def test_both_generate_the_same_ids_and_ratios_are_those_of_the_stored_times():
    records = dict(generation.measure(BenchSettings(n_rounds=2, tiny=True)))
    json.dumps(records)
    assert len(records) == 5
    for key, record in records.items():
        assert record["same_ids"] == 1.0 and record["left_out"] == {}
        others = {"no cache", "limit"} if key.startswith("greedy") else set()
        assert set(record["fastest"]) == {"equal precision"} | others
        for ratio in record["fastest"].values():
            theirs = record["contestants"][ratio["name"]]["seconds_by_round"]
            ours = record["contestants"][OURS]["seconds_by_round"]
            rounds = [slow / fast for slow, fast in zip(theirs, ours, strict=True)]
            assert ratio["median"] == pytest.approx(sum(rounds) / 2)


def test_generation_without_cache_is_timed_at_lengths_evenly_spread():
    config = TransformerConfig(**generation.TINY.of_model(50), **generation.GPT2)
    model, lengths = LanguageModel(config).eval(), []
    model.body.register_forward_pre_hook(lambda module, given: lengths.append(given[0].shape[1]))
    generation._read_anew(model, torch.zeros(3, 1, dtype=torch.long), 7)
    assert len(lengths) == generation.SAMPLED and min(lengths) >= 1 and max(lengths) < 1 + 7
    assert sum(lengths) / len(lengths) == pytest.approx(sum(range(1, 8)) / 7, abs=0.6)


def test_the_limit_multiplies_a_row_with_every_matrix_once_for_each_token():
    config = TransformerConfig(**generation.TINY.of_model(50), **generation.GPT2)
    model, rows, seen = LanguageModel(config), 3, []
    for module in model.modules():
        if isinstance(module, torch.nn.Linear):
            module.register_forward_hook(lambda module, given, y: seen.append(tuple(y.shape)))
    generation._products_alone(model, rows, 5)
    d, n = config.d_model, config.n_layers
    widths = [config.vocab_size, *[*[d] * 5, config.d_ff] * n]  # q, k, v, out, up, down
    assert sorted(seen) == sorted(5 * [(rows, width) for width in widths])
