"""The chunked loss: torch's own, its gradients, and a hand number."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tinytx.model import output_loss
from tinytx.model.output_loss import smoothed_output_loss


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("biased", [True, False])
def test_equals_torch_forward_and_backward_whatever_the_chunk(monkeypatch, smoothing, biased):
    monkeypatch.setattr(output_loss, "LOGITS_AT_ONCE", 4 * 7)
    hidden = torch.randn(11, 5, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(7, 5, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(7, dtype=torch.float64, requires_grad=True) if biased else None
    targets = torch.randint(7, (11,))
    leaves = [leaf for leaf in (hidden, weight, bias) if leaf is not None]
    ours = smoothed_output_loss(hidden, weight, targets, label_smoothing=smoothing, bias=bias)
    its = nn.CrossEntropyLoss(label_smoothing=smoothing)(nn.functional.linear(hidden, weight, bias), targets)
    assert_close(ours, its)
    for mine, other in zip(
        torch.autograd.grad(ours * 3, leaves), torch.autograd.grad(its * 3, leaves), strict=True
    ):
        assert_close(mine, other)


def test_by_hand():
    # Logits 0 and ln 3: probabilities 1/4 and 3/4. Smoothed by 0.2 the target has 0.9, the other 0.1.
    hidden, weight = torch.tensor([[1.0]]), torch.tensor([[0.0], [math.log(3)]])
    loss = smoothed_output_loss(hidden, weight, torch.tensor([1]), label_smoothing=0.2)
    assert_close(loss.item(), -(0.9 * math.log(0.75) + 0.1 * math.log(0.25)), rtol=0, atol=1e-6)


def test_under_autocast_it_is_near_and_the_gradients_keep_their_types():
    hidden, weight = torch.randn(600, 16, requires_grad=True), torch.randn(50, 16, requires_grad=True)
    targets = torch.randint(50, (600,))
    plain = smoothed_output_loss(hidden, weight, targets, label_smoothing=0.1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        quick = smoothed_output_loss(hidden, weight, targets, label_smoothing=0.1)
    assert quick.dtype == torch.float32
    assert_close(quick, plain, rtol=0.01, atol=0)
    quick.backward()
    assert hidden.grad.dtype == weight.grad.dtype == torch.float32


def test_without_rows_it_is_no_number():
    loss = smoothed_output_loss(torch.randn(0, 3), torch.randn(4, 3), torch.tensor([], dtype=torch.long))
    assert loss.isnan()


def test_logits_far_apart_leave_loss_and_gradients_finite():
    hidden = torch.tensor([[1.0]], requires_grad=True)
    weight = torch.tensor([[0.0], [500.0], [-500.0]], requires_grad=True)
    loss = smoothed_output_loss(hidden, weight, torch.tensor([2]))
    assert loss.item() == 1000.0
    loss.backward()
    assert_close(weight.grad, torch.tensor([[0.0], [1.0], [-1.0]]))


def test_the_smoothing_is_checked():
    with pytest.raises(ValueError, match=r"label_smoothing must lie in \[0, 1\], got 1.5"):
        smoothed_output_loss(torch.randn(2, 3), torch.randn(4, 3), torch.tensor([0, 1]), label_smoothing=1.5)
