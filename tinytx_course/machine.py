"""What the machine offers: shown in notebook 00, stored with every measured result."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
import threading
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
import torch


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What decides how fast the course runs; nothing that identifies a computer or a person."""

    system: str
    cpu: str
    python: str
    torch: str
    cores: int  # that this process may use
    threads: int  # that PyTorch computes with
    memory_gib: float
    bf16: bool  # whether the processor has instructions for bfloat16
    gpu: str | None  # that PyTorch would use
    gpu_memory_gib: float | None

    def to_dict(self) -> dict:
        """Return the fields as a plain dict."""
        return asdict(self)

    def __str__(self) -> str:
        """Return one fact a line."""
        gpu_memory = "" if self.gpu_memory_gib is None else f", {self.gpu_memory_gib:.0f} GiB"
        rows = {
            "system": self.system,
            "processor": f"{self.cpu}, {self.cores} core{'s' * (self.cores != 1)}",
            "memory": f"{self.memory_gib:.0f} GiB",
            "GPU": (self.gpu or "none (none is needed)") + gpu_memory,
            "Python": self.python,
            "PyTorch": f"{self.torch}, {self.threads} thread{'s' * (self.threads != 1)}",
            "bfloat16": "fast" if self.bf16 else "works, slowly",
        }
        return "\n".join(f"{name:<11}{value}" for name, value in rows.items())


def usable_cores() -> int:
    """Return how many cores this process may use, which can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cpu_name_and_bf16() -> tuple[str, bool]:
    """Return the processor's name, and whether it has AVX-512, AMX or Arm instructions for bfloat16."""
    info = Path("/proc/cpuinfo")
    text = info.read_text(errors="replace") if info.is_file() else ""
    model = re.search(r"^model name\s*: *(.+)$", text, re.M)
    name = model[1].strip() if model else platform.processor() or platform.machine()
    return name, re.search(r"\b(avx512_bf16|amx_bf16|bf16)\b", text) is not None


def _gpu() -> tuple[str | None, float | None]:
    if torch.cuda.is_available():
        properties = torch.cuda.get_device_properties(0)
        return properties.name, round(properties.total_memory / 2**30, 1)
    return ("Apple GPU (mps)" if torch.backends.mps.is_available() else None), None


def this_machine() -> Machine:
    """Return what this machine offers."""
    cpu, bf16 = _cpu_name_and_bf16()
    gpu, gpu_memory = _gpu()
    return Machine(
        system=f"{platform.system()} {platform.machine()}",
        cpu=cpu,
        python=platform.python_version(),
        torch=str(torch.__version__).split("+")[0],
        cores=usable_cores(),
        threads=torch.get_num_threads(),
        memory_gib=round(psutil.virtual_memory().total / 2**30, 1),
        bf16=bf16,
        gpu=gpu,
        gpu_memory_gib=gpu_memory,
    )


def shortcomings(machine: Machine) -> list[str]:
    """Return what would slow or stop the course here, one sentence each; empty when all is well."""
    found = []
    if not (3, 11) <= sys.version_info[:2] < (3, 15):
        found.append(f"Python must be 3.11 to 3.14, got {machine.python}.")
    if machine.memory_gib < 4:
        found.append(f"4 GiB of memory are needed, got {machine.memory_gib:.1f}: close other programs.")
    if machine.threads > machine.cores:
        found.append(
            f"PyTorch computes with {machine.threads} threads on {machine.cores} cores, which slows it "
            f"down: set OMP_NUM_THREADS={machine.cores}."
        )
    return found


class PeakMemory:
    """Sample the resident memory of a process and its children from a thread."""

    def __init__(self) -> None:
        self.peak = 0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, pid: int | None) -> None:
        """Begin; a second call changes nothing."""
        if self._thread is None and pid is not None:
            self._thread = threading.Thread(target=self._sample, args=(pid,), daemon=True)
            self._thread.start()

    def _sample(self, pid: int) -> None:
        while True:
            try:
                process = psutil.Process(pid)
                family = [process, *process.children(recursive=True)]
                self.peak = max(self.peak, sum(member.memory_info().rss for member in family))
            except psutil.Error:
                return  # the process has ended: the peak is known
            if self._stop.wait(0.2):
                return

    def stop(self) -> int:
        """End and return the peak in bytes."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        return self.peak


#: Names of a browser that prints and, in tests, is driven.
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_chromium() -> str | None:
    """Return the path of a Chromium or Chrome, or None; TINYTX_CHROMIUM names one of your own."""
    return os.environ.get("TINYTX_CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM)), None)
