"""Data-parallel training from a notebook: torchrun as a child process, and what a second process gains."""

from __future__ import annotations

import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

from tinytx import loop
from tinytx.config import TransformerConfig
from tinytx.objectives import CausalObjective
from tinytx.settings import TrainingSettings, choose_device
from tinytx_run.distributed import Processes, joined, train
from tinytx_run.pretrain import new_language_model

ROOT = Path(__file__).resolve().parents[2]
LAST_LINES = 5


class LaunchError(RuntimeError):
    """One of the processes failed; the message has its number and its last lines."""


def launch(
    n_processes: int,
    arguments: Sequence[object],
    *,
    module: str = "tinytx_run.cli",
    threads: int | None = None,
    report: Callable[[str], object] = print,
) -> dict[str, Any]:
    """Run a command of tinytx in several processes of this machine that train together.

    ``launch(2, ["pretrain", "--corpus", "world", "--out", "run"])`` does what a terminal does with
    ``torchrun --nproc-per-node=2 -m tinytx_run.cli pretrain --corpus world --out run --json``.

    Parameters
    ----------
    n_processes : int
    arguments : sequence
        As on the command line.
    module : str
        The program; its first process prints one JSON object on standard output.
    threads : int, optional
        Of each process; by default an equal share of the cores.
    report : callable
        Gets each line that the first process writes to standard error.

    Returns
    -------
    dict
        The object that the first process printed.

    Raises
    ------
    LaunchError
        If a process fails or is killed; the others are then ended. Checkpoints stay.
    """
    if n_processes < 1:
        raise ValueError(f"n_processes must be at least 1, got {n_processes}")
    words = [str(word) for word in arguments]
    if module == "tinytx_run.cli" and "--json" not in words:
        words.append("--json")
    threads = threads or max(1, (os.cpu_count() or 1) // n_processes)
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": str(threads),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")])),
    }
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "torchrun").open("w+") as errors:
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--local-addr=127.0.0.1"]
        command += [f"--nproc-per-node={n_processes}", f"--log-dir={folder}", "--redirects=3"]
        # In a session of its own it gets Ctrl-C once, from here, and not from the terminal as well.
        torchrun = subprocess.Popen(
            [*command, "-m", module, *words],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
        try:
            _follow(torchrun, Path(folder), report)
        except BaseException:
            torchrun.send_signal(signal.SIGINT)
            _follow(torchrun, Path(folder), report)
            raise
        if torchrun.returncode:
            errors.seek(0)
            raise LaunchError(_failure(errors.read(), Path(folder)))
        return json.loads(_log(Path(folder), 0, "stdout").read_text(encoding="utf-8"))


def _log(folder: Path, rank: int, stream: str) -> Path:
    """Where torchrun puts what a process writes; a path without a file before it has begun."""
    found = sorted(folder.glob(f"*/attempt_*/{rank}/{stream}.log"))
    return found[-1] if found else folder / "none"


def _follow(torchrun: subprocess.Popen[bytes], folder: Path, report: Callable[[str], object]) -> None:
    """Report the lines of the first process until all have ended."""
    while torchrun.poll() is None and not _log(folder, 0, "stderr").is_file():
        time.sleep(0.1)
    if not _log(folder, 0, "stderr").is_file():
        return
    with _log(folder, 0, "stderr").open(encoding="utf-8", errors="replace") as stream:
        running = True
        while running:
            running = torchrun.poll() is None
            for line in stream:
                report(line.rstrip("\n"))
            if running:
                time.sleep(0.1)


def _failure(errors: str, folder: Path) -> str:
    """Which process failed first, how, and its last lines."""
    cause = re.search(r"Root Cause.*?rank\s*: (\d+).*?exitcode\s*: (-?\d+)", errors, re.DOTALL)
    if cause is None:
        return f"every process must start, got from torchrun: {_ending(errors)}"
    rank, status = int(cause[1]), int(cause[2])
    how = f"exit status {status}" if status >= 0 else signal.Signals(-status).name
    log = _log(folder, rank, "stderr")
    words = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    return f"every process must end well, got {how} of process {rank}; its last lines: {_ending(words)}"


def _ending(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return "\n".join(lines[-LAST_LINES:]) or "none"


VOCAB_SIZE, MARKS = 1000, {"pad_id": 0, "bos_id": 2, "eos_id": 3}


@dataclass(frozen=True)
class Speed:
    """Tokens a second, one number a round, of training steps shared by processes of `n_threads` threads each.

    `ideal` is the speed of one process with one thread, times the number of threads, or GPUs, in all.
    """

    n_processes: int
    n_threads: int
    tokens_per_second: tuple[float, ...]
    ideal: float

    @property
    def median(self) -> float:
        """Over all rounds."""
        return statistics.median(self.tokens_per_second)

    def __str__(self) -> str:
        who = f"{self.n_processes} x {self.n_threads} (processes x threads)"
        return f"{who}: {self.median:,.0f} tokens/s, {self.median / self.ideal:.2f} of ideal"


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A model and batches to measure with.

    Parameters
    ----------
    d_model, n_layers : int
        Of a causal model with heads of 32 and a feed-forward of four times its width.
    seq_len : int
        Of every row.
    tokens_per_batch : int
        The same for every number of processes.
    n_steps : int
        Timed in each round, after two that are not.
    n_rounds : int
    device : {"auto", "cpu", "cuda"}
    """

    d_model: int = 128
    n_layers: int = 2
    seq_len: int = 128
    tokens_per_batch: int = 2048
    n_steps: int = 3
    n_rounds: int = 5
    device: str = "auto"


def scaling(n_processes: int, workload: Workload, *, report: Callable[[str], object] = print) -> list[Speed]:
    """Measure one process with many threads, one with one, and many with one thread each, in turn.

    All are measured within one start of torchrun: while one process computes alone the others wait. On GPUs
    there are only one process and many. `report` is that of `launch`.
    """
    given = json.dumps(asdict(workload))
    rows = launch(n_processes, [given], module="tinytx_course.labs.scaling", report=report)["rows"]
    single = next(statistics.median(speeds) for n, threads, speeds in rows if n * threads == 1)
    return [Speed(n, threads, tuple(speeds), n * threads * single) for n, threads, speeds in rows]


def measure(workload: Workload, processes: Processes) -> dict[str, Any]:
    """Run by each process under torchrun: the speed of each way, as the first process measures it."""
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
    return {"rows": [(*way, each) for way, each in speeds.items()]}


def _tokens_per_second(workload: Workload, processes: Processes) -> float:
    """Median speed of the steps after the first two; only the first process looks at the clock."""
    n_rows = workload.tokens_per_batch // workload.seq_len
    n_steps = workload.n_steps + 2
    ids = np.random.default_rng(0).integers(6, VOCAB_SIZE, (n_rows * n_steps, workload.seq_len - 1))
    objective = CausalObjective(ids.tolist(), max_len=workload.seq_len, **MARKS)
    config = TransformerConfig(
        vocab_size=VOCAB_SIZE,
        d_model=workload.d_model,
        n_heads=max(1, workload.d_model // 32),
        n_layers=workload.n_layers,
        d_ff=4 * workload.d_model,
        max_len=workload.seq_len,
    )
    model = new_language_model(config, seed=0).to(choose_device(workload.device))
    settings = TrainingSettings(n_steps=n_steps, tokens_per_batch=n_rows * workload.seq_len, precision="auto")
    ends: list[float] = []

    def mark(step: int, model: nn.Module) -> None:
        if next(model.parameters()).is_cuda:
            torch.cuda.synchronize()
        ends.append(time.perf_counter())

    learn = loop.train if processes.n == 1 else train
    learn(model, objective, settings, on_step=mark, progress=False)
    if not processes.first:
        return float("nan")
    seconds = statistics.median(after - before for before, after in zip(ends[1:], ends[2:], strict=False))
    return n_rows * workload.seq_len / seconds


def main() -> None:
    """Measure as one of the processes; the first prints the result as JSON."""
    workload = Workload(**json.loads(sys.argv[1]))
    with joined(workload.device) as processes:
        found = measure(workload, processes)
    if processes.first:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
