"""Meters: known products, shared memory counted once, parameters left out."""

import torch
from torch import nn

from tinytx.model.attention import MultiHeadAttention, record_attention
from tinytx_course.labs.layers import count_flops, count_saved_bytes


def test_a_product_and_its_two_gradients_are_three_products():
    x, w = torch.randn(3, 5, requires_grad=True), torch.randn(5, 7, requires_grad=True)
    assert count_flops(lambda: x @ w) == 2 * 3 * 5 * 7
    assert count_flops(lambda: (x @ w).sum().backward()) == 3 * 2 * 3 * 5 * 7


def test_the_counter_knows_plain_attention_only():
    attn, x = MultiHeadAttention(d_model=6, n_heads=3), torch.randn(2, 5, 6)
    maps, pairs = 4 * 2 * 10 * 36, 2 * 2 * 2 * 25 * 6
    with record_attention(attn):
        assert count_flops(lambda: attn(x)) == maps + pairs
    if x.device.type == "cpu":  # what the docstring says; if torch learns it, the docstring has to change
        assert count_flops(lambda: attn(x)) == maps


def test_shared_memory_counts_once_and_what_is_ignored_not_at_all():
    x = torch.randn(4, 6, requires_grad=True)
    assert count_saved_bytes(lambda: x[:2] * x[2:]) == x.nbytes
    first, second = nn.Linear(6, 5), nn.Linear(6, 3)
    parameters = [*first.parameters(), *second.parameters()]
    assert count_saved_bytes(lambda: (first(x), second(x)), parameters) == x.nbytes
    assert count_saved_bytes(lambda: (first(x), second(x))) > x.nbytes


def test_memory_that_is_freed_and_used_again_counts_each_time():
    x = torch.randn(1000, requires_grad=True)

    def chain():
        y = x
        for _ in range(5):
            y = y.exp()  # keeps its result

    assert count_saved_bytes(chain) == 5 * x.nbytes
