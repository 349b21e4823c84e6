"""Masks: the sign, the shape, and what combining them means."""

import pytest
import torch
from torch.testing import assert_close

from tinytx.masks import causal_mask, combine_masks, padding_mask


@pytest.mark.parametrize("seq_len", [1, 2, 7])
def test_causal_mask_allows_exactly_the_past_and_the_present(seq_len):
    expected = torch.tensor([[s <= t for s in range(seq_len)] for t in range(seq_len)])
    assert_close(causal_mask(seq_len), expected)
    blocked = torch.nn.Transformer.generate_square_subsequent_mask(seq_len) == float("-inf")
    assert_close(causal_mask(seq_len), ~blocked)  # torch's modules read True as blocked


def test_combining_is_a_logical_and_with_broadcasting():
    real, causal = torch.tensor([[True, True, False], [False, True, True]]), causal_mask(3)
    combined = combine_masks(causal, None, real[:, None, None, :])
    assert combined.shape == (2, 1, 3, 3)
    for row in range(2):
        for t in range(3):
            for s in range(3):
                assert combined[row, 0, t, s].item() == (s <= t and real[row, s].item())
    assert_close(causal, causal_mask(3))  # the input is not modified


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: causal_mask(0), ValueError, "got 0"),
        (lambda: combine_masks(torch.zeros(2, 2)), TypeError, "float32"),
        (lambda: combine_masks([[True]]), TypeError, "a list"),
        (lambda: combine_masks(causal_mask(3), None, causal_mask(4)), ValueError, r"\(3, 3\) and \(4, 4\)"),
        (lambda: padding_mask([[1, 2]], 0), TypeError, "got list and int"),  # unequal to any number: True
        (lambda: padding_mask(torch.tensor([[1, 2]]), None), TypeError, "got Tensor and NoneType"),
    ],
)
def test_errors_name_rule_and_value(call, error, words):
    with pytest.raises(error, match=words):
        call()
