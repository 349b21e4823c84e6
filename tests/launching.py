"""Data-parallel training from Python: torchrun as a child process."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def launch(
    n_processes: int, arguments: Sequence[object], *, module: str = "tinytx_run.cli"
) -> dict[str, Any]:
    """Run a program by ``torchrun``; gives the one JSON object that its processes print.

    What they write to standard error is written here, too. If one fails, torchrun ends the others, and what
    it says of that is the error's message.
    """
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--local-addr=127.0.0.1"]
    command += [f"--nproc-per-node={n_processes}", "-m", module, *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, text=True, **pipes) as torchrun:
        try:
            out, err = torchrun.communicate()
        except BaseException:
            torchrun.send_signal(signal.SIGINT)  # it ends its processes
            raise
    sys.stderr.write(err)
    if torchrun.returncode:
        raise RuntimeError(err)
    return json.loads(out)
