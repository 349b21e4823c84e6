"""Kept keys and values: rows in any order, and no more room than was taken."""

import pytest
import torch
from torch.testing import assert_close

from tinytx.model.kv_cache import KeyValues

R, H, K = 5, 2, 3


def test_tokens_are_kept_in_their_order():
    new = torch.randn(2, R, H, 7, K)
    kept = KeyValues(9)
    kept.append(new[:, :, :, :4])
    for t in range(4, 7):
        keys, values = kept.append(new[:, :, :, t : t + 1])
        assert_close(torch.stack([keys, values]), new[:, :, :, : t + 1])
    assert kept.length == 7


@pytest.mark.parametrize("rows", [[4, 0, 0, 3, 1], [0, 1, 2, 3, 4], [3, 3, 0], [2] * 8])
def test_rows_go_on_in_any_order_and_number(rows):
    new, more = torch.randn(2, R, H, 4, K), torch.randn(2, len(rows), H, 1, K)
    kept = KeyValues(5)
    kept.append(new)
    kept.select(torch.tensor(rows))
    keys, values = kept.append(more)
    assert_close(torch.stack([keys, values]), torch.cat([new[:, rows], more], dim=3))


def test_what_is_equal_before_start_is_left_where_it_is():
    new = torch.randn(2, R, H, 4, K)
    new[:, :, :, :2] = new[:, :1, :, :2]  # all rows begin alike
    kept = KeyValues(5)
    kept.append(new)
    kept.select(torch.tensor([1, 1, 4, 3, 0]), start=2)
    keys, values = kept.append(new[:, :, :, :1])
    assert_close(torch.stack([keys, values])[:, :, :, :4], new[:, [1, 1, 4, 3, 0]])


def test_there_is_room_for_so_many_tokens_only():
    kept = KeyValues(3)
    kept.append(torch.zeros(2, 1, 1, 3, 2))
    with pytest.raises(ValueError, match="at most max_len=3 tokens, got 4"):
        kept.append(torch.zeros(2, 1, 1, 1, 2))
