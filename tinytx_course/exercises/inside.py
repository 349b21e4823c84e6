"""Exercises on looking inside: a head taken away, and the attention that marks an induction head."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from tinytx_course.exercises.comparing import floats
from tinytx_course.exercises.exercise import Exercise, generator, normal
from tinytx_course.exercises.observation import Call


def _ablation_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 17)
    for b, t, n_heads, width, head in (
        (1, 1, 2, 1, 0),
        (1, 2, 2, 3, 1),
        (2, 3, 3, 2, 1),
        (2, 3, 5, 2, 0),
        (3, 2, 5, 3, 4),
        (2, 7, 3, 5, 1),
    ):
        drawn = normal(rng, b, t, n_heads * width).round(decimals=1)
        yield Call((drawn + 0.05 * drawn.sign() + 0.05, n_heads, head))  # never 0


ABLATE_HEAD = Exercise(
    name="ablate_head",
    read=floats,
    calls=_ablation_calls,
)


def _attention_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 18)
    for n_heads, period in ((1, 2), (2, 2), (2, 3), (3, 5), (5, 3), (2, 7)):
        seq_len = 2 * period
        scores = 2 * normal(rng, n_heads, seq_len, seq_len)
        future = torch.ones(seq_len, seq_len, device="cpu").triu(1).bool()
        yield Call((scores.masked_fill(future, -torch.inf).softmax(dim=-1), period))


INDUCTION_SCORE = Exercise(
    name="induction_score",
    read=floats,
    calls=_attention_calls,
)
EXERCISES = (ABLATE_HEAD, INDUCTION_SCORE)
