"""Vectors from counts: the definition by hand, and neighbours that are near."""

import numpy as np
import pytest
import torch

from experiments.transfer_encoders import SMOOTHING, WINDOW, count_vectors, near_counts, spread_evenly


def by_loops(sequences, vocab_size):
    counts = np.zeros((vocab_size, vocab_size))
    for ids in sequences:
        for i, one in enumerate(ids):
            for j, other in enumerate(ids):
                if i != j and abs(i - j) <= WINDOW:
                    counts[one, other] += 1
    return counts


def test_counts_equal_loops_and_never_cross_texts():
    rng = np.random.default_rng(0)
    sequences = [rng.integers(0, 7, size=n).tolist() for n in (1, 2, 9, 30)]
    assert np.array_equal(near_counts(sequences, 7), by_loops(sequences, 7))


def test_products_of_vectors_give_back_the_information():
    # At full width U S^(1/2) holds the left factor: its Gram matrix squared is that of the information.
    rng = np.random.default_rng(1)
    sequences = [rng.integers(0, 5, size=40).tolist() for _ in range(3)]
    counts = by_loops(sequences, 5)
    weights = counts.sum(0) ** SMOOTHING
    expected = counts.sum(1)[:, None] * (weights / weights.sum())[None, :]
    information = np.maximum(np.log(counts / expected), 0)
    vectors = count_vectors(sequences, 5, 5).double()
    gram = vectors @ vectors.T
    torch.testing.assert_close(gram @ gram, torch.tensor(information @ information.T), atol=1e-4, rtol=1e-4)


def test_a_token_without_neighbours_is_zero_and_equal_seeds_agree():
    sequences = [[0, 1, 2, 1], [3]]
    vectors = count_vectors(sequences, 4, 2)
    assert torch.equal(vectors, count_vectors(sequences, 4, 2))
    torch.testing.assert_close(vectors[3], torch.zeros(2), atol=1e-6, rtol=0)


def test_bad_requests_are_refused():
    with pytest.raises(ValueError, match="width must be from 1 to vocab_size=4, got 5"):
        count_vectors([[0, 1]], 4, 5)
    with pytest.raises(ValueError, match="at least two tokens"):
        count_vectors([[1], [2]], 4, 2)


def test_spread_vectors_have_no_common_part_and_equal_spread():
    torch.manual_seed(0)
    vectors, frequencies = torch.randn(7, 3) * 5 + 2, torch.tensor([1.0, 0, 2, 5, 1, 1, 3])
    even = spread_evenly(vectors, frequencies)
    torch.testing.assert_close((frequencies[:, None] * even).sum(0), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(even.std(0), torch.ones(3), atol=1e-4, rtol=0)
