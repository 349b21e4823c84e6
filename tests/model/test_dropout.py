"""Dropout: its share, its mean, its gradient, and when it does nothing."""

import pytest
import torch
from torch.testing import assert_close

from tinytx.model.dropout import Dropout, dropout


@pytest.mark.parametrize("p", [0.1, 0.3, 0.999])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_share_is_right_and_the_rest_is_scaled_so_that_the_mean_stays(p, dtype):
    dropped = dropout(torch.ones(401, 257, dtype=dtype), p)
    level = min(round(p * 256), 255)
    assert abs((dropped == 0).double().mean().item() - level / 256) < 0.01
    (scale,) = dropped[dropped != 0].unique().tolist()
    assert_close(scale, torch.tensor(256 / (256 - level), dtype=dtype).item())


def test_the_gradient_passes_where_the_number_passed():
    x = torch.randn(7, 11, 3, requires_grad=True)
    dropped = dropout(x, 0.4)
    weighting = torch.randn_like(dropped)
    (dropped * weighting).sum().backward()
    assert_close(x.grad, weighting * dropped.detach() / x.detach())


def test_equal_seeds_drop_the_same_and_neighbours_are_independent():
    x = torch.ones(100_003)
    torch.manual_seed(3)
    first, second = dropout(x, 0.25), dropout(x, 0.25)
    torch.manual_seed(3)
    assert torch.equal(dropout(x, 0.25), first) and not torch.equal(first, second)
    zeros = (first == 0).double()
    for lag in (1, 2, 7, 8, 64):
        assert abs((zeros[lag:] * zeros[:-lag]).mean().item() - 0.25**2) < 0.01


@pytest.mark.parametrize("p", [-0.1, 1.0, 1.5])
def test_a_share_outside_its_range_is_refused(p):
    with pytest.raises(ValueError, match=rf"\[0, 1\), got {p}"):
        dropout(torch.ones(3), p)


def test_outside_training_and_at_0_the_input_is_returned_itself():
    x = torch.randn(3, 5)
    assert Dropout(0.5).eval()(x) is x and Dropout(0.0)(x) is x
    assert not torch.equal(Dropout(0.5)(x), x)
