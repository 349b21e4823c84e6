"""The distribution that is sampled from: hand numbers, properties, and a slow version written in loops."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tinytx.training.generate import next_token_probs


def by_hand(logits, temperature, top_k, top_p):
    """The definition, token by token."""
    probs = torch.softmax(logits.double() / temperature, dim=-1).tolist()
    order = sorted(range(len(probs)), key=lambda i: -probs[i])
    if top_k is not None:
        order = order[:top_k]
    if top_p is not None:
        kept, reached = [], 0.0
        for i in order:
            kept.append(i)
            reached += probs[i]
            if reached >= top_p:
                break
        order = kept
    total = sum(probs[i] for i in order)
    return torch.tensor([probs[i] / total if i in order else 0.0 for i in range(len(probs))])


@given(
    seed=st.integers(0, 10_000),
    temperature=st.floats(0.2, 5.0),
    top_k=st.one_of(st.none(), st.integers(1, 9)),
    top_p=st.one_of(st.none(), st.floats(0.05, 0.97)),
)
def test_equals_the_definition_written_in_loops(seed, temperature, top_k, top_p):
    logits = torch.randn(7, generator=torch.Generator().manual_seed(seed)) * 2
    got = next_token_probs(logits, temperature, top_k, top_p)
    torch.testing.assert_close(got, by_hand(logits, temperature, top_k, top_p), atol=1e-5, rtol=1e-4)
    assert got.sum().item() == pytest.approx(1.0, abs=1e-5)


def test_the_token_that_crosses_top_p_stays():
    logits = torch.tensor([0.5, 0.3, 0.15, 0.05]).log()
    torch.testing.assert_close(next_token_probs(logits, top_p=0.7), torch.tensor([0.625, 0.375, 0.0, 0.0]))


def test_top_k_1_is_the_largest_and_temperature_flattens():
    logits = torch.tensor([0.1, 2.0, -1.0])
    torch.testing.assert_close(next_token_probs(logits, top_k=1), torch.tensor([0.0, 1.0, 0.0]))
    cold, warm = next_token_probs(logits, 0.5), next_token_probs(logits, 2.0)
    assert cold.max() > warm.max()


def test_rows_are_treated_singly_and_the_input_is_untouched():
    logits = torch.randn(2, 3, 5)
    before = logits.clone()
    together = next_token_probs(logits, 0.7, 3, 0.8)
    torch.testing.assert_close(logits, before, rtol=0, atol=0)
    for i in range(2):
        for j in range(3):
            torch.testing.assert_close(together[i, j], next_token_probs(logits[i, j], 0.7, 3, 0.8))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"temperature": 0.0}, "temperature must be positive, got 0.0"),
        ({"temperature": float("nan")}, "temperature must be positive, got nan"),
        ({"top_k": 0}, "top_k must be at least 1"),
        ({"top_p": 0.0}, r"top_p must lie in \(0, 1\]"),
        ({"top_p": 1.5}, "got 1.5"),
    ],
)
def test_settings_without_meaning_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        next_token_probs(torch.zeros(3), **settings)
