"""Costs of single layers: equal to what torch counts, and to what the dependence of a layer shows."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tinytx.model.attention import MultiHeadAttention, record_attention
from tinytx.model.counting import count_parameters
from tinytx_course.labs.layers import (
    ConvolutionLayer,
    GRULayer,
    RecurrentLayer,
    count_flops,
    count_saved_bytes,
    layer_cost,
)
from tinytx_course.labs.lesson_12 import longest_chain, path_length

KINDS = ["attention", "recurrent", "gru", "convolution"]


def build(kind, d_model, n_heads=1, kernel_size=3):
    if kind == "attention":
        return MultiHeadAttention(d_model=d_model, n_heads=n_heads)
    if kind == "convolution":
        return ConvolutionLayer(d_model, kernel_size)
    return {"recurrent": RecurrentLayer, "gru": GRULayer}[kind](d_model)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8)
@given(
    st.integers(1, 3),
    st.integers(1, 11),
    st.sampled_from([1, 2, 3]),
    st.sampled_from([1, 5]),
    st.sampled_from([1, 2, 3, 7]),
)
def test_equal_to_what_torch_counts(kind, batch_size, seq_len, n_heads, head_dim, kernel_size):
    d_model = n_heads * head_dim
    layer = build(kind, d_model, n_heads, kernel_size)
    sizes = {"batch_size": batch_size, "seq_len": seq_len}
    cost = layer_cost(kind, d_model=d_model, n_heads=n_heads, kernel_size=kernel_size, **sizes)
    x = torch.randn(batch_size, seq_len, d_model, requires_grad=True)
    assert cost.parameters.total == count_parameters(layer)
    assert cost.activations.total == count_saved_bytes(lambda: layer(x), layer.parameters())
    with record_attention(layer):  # without effect on the other layers
        n_flops = count_flops(lambda: layer(x))
    assert cost.flops_forward == n_flops


@pytest.mark.parametrize("kind", ["attention", "gru", "convolution"])
def test_the_backward_pass_takes_twice_the_forward(kind):
    layer, x = build(kind, 6), torch.randn(2, 5, 6, requires_grad=True)
    cost = layer_cost(kind, d_model=6, seq_len=5, batch_size=2)
    # A recurrent layer starts from zeros, which need no gradient: one product of D by n_gates D less.
    spared = 2 * 2 * 6 * 18 if kind == "gru" else 0
    with record_attention(layer):
        assert count_flops(lambda: layer(x).sum().backward()) == cost.flops_training - spared


def test_who_crosses_whom_and_where():
    def flops(kind, n, d=60, k=3):
        return layer_cost(kind, d_model=d, seq_len=n, kernel_size=k).flops_forward

    pairs = {row.name: row.total for row in layer_cost("attention", d_model=60, seq_len=60).flops.rows}
    assert pairs["scores"] + pairs["weighted sums"] == flops("recurrent", 60)
    assert flops("attention", 59) < flops("gru", 59)
    assert flops("attention", 60) == flops("gru", 60)
    assert flops("attention", 61) > flops("gru", 61)
    assert all(flops("attention", n) > flops("recurrent", n) for n in (1, 10, 1000))
    assert flops("attention", 90) == flops("convolution", 90, k=7)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kernel_size", [3, 4, 5])
def test_path_length_is_measured_as_said(kind, kernel_size):
    for seq_len in (2, 9, 12):
        cost = layer_cost(kind, d_model=4, seq_len=seq_len, kernel_size=kernel_size)
        assert cost.path_length == path_length(build(kind, 4, 1, kernel_size), seq_len, 4)


@pytest.mark.parametrize("kind", KINDS)
def test_chains_grow_with_the_text_exactly_where_steps_must_wait(kind):
    layer = build(kind, 4)
    chains = [longest_chain(layer(torch.randn(1, n, 4))) for n in (10, 20, 40)]
    links_per_token = (chains[1] - chains[0]) / 10
    assert chains[2] - chains[1] == 20 * links_per_token
    assert (links_per_token >= 1) is (kind in ("recurrent", "gru"))
    waits = [layer_cost(kind, d_model=4, seq_len=n).n_waits for n in (10, 20)]
    assert waits == ([10, 20] if links_per_token else [1, 1])


def test_a_kernel_that_never_looks_back_has_no_path():
    assert layer_cost("convolution", d_model=4, seq_len=9, kernel_size=2).path_length == 0
    with pytest.raises(ValueError, match="news must arrive within seq_len=9 rounds"):
        path_length(ConvolutionLayer(4, 2), 9, 4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "lstm"}, "kind must be one of attention, recurrent, gru, convolution, got 'lstm'"),
        ({"kernel_size": 0}, "sizes must be at least 1, got k=0"),
        ({"seq_len": 0}, "sizes must be at least 1, got T=0"),
    ],
)
def test_bad_input_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        layer_cost(**{"kind": "gru", "d_model": 4, "seq_len": 5, **changes})
