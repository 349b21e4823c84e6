"""Linear maps laid out for a few rows: what the maps give side by side, whatever the number of rows."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tinytx.model.fast import few_rows


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("laid_out_for", [1, 2, 32])
@pytest.mark.parametrize("sizes", [(5, 7, 7), (11, 3)])
def test_one_map_gives_what_the_maps_give_side_by_side(dtype, bias, laid_out_for, sizes):
    maps = [nn.Linear(sizes[0], n, bias=bias, dtype=dtype) for n in sizes[1:]]
    one = few_rows(maps, laid_out_for)
    with torch.no_grad():
        for n_rows in (1, 2, 3, 32, 33):
            x = torch.randn(n_rows, sizes[0], dtype=dtype)
            assert_close(one(x), torch.cat([each(x) for each in maps], dim=1))


def test_weights_are_those_of_the_moment():
    linear = nn.Linear(3, 5)
    x = torch.randn(1, 3)
    before = linear(x).detach()
    one = few_rows([linear], 1)
    with torch.no_grad():
        linear.weight.zero_()
        assert_close(one(x), before)
