"""Operations and bytes of layers agree with the cost table and with counting; the roof is the lower one."""

import pytest
import torch

from tinytx.model.config import TransformerConfig
from tinytx.model.costs import cost_table
from tinytx_course.labs.roofline import Roof, layers_of, measure_roofline

CONFIG = TransformerConfig(vocab_size=11, d_model=6, n_heads=3, n_layers=2, d_ff=5, max_len=7)


def test_layers_cost_what_the_cost_table_says():
    work = layers_of(CONFIG, batch_size=2, n_queries=7, n_keys=7)
    block = 4 * work["map in attention"].flops + work["attention"].flops
    block += work["feed-forward, up"].flops + work["feed-forward, down"].flops
    total = CONFIG.n_layers * block + work["output layer"].flops
    assert total == cost_table(CONFIG, batch_size=2, seq_len=7).flops_forward


def test_bytes_are_those_of_what_goes_in_and_comes_out():
    work = layers_of(CONFIG, batch_size=2, n_queries=1, n_keys=7)
    for name in ("map in attention", "feed-forward, up", "output layer"):
        task = work[name].task
        numbers = sum(each.numel() for each in task.args) + task().numel()
        assert work[name].n_bytes == 4 * numbers
    query, key, value = work["attention"].task.args
    assert work["attention"].n_bytes == 4 * (2 * query.numel() + key.numel() + value.numel())


def test_one_token_moves_a_weight_for_two_operations():
    config = CONFIG.replace(d_model=300, d_ff=500)
    intensity = layers_of(config, batch_size=1, n_queries=1, n_keys=1)["feed-forward, up"].intensity
    assert 0.49 < intensity < 0.5  # two operations for four bytes, and a few bytes more


def test_the_roof_is_the_lower_of_slope_and_top():
    roof = Roof(flops=100.0, copied=20.0, cached=50.0)
    assert roof.ridge == 5.0
    assert [roof.attainable(x) for x in (1.0, 5.0, 10.0)] == [20.0, 100.0, 100.0]


def test_all_layers_are_measured():
    work = layers_of(CONFIG, batch_size=1, n_queries=3, n_keys=3)
    roof, points = measure_roofline(work, n_rounds=1, tiny=True)
    assert min(roof.flops, roof.copied, roof.cached) > 0
    assert list(points) == list(work)
    for name, point in points.items():
        assert point.intensity == work[name].intensity
        assert point.rate == pytest.approx(work[name].flops / point.seconds)


def test_layers_are_on_the_device_asked_for_and_compute():
    device = torch.device("cpu")
    for work in layers_of(CONFIG, batch_size=2, n_queries=3, n_keys=5, device=device).values():
        assert torch.isfinite(work.task()).all()


def test_sizes_are_checked():
    with pytest.raises(ValueError, match="n_keys must be at least 1, got 0"):
        layers_of(CONFIG, batch_size=1, n_queries=1, n_keys=0)
