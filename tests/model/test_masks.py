"""Masks: the sign, the shape, and what combining them means."""

import pytest
import torch
from torch.testing import assert_close

from tinytx.model.masks import causal_mask, combine_masks, over_keys, padding_mask


@pytest.mark.parametrize("seq_len", [1, 2, 7])
def test_causal_mask_allows_exactly_the_past_and_the_present(seq_len):
    expected = torch.tensor([[s <= t for s in range(seq_len)] for t in range(seq_len)])
    assert_close(causal_mask(seq_len), expected)


def test_causal_mask_is_the_opposite_of_the_mask_of_torch_modules():
    blocked = torch.nn.Transformer.generate_square_subsequent_mask(5) == float("-inf")
    assert_close(causal_mask(5), ~blocked)


def test_causal_mask_needs_a_token():
    with pytest.raises(ValueError, match="^seq_len must be at least 1, got 0$"):
        causal_mask(0)


def test_padding_mask_is_true_where_a_token_is_real():
    token_ids = torch.tensor([[3, 5, 3], [7, 3, 0]])
    assert_close(padding_mask(token_ids, pad_id=3), torch.tensor([[False, True, False], [True, False, True]]))


def test_over_keys_forbids_the_same_keys_to_every_head_and_query():
    real = torch.tensor([[True, True, False], [True, False, False]])
    everywhere = over_keys(real).expand(2, 5, 7, 3)
    for head in range(5):
        for query in range(7):
            assert_close(everywhere[:, head, query], real)


def test_over_keys_refuses_other_shapes():
    with pytest.raises(ValueError, match=r"^padding_mask must have shape \(B, S\), got \(3, 3, 3\)$"):
        over_keys(torch.ones(3, 3, 3, dtype=torch.bool))


def test_combining_is_a_logical_and_with_broadcasting():
    real = torch.tensor([[True, True, False], [False, True, True]])
    combined = combine_masks(causal_mask(3), None, over_keys(real))
    assert combined.shape == (2, 1, 3, 3)
    for row in range(2):
        for t in range(3):
            for s in range(3):
                assert combined[row, 0, t, s].item() == (s <= t and real[row, s].item())


def test_nothing_combined_forbids_nothing():
    assert combine_masks() is None and combine_masks(None, None) is None


@pytest.mark.parametrize("combine", [combine_masks, over_keys])
def test_masks_of_numbers_are_refused(combine):
    with pytest.raises(TypeError, match=r"must be boolean \(True = may attend\), got torch.float32$"):
        combine(torch.zeros(2, 2))


def test_masks_are_not_modified():
    first, second = causal_mask(3), torch.tensor([True, False, True])
    combine_masks(first, second)
    assert_close(first, causal_mask(3))
    assert_close(second, torch.tensor([True, False, True]))
