"""Star ratings of other readers: a neighbour of the task, with labels of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from tinytx.model import Classifier
from tinytx.training.experiments.transfer_folds.linear import LETTERS, NEED
from tinytx.training.experiments.transfer_folds.sources import Rated
from tinytx.training.objectives import ClassificationObjective

RIDGE = 3.0


class StarsObjective(ClassificationObjective):
    """Say which share of other readers gave fewer stars: soft labels that are balanced by their making.

    Parameters
    ----------
    sequences : sequence of sequences of int
        Ids of each text as the model reads them.
    stars : sequence of float
    pad_id : int
    """

    def __init__(self, sequences: Sequence[Sequence[int]], stars: Sequence[float], *, pad_id: int) -> None:
        super().__init__(sequences, [0] * len(sequences), pad_id=pad_id)
        self.shares = torch.from_numpy(shares_below(stars)).float()  # (N,)

    def loss(self, model: Classifier, indices: list[int], batch: list[int] | None = None) -> Tensor:
        """Mean nats a text, against the share as the probability of class 1."""
        logits = self.logits(model, indices).float()  # (B, 2)
        wanted = self.shares[indices].to(logits.device)
        loss = F.cross_entropy(logits, torch.stack([1 - wanted, wanted], dim=1))
        return loss if batch is None else loss * (len(indices) / len(batch))


def shares_below(stars: Sequence[float]) -> np.ndarray:
    """For each rating, the share of ratings that are lower, equal ones counted half.

    Examples
    --------
    >>> shares_below([5, 1, 5, 3]).tolist()
    [0.75, 0.125, 0.75, 0.375]
    """
    given = np.asarray(stars, dtype=float)
    ordered = np.sort(given)
    lower = np.searchsorted(ordered, given, side="left")
    not_higher = np.searchsorted(ordered, given, side="right")
    return (lower + not_higher) / (2 * len(given))


class LinearStars:
    """Stars foretold from words and from letters: two ridge regressions on TF-IDF, standardised and added.

    Parameters
    ----------
    rated : sequence of Rated
    """

    def __init__(self, rated: Sequence[Rated]) -> None:
        try:
            from sklearn.feature_extraction.text import TfidfVectorizer
        except ImportError as error:
            raise ImportError(NEED) from error
        texts, stars = [one.text for one in rated], [one.stars for one in rated]
        words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2)
        letters = TfidfVectorizer(
            analyzer="char_wb", ngram_range=LETTERS, sublinear_tf=True, min_df=5, max_features=120_000
        )
        self._by_words, self._by_letters = _Reader(words, texts, stars), _Reader(letters, texts, stars)

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """What the words let expect, from low to high, as a column (N, 1)."""
        return (self._by_words(texts) + self._by_letters(texts))[:, None]


class _Reader:
    """One ridge regression, whose answers have mean 0 and spread 1 on the texts that it learned from."""

    def __init__(self, vectorizer: Any, texts: Sequence[str], stars: Sequence[float]) -> None:
        from sklearn.linear_model import Ridge

        table = vectorizer.fit_transform(texts)
        self._vectorizer = vectorizer
        self._ridge = Ridge(alpha=RIDGE, solver="sparse_cg").fit(table, stars)
        own = self._ridge.predict(table)
        self._mean, self._spread = own.mean(), own.std()

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        return (self._ridge.predict(self._vectorizer.transform(texts)) - self._mean) / self._spread
