"""How much a benchmark measures, and on what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch


@dataclass(frozen=True, kw_only=True)
class BenchSettings:
    """Settings of all parts of a benchmark.

    Parameters
    ----------
    n_rounds : int
        How often each candidate is timed.
    tiny : bool
        Sizes of a few tokens: shows that everything runs, and no more.
    device : torch.device
    data_dir : Path, optional
        Folder of real text, see `load_corpus`; without it the generated language is read.
    progress : bool, optional
        Show a bar; by default when a person watches.
    report : callable
        Takes a line for each comparison.

    Raises
    ------
    ValueError
        If there is no round.
    """

    n_rounds: int = 7
    tiny: bool = False
    device: torch.device = torch.device("cpu")
    data_dir: Path | None = None
    progress: bool | None = None
    report: Callable[[str], None] = print

    def __post_init__(self) -> None:
        if self.n_rounds < 1:
            raise ValueError(f"rounds must be at least 1, got {self.n_rounds}")
