"""Chains and gradients on computations whose answer is known."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tinytx.model.attention import MultiHeadAttention
from tinytx_course.labs.layers import GRULayer, RecurrentLayer
from tinytx_course.labs.lesson_12 import gradient_sizes, longest_chain, path_length


def test_the_longest_way_counts_not_the_number_of_operations():
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    wide = sum([y.sin(), y.cos(), y.tanh()], start=x)
    assert longest_chain(wide) == 1 + 1 + 3  # exp, one of the three, and three sums one after the other


def test_a_long_chain_is_counted():
    x = y = torch.ones(1, requires_grad=True)
    for _ in range(3000):
        y = y * 1.0
    assert longest_chain(y) == 3000
    assert longest_chain(x + x) == 1


def test_without_a_graph_there_is_no_chain():
    with pytest.raises(ValueError, match="must be computed from something that needs a gradient"):
        longest_chain(torch.ones(2) + 1)


def test_a_vanilla_layer_without_tanh_has_the_gradient_of_a_matrix_power():
    class Linear(RecurrentLayer):
        def _next(self, token, state):
            return token + self.hidden_proj(state)

    layer = Linear(3)
    sizes = gradient_sizes(layer, torch.randn(2, 6, 3))
    hidden, entry = layer.hidden_proj.weight, layer.in_proj.weight
    expected = [(torch.linalg.matrix_power(hidden, 5 - t) @ entry).norm() for t in range(6)]
    assert_close(sizes, torch.stack(expected))


def test_gradient_sizes_are_those_of_the_jacobian():
    layer, x = GRULayer(3), torch.randn(1, 4, 3)
    jacobian = torch.autograd.functional.jacobian(lambda x: layer(x)[0, -1], x)  # (D, 1, T, D)
    assert_close(gradient_sizes(layer, x), jacobian[:, 0].square().sum(dim=(0, 2)).sqrt())


def test_measuring_leaves_the_layer_as_it_is():
    layer = MultiHeadAttention(d_model=4, n_heads=2)
    before = [p.clone() for p in layer.parameters()]
    assert path_length(layer, 7, 4) == 1
    for p, old in zip(layer.parameters(), before, strict=True):
        assert p.dtype == old.dtype and torch.equal(p, old) and p.grad is None


def test_news_that_never_arrives_is_an_error():
    with pytest.raises(ValueError, match="news must arrive within seq_len=5 rounds"):
        path_length(nn.Linear(4, 4), 5, 4)
