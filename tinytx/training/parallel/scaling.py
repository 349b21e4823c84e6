"""What does a second process bring? Tokens per second of training steps, each way in turn."""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

from tinytx.model import TransformerConfig
from tinytx.training.engine.loop import train
from tinytx.training.engine.timing import wait_for
from tinytx.training.objectives import CausalObjective
from tinytx.training.parallel.distributed import Processes, joined
from tinytx.training.parallel.launching import launch
from tinytx.training.settings import TrainingSettings, choose_device
from tinytx.training.tasks import new_language_model

MARKS = {"pad_id": 0, "bos_id": 2, "eos_id": 3}


@dataclass(frozen=True)
class Speed:
    """How fast training steps on batches of one size are, when so many processes share them.

    Attributes
    ----------
    n_processes, n_threads : int
        The latter of each process.
    tokens_per_second : tuple of float
        One a round.
    ideal : float
        As many times the speed of one process with one thread as there are threads, or GPUs, in all.
    """

    n_processes: int
    n_threads: int
    tokens_per_second: tuple[float, ...]
    ideal: float

    @property
    def median(self) -> float:
        """The middle one of all rounds."""
        return statistics.median(self.tokens_per_second)

    def to_dict(self) -> dict[str, Any]:
        """Figures as JSON can hold them."""
        return {**asdict(self), "median": self.median}

    def __str__(self) -> str:
        who = f"{self.n_processes} x {self.n_threads} (processes x threads)"
        return f"{who}: {self.median:,.0f} tokens/s, {self.median / self.ideal:.2f} of ideal"


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A model and batches to measure with.

    Parameters
    ----------
    d_model, n_layers, vocab_size : int
        Of a causal model with heads of 32 and a feed-forward of four times its width.
    seq_len : int
        Of every row.
    tokens_per_batch : int
        The same whoever computes it.
    n_steps : int
        Timed in each round, after two that are not.
    n_rounds : int
    device : {"auto", "cpu", "cuda"}
    precision : {"auto", "fp32", "bf16"}
    """

    d_model: int = 128
    n_layers: int = 2
    vocab_size: int = 1000
    seq_len: int = 128
    tokens_per_batch: int = 2048
    n_steps: int = 3
    n_rounds: int = 5
    device: str = "auto"
    precision: str = "auto"


def scaling(
    n_processes: int = 2, workload: Workload | None = None, *, report: Callable[[str], object] = print
) -> list[Speed]:
    """Measure one process with many threads, one with one, and many with one thread each, in turn.

    All are measured within one start of torchrun: while one process computes alone the others wait. On GPUs
    there are only one process and many.

    Parameters
    ----------
    n_processes : int
    workload : Workload, optional
    report : callable
        Told what the first process writes to standard error.

    Returns
    -------
    list of Speed
    """
    given = json.dumps(asdict(workload or Workload()))
    answer = launch(n_processes, [given], module="tinytx.training.parallel.scaling", report=report)
    rows = [(one["n_processes"], one["n_threads"], one["tokens_per_second"]) for one in answer["ways"]]
    single = next(statistics.median(speeds) for n, threads, speeds in rows if n * threads == 1)
    return [Speed(n, threads, tuple(speeds), n * threads * single) for n, threads, speeds in rows]


def measure(workload: Workload, processes: Processes) -> dict[str, Any]:
    """What each process does when torchrun has started it: speeds of each way, known to the first."""
    gpu = choose_device(workload.device).type == "cuda"
    ways = [(1, 1), (processes.n, 1)] if gpu else [(1, processes.n), (1, 1), (processes.n, 1)]
    speeds: dict[tuple[int, int], list[float]] = {way: [] for way in ways}
    for _ in range(workload.n_rounds):
        for n, threads in speeds:
            dist.barrier()
            torch.set_num_threads(threads)
            if n == processes.n:
                speeds[n, threads].append(_tokens_per_second(workload, processes))
            elif processes.first:
                speeds[n, threads].append(_tokens_per_second(workload, Processes()))
    rows = [
        {"n_processes": n, "n_threads": threads, "tokens_per_second": each}
        for (n, threads), each in speeds.items()
    ]
    return {"ways": rows}


def _tokens_per_second(workload: Workload, processes: Processes) -> float:
    n_rows = workload.tokens_per_batch // workload.seq_len
    n_steps = workload.n_steps + 2
    ids = np.random.default_rng(0).integers(6, workload.vocab_size, (n_rows * n_steps, workload.seq_len - 1))
    objective = CausalObjective(ids.tolist(), max_len=workload.seq_len, **MARKS)
    config = TransformerConfig(
        vocab_size=workload.vocab_size,
        d_model=workload.d_model,
        n_heads=max(1, workload.d_model // 32),
        n_layers=workload.n_layers,
        d_ff=4 * workload.d_model,
        max_len=workload.seq_len,
    )
    model = new_language_model(config, seed=0).to(choose_device(workload.device))
    settings = TrainingSettings(
        n_steps=n_steps, tokens_per_batch=n_rows * workload.seq_len, precision=workload.precision
    )
    ends: list[float] = []

    def mark(step: int, model: nn.Module) -> None:
        wait_for(next(model.parameters()).device)
        ends.append(time.perf_counter())

    train(model, objective, settings, processes=processes, on_step=mark, progress=False)
    if not processes.first:
        return float("nan")  # only the first looks at the clock
    seconds = statistics.median(after - before for before, after in zip(ends[1:], ends[2:], strict=False))
    return n_rows * workload.seq_len / seconds


def main() -> None:
    """Measure as one of the processes; the first prints what was found as JSON."""
    workload = Workload(**json.loads(sys.argv[1]))
    with joined(workload.device) as processes:
        found = measure(workload, processes)
        if processes.first:
            print(json.dumps(found))


if __name__ == "__main__":
    main()
