"""Vectors of tokens from counts alone: which tokens stand near which, more often than chance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

WINDOW = 15  # wide: words of one mood stand in one sentence, not side by side
SMOOTHING = 0.75  # of the neighbours' frequencies, so that rare neighbours do not count too much
EXTRA, ROUNDS = 16, 4  # of the randomised decomposition


def count_vectors(
    sequences: Sequence[Sequence[int]], vocab_size: int, width: int, *, seed: int = 0
) -> Tensor:
    r"""Positive pointwise mutual information with near tokens, reduced to its strongest directions.

    .. math:: M_{ij} = \max(0, \log \frac{P(i, j)}{P(i) P(j)^{0.75}}) \approx U \Sigma V^T, \quad
        \text{rows of } U \Sigma^{1/2}

    Parameters
    ----------
    sequences : sequence of sequences of int
        Token ids of texts.
    vocab_size : int
        V; a table of V times V counts is held in memory.
    width : int
        D, at most V.
    seed : int
        Of the randomised decomposition.

    Returns
    -------
    Tensor of shape (V, D), float32
        Zero for tokens that were never seen beside another.

    References
    ----------
    Levy, Goldberg and Dagan, "Improving Distributional Similarity with Lessons Learned from Word Embeddings",
    TACL 3 (2015), sections 2 and 3.
    """
    if not 1 <= width <= vocab_size:
        raise ValueError(f"width must be from 1 to vocab_size={vocab_size}, got {width}")
    counts = near_counts(sequences, vocab_size)
    total = counts.sum()
    if total == 0:
        raise ValueError("counting needs a text of at least two tokens, got none")
    own = counts.sum(1)
    weights = counts.sum(0) ** SMOOTHING
    weights /= weights.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        information = np.log(counts / (own[:, None] * weights[None, :]))
    positive = torch.from_numpy(np.nan_to_num(np.maximum(information, 0), posinf=0, neginf=0))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        rank = min(vocab_size, width + EXTRA)
        left, values, _ = torch.svd_lowrank(positive.float(), q=rank, niter=ROUNDS)
    return left[:, :width] * values[:width].sqrt()  # (V, D)


def spread_evenly(vectors: Tensor, frequencies: Tensor) -> Tensor:
    """Vectors (V, D) without what all tokens of a text share, each direction with a spread of 1.

    ``frequencies`` (V,) weigh the mean: what a mean over a text would show of every text is taken away.
    """
    centred = vectors - (frequencies[:, None] * vectors).sum(0) / frequencies.sum()
    return centred / (centred.std(0) + 1e-6)


def near_counts(sequences: Sequence[Sequence[int]], vocab_size: int) -> np.ndarray:
    """How often each token stands at most `WINDOW` places from each other one, shape (V, V), float32.

    Examples
    --------
    >>> near_counts([[0, 1], [1, 1]], 2).tolist()
    [[0.0, 1.0], [1.0, 2.0]]
    """
    ids = np.concatenate([np.asarray(ids, dtype=np.int64) for ids in sequences])
    text = np.repeat(np.arange(len(sequences)), [len(ids) for ids in sequences])
    counts = np.zeros((vocab_size, vocab_size), dtype=np.float32)
    for offset in range(1, WINDOW + 1):
        together = text[offset:] == text[:-offset]
        pairs = ids[:-offset][together] * vocab_size + ids[offset:][together]
        found, times = np.unique(pairs, return_counts=True)
        counts.reshape(-1)[found] += times
    return counts + counts.T
