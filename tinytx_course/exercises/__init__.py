"""Exercises whose checkers name the mistake.

>>> import tinytx as tx
>>> verdict = check("causal_mask", tx.causal_mask, display=False)
>>> verdict.passed, verdict.mistake
(True, None)
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tinytx_course.exercises import (
    attending,
    beams,
    counting,
    greedy,
    losses,
    masking,
    masks,
    outside,
    pooling,
    positions,
    repeats,
    sampling,
)
from tinytx_course.exercises.checking import check
from tinytx_course.exercises.exercise import Exercise
from tinytx_course.exercises.verdict import Verdict

_MODULES = (
    *(masks, attending, positions, counting, losses, sampling, pooling, masking, greedy, beams),
    *(repeats, outside),
)
EXERCISES: Mapping[str, Exercise] = MappingProxyType(
    {exercise.name: exercise for module in _MODULES for exercise in module.EXERCISES}
)

__all__ = ["EXERCISES", "Exercise", "Verdict", "check"]
