"""What `torch.compile` gains and costs, tried in a process of its own: if it fails, nothing else does."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from tinytx_course.labs.timing import take_turns

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Compiled:
    """Seconds to compile, of one call round by round, in turn, and the largest difference of the results."""

    seconds_to_compile: float
    plain: Sequence[float]
    compiled: Sequence[float]
    difference: float

    @property
    def calls_to_repay(self) -> float:
        """Calls after which compiling has paid; infinite if it never does."""
        gain = statistics.median(self.plain) - statistics.median(self.compiled)
        return self.seconds_to_compile / gain if gain > 0 else float("inf")


class NotCompiledError(RuntimeError):
    """Compiling failed; the message is the reason."""


def norm_and_gelu(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """A norm and a GELU (its tanh form), one operation after the other, none a product of matrices."""
    centred = x - x.mean(dim=-1, keepdim=True)
    spread = torch.sqrt((centred * centred).mean(dim=-1, keepdim=True) + 1e-5)
    y = centred / spread * scale + shift
    return 0.5 * y * (1 + torch.tanh(0.79788456 * (y + 0.044715 * y * y * y)))


class CompileTrial:
    """Compile `norm_and_gelu` in the background, from nothing: no earlier result of the compiler is used.

    Parameters
    ----------
    n_rows, width : int
        Size of its input.
    device : {"cpu", "cuda"}
    """

    def __init__(self, n_rows: int = 1024, width: int = 1024, device: str = "cpu") -> None:
        self._folder = tempfile.TemporaryDirectory()
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")])),
            "TORCHINDUCTOR_CACHE_DIR": self._folder.name,
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
            # Precompiled headers pay only for many compilations.
            "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
        }
        command = [sys.executable, "-m", "tinytx_course.labs.compiling", str(n_rows), str(width), device]
        self._process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def result(self, limit: float) -> Compiled:
        """Wait for it; NotCompiledError if it takes longer than `limit` seconds or fails."""
        try:
            output, errors = self._process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            raise NotCompiledError(f"compiling must be done within {limit:g} seconds, it was not") from None
        finally:
            self._folder.cleanup()
        if self._process.returncode:
            lines = [line for line in errors.splitlines() if "Error" in line]
            reason = lines[-1] if lines else "no error message"
            raise NotCompiledError(f"compiling must work, got: {reason}"[:200])
        return Compiled(**json.loads(output.splitlines()[-1]))


@torch.inference_mode()
def measure(n_rows: int, width: int, device: torch.device) -> Compiled:
    """Compile, and time both in turn; on a CPU in processor time, on one thread."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    inputs = (
        torch.randn(n_rows, width, device=device),
        torch.randn(width, device=device),
        torch.randn(width, device=device),
    )
    compiled = torch.compile(norm_and_gelu)
    expected, start = norm_and_gelu(*inputs), time.perf_counter()
    found = compiled(*inputs)
    if device.type == "cuda":
        torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    tasks = {"plain": partial(norm_and_gelu, *inputs), "compiled": partial(compiled, *inputs)}
    turns = take_turns(tasks, n_rounds=7, min_seconds=0.002, device=device, progress=False)
    times = turns.wall if device.type == "cuda" else turns.processor
    difference = (found - expected).abs().max().item()
    return Compiled(seconds, times["plain"].seconds, times["compiled"].seconds, difference)


def main() -> None:
    """Measure and print the result as JSON."""
    n_rows, width, device = sys.argv[1:]
    print(json.dumps(vars(measure(int(n_rows), int(width), torch.device(device)))))


if __name__ == "__main__":
    main()
