"""Attention with paper and scissors: cards with small integers to cut out, and what they give, computed."""

from __future__ import annotations

import math
from pathlib import Path

import torch
from torch import Tensor

import tinytx as tx
from tinytx_course.kit.pages import write_page
from tinytx_course.site.templates import render

LESSON, PAGE = 2, "paper-attention.html"
#: Words, and the numbers on their cards. Each score, q · k / √4, is a whole number from 0 to 3.
WORDS = ("Lea", "sings", "she", "smiles")
QUERIES = ((0, 2, 2, 0), (2, 0, 2, 0), (1, 1, 2, 2), (1, 2, 2, 2))
KEYS = ((2, 0, 1, 1), (0, 0, 1, 1), (0, 2, 0, 1), (2, 0, 0, 0))
VALUES = ((10, 0), (0, 20), (20, 10), (10, 30))
LARGEST = 3  # of the scores


def attend(*, causal: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Return scores, weights in percent and contexts of the four words, by the package.

    Returns
    -------
    tuple of Tensor
        Shapes (4, 4), (4, 4) and (4, 2).
    """
    q, k, v = (torch.tensor(numbers, dtype=torch.float64) for numbers in (QUERIES, KEYS, VALUES))
    mask = tx.causal_mask(len(WORDS)) if causal else None
    scores = q @ k.T / math.sqrt(q.shape[1])
    return scores, 100 * tx.attention_weights(q, k, mask), tx.attention(q, k, v, mask)


def write_scissors(folder: Path) -> Path:
    """Write the sheets: cards, work sheet, answer strip."""
    body = render(
        "kit/scissors.html",
        words=WORDS,
        powers={score: math.exp(score) for score in range(LARGEST + 1)},
        kinds={"query": QUERIES, "key": KEYS, "value": VALUES},
        strips=[
            (name, *(part.tolist() for part in attend(causal=causal)))
            for name, causal in (("Without a mask", False), ("Causal", True))
        ],
    )
    return write_page(folder / PAGE, "Attention with paper and scissors", body, up="index.html")
