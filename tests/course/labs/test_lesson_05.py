"""Signals: hand numbers, the loop, and what is known of stacks that do something simple."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tinytx.config import TransformerConfig
from tinytx.transformer import Block
from tinytx_course.labs.lesson_05 import signals, size_of, variety_of, weight_gradients

B, T, D = 3, 5, 7
X = torch.arange(B * T * D, dtype=torch.float64).reshape(B, T, D).sin()


class Times(nn.Module):
    """Multiply by a learned number."""

    def __init__(self, factor):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(float(factor), dtype=torch.float64))

    def forward(self, x):
        return self.factor * x


def test_size_and_variety_equal_their_loops():
    square = sum(value**2 for row in X.tolist() for token in row for value in token)
    assert size_of(X) == pytest.approx((square / (B * T * D)) ** 0.5, abs=1e-12)
    apart = 0.0
    for row in X.tolist():
        mean = [sum(column) / T for column in zip(*row, strict=True)]
        apart += sum((v - m) ** 2 for token in row for v, m in zip(token, mean, strict=True))
    assert variety_of(X) == pytest.approx((apart / square) ** 0.5, abs=1e-12)
    assert variety_of(torch.zeros(B, T, D)) == 0


def test_a_stack_that_doubles_doubles_both_ways():
    seen = signals([Times(2), Times(2), Times(2)], X)
    start, sent = seen.size[0], seen.gradient[-1]
    assert start == size_of(X)
    assert sent == pytest.approx(1, abs=0.3), "a random gradient of variance 1"
    assert_close(seen.size, tuple(start * 2**level for level in range(4)))
    assert_close(seen.gradient, tuple(sent * 2 ** (3 - level) for level in range(4)))
    assert_close(seen.variety, (seen.variety[0],) * 4)


def test_gradients_are_those_of_backward_and_the_input_stays_as_it_was():
    torch.manual_seed(2)
    config = TransformerConfig(vocab_size=2, d_model=14, n_heads=2, n_layers=2, d_ff=11)
    blocks = [Block(config).double() for _ in range(2)]
    x = torch.randn(B, T, 14, dtype=torch.float64)
    before = x.clone()
    got = weight_gradients(blocks, x, "attn.q_proj.weight")
    seen = signals(blocks, x)
    assert torch.equal(x, before) and not x.requires_grad
    assert all(parameter.grad is None for block in blocks for parameter in block.parameters())

    start = x.clone().requires_grad_()
    sent = torch.randn(x.shape, dtype=x.dtype, generator=torch.Generator().manual_seed(0))
    (blocks[1](blocks[0](start)) * sent).sum().backward()
    assert_close(got, tuple(size_of(block.attn.q_proj.weight.grad) for block in blocks))
    assert seen.gradient[0] == pytest.approx(size_of(start.grad))
