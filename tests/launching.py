"""Data-parallel training from Python: torchrun as a child process."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
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
