"""Exercises on masks: causal, padding, and that of cross-attention."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from tinytx.model.masks import causal_mask
from tinytx.teaching.exercises.comparing import boolean
from tinytx.teaching.exercises.exercise import Case, Exercise, Mistake


def _grid(seq_len: int) -> tuple[Tensor, Tensor]:
    place = torch.arange(seq_len, device="cpu")
    return place[:, None], place[None, :]  # t down, s across


def _causal_cases(seed: int) -> Iterator[Case]:
    for seq_len in (1, 2, 3, 5 + seed % 3, 9):
        yield Case((seq_len,))


def _by_rule(rule: Any) -> Any:
    return lambda seq_len: rule(*_grid(seq_len)).expand(seq_len, seq_len)


_SECTION = "The causal mask"
CAUSAL_MASK = Exercise(
    name="causal_mask",
    signature="causal_mask(seq_len)",
    lesson=2,
    section=_SECTION,
    rule="A boolean tensor of shape (T, T), True where row t may attend to column s, that is where s <= t.",
    read=boolean,
    solve=causal_mask,
    cases=_causal_cases,
    mistakes=(
        Mistake(
            "reversed",
            "True and False are exchanged: True means \"may attend\", so the lower triangle is True.",
            _by_rule(lambda t, s: s > t),
            "Two signs for one rule",
        ),
    ),
)
EXERCISES = (CAUSAL_MASK,)
