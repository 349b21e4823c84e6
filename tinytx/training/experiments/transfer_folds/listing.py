"""What of an experiment is measured and what is missing, before hours are spent on it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from tinytx.training.experiments.transfer_folds.table import TransferExperiment


@dataclass(frozen=True)
class Listed:
    """One condition with one number of labels: how many folds are measured, and the CPU time they took."""

    condition: str
    n_labels: int
    measured: int
    missing: int
    cpu_seconds: float

    def __str__(self) -> str:
        state = "done" if not self.missing else f"{self.missing} missing"
        return (
            f"{self.condition:<28}{self.n_labels:>6,} labels  {self.measured:>3} measured "
            f"({self.cpu_seconds:,.0f} s of CPU), {state}"
        )


@dataclass(frozen=True)
class Listing:
    """All cells of an experiment, and the stages of pretraining that missing ones wait for."""

    cells: tuple[Listed, ...]
    unfinished: tuple[str, ...]

    def __str__(self) -> str:
        lines = [str(cell) for cell in self.cells]
        if self.unfinished:
            lines.append(f"to be pretrained first: {len(self.unfinished)} stages")
            lines += [f"    {name}" for name in self.unfinished]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON can hold them."""
        return {
            "cells": [dataclasses.asdict(cell) for cell in self.cells],
            "unfinished": list(self.unfinished),
        }


def listing(experiment: TransferExperiment) -> Listing:
    """What is there and what is not; nothing is computed but that."""
    found: dict[tuple[str, int], list[dict[str, Any] | None]] = {}
    for cell in experiment.cells:
        found.setdefault((cell.condition.name, cell.n_labels), []).append(experiment.measured(cell))
    cells = []
    for (name, n_labels), records in found.items():
        there = [record for record in records if record is not None]
        seconds = sum(record["cpu_seconds"] for record in there)
        cells.append(Listed(name, n_labels, len(there), len(records) - len(there), seconds))
    return Listing(tuple(cells), tuple(experiment.unfinished()))
