"""Lesson 12: operations as torch counts them, path lengths, times of layers."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from tinytx.attention import MultiHeadAttention, record_attention
from tinytx_course.labs.layers import count_flops
from tinytx_course.labs.lesson_12 import (
    LAYERS,
    ConvolutionLayer,
    GRULayer,
    LayerTimes,
    RecurrentLayer,
    layer_flops,
    path_length,
    time_layers,
)

KINDS = ["attention", "recurrent", "gru", "convolution"]


def build(kind, d_model, kernel_size=3):
    if kind == "attention":
        return MultiHeadAttention(d_model=d_model, n_heads=1)
    if kind == "convolution":
        return ConvolutionLayer(d_model, kernel_size)
    return {"recurrent": RecurrentLayer, "gru": GRULayer}[kind](d_model)


def run(layer, x):
    """A forward pass by operations that torch can count: it does not see fused attention on a CPU."""
    with record_attention(layer):  # without effect on other layers
        return layer(x)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=6)
@given(st.integers(1, 3), st.integers(1, 11), st.sampled_from([1, 5, 6]), st.sampled_from([1, 2, 3, 7]))
def test_operations_are_those_that_torch_counts(kind, batch_size, seq_len, d_model, kernel_size):
    layer = build(kind, d_model, kernel_size)
    sizes = {"d_model": d_model, "seq_len": seq_len, "batch_size": batch_size, "kernel_size": kernel_size}
    x = torch.randn(batch_size, seq_len, d_model)
    assert layer_flops(kind, **sizes).total == count_flops(lambda: run(layer, x))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kernel_size", [3, 4, 5])
def test_path_lengths_are_those_of_the_paper(kind, kernel_size):
    layer = build(kind, 4, kernel_size)
    for n in (2, 9, 12):
        expected = {"attention": 1, "convolution": -(-(n - 1) // (kernel_size - 1))}.get(kind, n)
        assert path_length(layer, n, 4) == expected
    assert all(p.dtype == torch.float32 and p.grad is None for p in layer.parameters())


@pytest.mark.parametrize(
    ("changes", "got"),
    [({"kind": "lstm"}, "got 'lstm'"), ({"kernel_size": 0}, "got k=0"), ({"seq_len": 0}, "got T=0")],
)
def test_unknown_kinds_and_sizes_below_one_raise(changes, got):
    with pytest.raises(ValueError, match=got):
        layer_flops(**{"kind": "gru", "d_model": 4, "seq_len": 5, **changes})


@pytest.mark.parametrize("layer", [nn.Linear(4, 4), ConvolutionLayer(4, 1)])
def test_a_layer_that_never_looks_back_has_no_path(layer):
    with pytest.raises(ValueError, match="within 5 rounds"):
        path_length(layer, 5, 4)


def test_every_layer_is_timed_at_every_size():
    measured = time_layers([(2, 4), (6, 4)], n_rounds=2)
    assert set(measured.times) == set(LAYERS)
    for name in LAYERS:
        assert [len(times.seconds) for times in measured.times[name]] == [2, 2]
        assert min(times.median for times in measured.times[name]) > 0
        middle, low, high = measured.milliseconds(name)
        assert all(a <= b <= c for a, b, c in zip(low, middle, high, strict=True))


def test_one_of_length_and_width_varies():
    assert LayerTimes(((4, 8), (6, 8)), {}).scale == (4, 6)
    assert LayerTimes(((4, 8), (4, 16)), {}).scale == (8, 16)
    for sizes in ([(4, 8), (6, 16)], [(4, 8), (4, 8)]):
        with pytest.raises(ValueError, match="got sizes"):
            time_layers(sizes)
