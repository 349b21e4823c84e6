"""Lesson 13: work and bytes as the cost table has them, profiles, stored benchmarks."""

import pytest
import torch
from torch import nn

from tinytx.config import TransformerConfig
from tinytx_course.counting.costs import cost_table
from tinytx_course.labs.lesson_13 import on_paper, speed_line
from tinytx_course.labs.profiling import KINDS, PRODUCTS, REST, kind_of, profile
from tinytx_course.labs.roofline import layers_of
from tinytx_course.results import read_results

CONFIG = TransformerConfig(vocab_size=11, d_model=6, n_heads=3, n_layers=2, d_ff=5, max_len=7)


def test_layers_cost_what_the_cost_table_says():
    work = layers_of(CONFIG, batch_size=2, n_queries=7, n_keys=7)
    block = 4 * work["projection"].flops + work["attention"].flops
    block += work["feed-forward, up"].flops + work["feed-forward, down"].flops
    total = CONFIG.n_layers * block + work["output layer"].flops
    assert total == cost_table(CONFIG, batch_size=2, seq_len=7).flops_forward


def test_bytes_are_those_of_what_goes_in_and_comes_out():
    work = layers_of(CONFIG, batch_size=2, n_queries=1, n_keys=7)
    for name in ("projection", "feed-forward, up", "output layer"):
        task = work[name].task
        numbers = sum(each.numel() for each in task.args) + task().numel()
        assert work[name].n_bytes == 4 * numbers
    query, key, value = work["attention"].task.args
    assert work["attention"].n_bytes == 4 * (2 * query.numel() + key.numel() + value.numel())


def test_every_layer_runs_and_sizes_are_checked():
    work = layers_of(CONFIG, batch_size=1, n_queries=3, n_keys=3)
    assert all(torch.isfinite(each.task()).all() for each in work.values())
    with pytest.raises(ValueError, match="n_keys must be at least 1, got 0"):
        layers_of(CONFIG, batch_size=1, n_queries=1, n_keys=0)


def test_a_step_has_its_products_forward_and_backward_and_its_update():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 5), nn.LayerNorm(5), nn.Linear(5, 2))
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    x = torch.randn(7, 3)

    def step():
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    found = profile(step)
    assert found.calls["addmm"] == 2
    assert found.calls["mm"] == 3  # two gradients of weights, and one of an input: x needs none
    assert found.calls["native_layer_norm_backward"] == 1
    assert any(kind_of(name) == "optimizer" for name in found.calls)
    assert set(found.by_kind()) == {*KINDS, REST}
    assert sum(found.by_kind().values()) == pytest.approx(found.total)
    assert all(seconds >= 0 for seconds in found.seconds.values())


def test_paper_has_the_kinds_of_a_profile_and_the_operations_of_the_cost_table():
    found = on_paper(CONFIG, batch_size=2, seq_len=7)
    assert set(found) <= {*KINDS, REST}
    counted = found[PRODUCTS] + found["fused attention"]
    assert counted == cost_table(CONFIG, batch_size=2, seq_len=7).flops_training


def test_stored_speeds_have_one_line_each():
    peer = {"name": "peer", "median": 1.5, "low": 1.25, "high": 2.0}
    record = {"fastest": {"as it comes": peer, "peer": peer}, "left_out": {"other": "failed"}}
    text = "1.50 [1.25, 2.00] times as fast as peer"
    assert speed_line("a step", record) == f"a step: {text} (as it comes); {text}; left out: other"
    records = read_results("bench-steps").data
    assert all(speed_line(key, each) for key, each in records.items() if each.get("fastest"))
