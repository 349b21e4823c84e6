"""What happened in a training: its history, all that resuming needs, and the errors that end it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class History:
    """What happened during training, ready to be drawn.

    Of each interval, the first of one step only, there is its last ``step``, the mean training ``loss`` in
    nats and the last ``lr``; and of each ``on_step`` what it returned, with its ``step``.
    """

    step: list[int] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)
    lr: list[float] = field(default_factory=list)
    evaluations: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class State:
    """State of the loop; with weights, moments and random state it is all that resuming needs."""

    step: int = 0
    epoch: int = 0
    position: int = 0  # batches of this epoch already used
    losses: list[float] = field(default_factory=list)  # since the last record
    history: History = field(default_factory=History)


def last_good(checkpoints: Any) -> str:
    """What is left of a run that failed."""
    latest = getattr(checkpoints, "latest", None)
    return "no checkpoint was written" if latest is None else f"last good checkpoint: {latest}"


class DivergenceError(ValueError):
    """The loss, or a weight, is no longer finite."""


class TrainingInterrupted(KeyboardInterrupt):
    """Ctrl-C stopped the training at the end of a step; ``happened`` says whether it was saved."""

    def __init__(self, happened: str, how_to_resume: str = "") -> None:
        super().__init__(happened + how_to_resume)
        self.happened = happened
