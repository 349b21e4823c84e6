"""Layers equal to torch's with copied weights, forward and backward."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tinytx_course.labs.layers import ConvolutionLayer, GRULayer, RecurrentLayer

B, T, D = 3, 7, 5


def torch_recurrence(ours):
    theirs = (nn.GRU if isinstance(ours, GRULayer) else nn.RNN)(D, D, batch_first=True)
    with torch.no_grad():
        theirs.weight_ih_l0.copy_(ours.in_proj.weight)
        theirs.weight_hh_l0.copy_(ours.hidden_proj.weight)
        theirs.bias_ih_l0.copy_(ours.in_proj.bias)
        bias = ours.hidden_proj.bias
        theirs.bias_hh_l0.copy_(torch.zeros(D) if bias is None else bias)
    return lambda x: theirs(x)[0], theirs.weight_hh_l0, ours.hidden_proj.weight


def torch_convolution(ours):
    theirs = nn.Conv1d(D, D, ours.kernel_size)
    with torch.no_grad():
        theirs.weight.copy_(ours.proj.weight.unflatten(1, (ours.kernel_size, D)).transpose(1, 2))
        theirs.bias.copy_(ours.proj.bias)
    padded = nn.ConstantPad1d((ours.kernel_size - 1, 0), 0.0)
    return lambda x: theirs(padded(x.mT)).mT, theirs.bias, ours.proj.bias


PAIRS = [
    (lambda: RecurrentLayer(D), torch_recurrence),
    (lambda: GRULayer(D), torch_recurrence),
    *[(lambda k=k: ConvolutionLayer(D, k), torch_convolution) for k in (1, 2, 3, 11)],
]


@pytest.mark.parametrize(("make", "make_twin"), PAIRS)
def test_equal_to_torch_forward_and_in_gradients(make, make_twin):
    ours = make()
    theirs, their_weight, our_weight = make_twin(ours)
    x = torch.randn(B, T, D, requires_grad=True)
    y = x.detach().clone().requires_grad_()
    pull = torch.randn(B, T, D)
    (ours(x) * pull).sum().backward()
    (theirs(y) * pull).sum().backward()
    assert_close(ours(x), theirs(y))
    assert_close(x.grad, y.grad)
    assert_close(our_weight.grad, their_weight.grad)


@pytest.mark.parametrize("layer", [RecurrentLayer(D), GRULayer(D)])
def test_reading_in_steps_gives_what_reading_at_once_gives(layer):
    x, state = torch.randn(B, T, D), torch.zeros(B, D)
    for t in range(T):
        state = layer.step(x[:, t], state)
    assert_close(state, layer(x)[:, -1])


def test_sizes_below_one_raise():
    for make in (lambda: RecurrentLayer(0), lambda: GRULayer(0), lambda: ConvolutionLayer(3, 0)):
        with pytest.raises(ValueError, match="must be at least 1, got"):
            make()
