"""Embeddings from counts: which tokens occur near each other, before any transformer is trained."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from tinytx.tokenizer import Tokenizer

WINDOW = 15  # wide: words of one mood share a sentence, not a phrase
SMOOTHING = 0.75  # of the frequencies of context tokens, so that rare ones do not count too much


def cooccurrences(sequences: Sequence[Sequence[int]], vocab_size: int) -> np.ndarray:
    """How often each token occurs at most `WINDOW` positions from each other one, shape (V, V), float32.

    Examples
    --------
    >>> cooccurrences([[0, 1], [1, 1]], 2).tolist()
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


def ppmi_vectors(sequences: Sequence[Sequence[int]], vocab_size: int, width: int) -> np.ndarray:
    r"""Positive pointwise mutual information with near tokens, reduced by a truncated SVD.

    .. math:: M_{ij} = \max(0, \log \frac{P(i, j)}{P(i) P(j)^{0.75}}) \approx U \Sigma V^T, \quad
        \text{rows of } U \Sigma^{1/2}

    The sequences are ids of texts. A row of the result, (V, width), is zero where its token never occurs near
    another.

    References
    ----------
    Levy, Goldberg and Dagan, "Improving Distributional Similarity with Lessons Learned from Word Embeddings",
    TACL 3 (2015), sections 2 and 3.
    """
    from sklearn.utils.extmath import randomized_svd

    counts = cooccurrences(sequences, vocab_size)
    context = counts.sum(0) ** SMOOTHING
    with np.errstate(divide="ignore", invalid="ignore"):
        information = np.log(counts / (counts.sum(1)[:, None] * (context / context.sum())[None, :]))
    positive = np.nan_to_num(np.maximum(information, 0), posinf=0, neginf=0)
    left, values, _ = randomized_svd(positive, width, n_oversamples=16, n_iter=4, random_state=0)
    return left * np.sqrt(values)


def embed_by_counts(weight: Tensor, tokenizer: Tokenizer, texts: Sequence[str]) -> None:
    """Set embeddings, (V, D), to PPMI vectors of some texts, centred, of the size of new ones."""
    ids = tokenizer.encode_batch(texts)
    vectors = torch.from_numpy(ppmi_vectors(ids, *weight.shape)).float()
    flat = torch.from_numpy(np.concatenate([np.asarray(row, dtype=np.int64) for row in ids]))
    shares = torch.bincount(flat, minlength=len(weight)).float() / len(flat)
    centred = vectors - shares @ vectors
    with torch.no_grad():
        weight.copy_(centred / (centred.std(0) + 1e-6) * weight.shape[1] ** -0.5)
