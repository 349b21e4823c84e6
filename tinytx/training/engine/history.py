"""What happened during training, and where it stands."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any


@dataclass
class History:
    """What happened during training, ready to be drawn.

    Attributes
    ----------
    step, loss, lr : lists, equally long
        One entry a record: the last step of the interval, the mean training loss over it in nats, and the
        learning rate of its last step. The first step has a record of its own.
    evaluations : list of dict
        What the ``on_step`` callback returned, each with its ``step``.
    """

    step: list[int] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)
    lr: list[float] = field(default_factory=list)
    evaluations: list[dict[str, Any]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON can hold them."""
        return dataclasses.asdict(self)


@dataclass
class State:
    """Where training stands; with weights, moments and random state it is all that resuming needs."""

    step: int = 0
    epoch: int = 0
    position: int = 0  # batches of this epoch already used
    losses: list[float] = field(default_factory=list)  # since the last record
    history: History = field(default_factory=History)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> State:
        return cls(**{**fields, "history": History(**fields["history"])})
