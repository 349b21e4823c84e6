"""Data-parallel training from Python: torchrun as a child process."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
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
    """Run a program by ``torchrun``; gives the JSON object that its first process prints.

    ``threads`` are those of each process, by default an equal share of the cores; ``report`` gets, at the
    end, each line that the first process wrote to standard error. If a process fails, the others are ended.
    """
    words = [*map(str, arguments), *["--json"] * (module == "tinytx_run.cli")]
    threads = threads or max(1, (os.cpu_count() or 1) // n_processes)
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": str(threads),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")])),
    }
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "torchrun").open("w+") as errors:

        def lines(rank: int, stream: str) -> list[str]:
            """What a process wrote; nothing where it has not begun."""
            logs = sorted(Path(folder).glob(f"*/attempt_*/{rank}/{stream}.log"))
            return logs[-1].read_text(encoding="utf-8", errors="replace").splitlines() if logs else []

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
            torchrun.wait()
        except BaseException:
            torchrun.send_signal(signal.SIGINT)
            torchrun.wait()
            raise
        for line in lines(0, "stderr"):
            report(line)
        if torchrun.returncode:
            errors.seek(0)
            written = errors.read()
            cause = re.search(r"Root Cause.*?rank\s*: (\d+).*?exitcode\s*: (-?\d+)", written, re.DOTALL)
            if cause is None:
                raise LaunchError(f"every process must start, got from torchrun: {written}")
            rank, status = int(cause[1]), int(cause[2])
            how = f"exit status {status}" if status >= 0 else signal.Signals(-status).name
            last = "\n".join(lines(rank, "stderr")[-LAST_LINES:])
            raise LaunchError(f"every process must end well, got {how} of process {rank}: {last}")
        return json.loads("\n".join(lines(0, "stdout")))
