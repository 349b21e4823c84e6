"""``python -m tests.gpu [PART ...]``: all that a machine with an NVIDIA GPU can show, into results/gpu.json.

It needs no network, and runs with whatever Python has torch. Each part is stored as it ends. It fails where
a test failed, none was collected, one was skipped though no second GPU is asked for, a notebook failed, or
one that trains had no tensor on the GPU.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

from tests.gpu import outcomes

Record = dict[str, Any]
ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results"
NO_GPU = "python -m tests.gpu needs an NVIDIA GPU that torch can use, and found none."
N_AT_ONCE = max(1, min(10, (os.cpu_count() or 1) - 2))  # tests, or notebooks
MOST_SECONDS = {"tests": 240, "pretrain": 90, "finetune": 30, "lesson": 120}  # the last three: of the budget
MAY_SKIP = "needs two GPUs"
# Run by each kernel as it starts. nbval kills kernels, so what is seen is written after every cell. Steps are
# counted, and among them those of runs for which tinytx chooses the device; the reader's own functions, and
# toys of the lessons, learn on the CPU. It leaves one name in the notebook.
IN_KERNEL = """
def _tinytx_watch():
    import json, sys
    from pathlib import Path

    seen = {{"steps": 0, "placed_steps": 0, "on_gpu": False, "peak_mib": 0}}
    hooks = []

    def count(*_):
        seen["steps"] += 1
        frame = sys._getframe()
        while frame and frame.f_globals.get("__name__") != "tinytx_run.training":
            frame = frame.f_back
        seen["placed_steps"] += frame is not None

    def look(*_):
        torch = sys.modules.get("torch")
        if torch is None:
            return
        if not hooks:
            from torch.optim.optimizer import register_optimizer_step_post_hook
            hooks.append(register_optimizer_step_post_hook(count))
        if torch.cuda.is_initialized():
            seen["peak_mib"] = torch.cuda.max_memory_reserved() // 2**20
            seen["on_gpu"] = torch.cuda.memory_stats().get("allocation.all.allocated", 0) > 0
        Path({path!r}).write_text(json.dumps(seen), encoding="utf-8")

    get_ipython().events.register("pre_run_cell", look)
    get_ipython().events.register("post_run_cell", look)

_tinytx_watch()
"""


def faults_of_tests(record: Record) -> list[str]:
    """Why a run of tests is no success."""
    faults = [f"failed: {name}: {why}" for name, why in record["failed"].items()]
    skipped = record["skipped"].items()
    faults += [f"skipped: {name}: {why}" for name, why in skipped if MAY_SKIP not in why]
    if not (record["passed"] or record["failed"]):
        faults.append("no test ran: 0 collected, or all were skipped")
    return faults


def faults_of_notebooks(record: Record) -> list[str]:
    """Why a run of notebooks is no success."""
    faults = [] if record else ["no notebook was run"]
    for name, one in record.items():
        if one["cells_failed"] or not one["cells_passed"]:
            faults.append(f"{name}: {one['cells_failed']} cells failed, {one['cells_passed']} passed")
        if one["placed_steps"] and not one["on_gpu"]:
            faults.append(f"{name} trains, and no tensor was on the GPU")
    return faults


def tests(folder: Path) -> tuple[Record, list[str]]:
    """The tests that need a GPU."""
    report = folder / "outcomes"
    report.touch()
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "-p", "no:cacheprovider"]
    command += ["-p", outcomes.__name__]
    if importlib.util.find_spec("xdist"):
        command += ["-n", str(N_AT_ONCE), "--dist", "worksteal"]
    # Those of several processes take longest, so they begin. Other files may need packages that are missing.
    files = sorted((ROOT / "tests").rglob("test_*.py"), key=lambda file: "distributed" not in file.name)
    command += [str(file) for file in files if "mark.gpu" in file.read_text(encoding="utf-8")]
    environment = {**os.environ, outcomes.FILE: str(report)}
    done = subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True)
    try:
        status = done.wait(MOST_SECONDS["tests"])
    except subprocess.TimeoutExpired:
        os.killpg(done.pid, signal.SIGKILL)
        status = done.wait()
    record = outcomes.read(report.read_text(encoding="utf-8"))
    faults = faults_of_tests(record)
    return record, faults or ([f"pytest ended with {status}"] if status else [])


def notebooks(
    folder: Path, budget: str = "smoke", n_at_once: int = N_AT_ONCE, holding: str = ""
) -> tuple[Record, list[str]]:
    """Notebooks that hold some words, under nbval at a budget; their models are on the GPU."""
    missing = [name for name in ("nbval", "ipykernel") if importlib.util.find_spec(name) is None]
    if missing:
        return {}, [f"notebooks need {' and '.join(missing)}, which this Python lacks"]
    from tests.notebooks.offline import nbval

    os.environ["TINYTX_BUDGET"] = budget
    os.environ["OMP_NUM_THREADS"] = "1"

    def run(path: Path) -> Record:
        place = folder / path.stem
        startup = place / "ipython" / "profile_default" / "startup"
        startup.mkdir(parents=True)
        seen = place / "seen.json"
        (startup / "look.py").write_text(IN_KERNEL.format(path=str(seen)), encoding="utf-8")
        begin = time.perf_counter()
        n_passed, n_failed, printed = nbval(path, place)
        looked = json.loads(seen.read_text(encoding="utf-8")) if seen.is_file() else {}
        found = {
            "cells_passed": n_passed,
            "cells_failed": n_failed,
            "seconds": round(time.perf_counter() - begin, 1),
            **{"steps": 0, "placed_steps": 0, "on_gpu": False, "peak_mib": 0, **looked},
        }
        print(path.stem, found, printed if n_failed or not n_passed else "", flush=True)
        return found

    files = sorted((ROOT / "notebooks").glob("*.ipynb"))
    paths = [path for path in files if holding in path.read_text(encoding="utf-8")]
    with ThreadPoolExecutor(n_at_once) as pool:
        record = {path.stem: found for path, found in zip(paths, pool.map(run, paths), strict=True)}
    return record, faults_of_notebooks(record)


@contextlib.contextmanager
def busy() -> Iterator[list[int]]:
    """Into a list, at the end: in how many percent of each second a kernel ran, as the driver counts."""
    query = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "--loop=1"]
    samples: list[int] = []
    try:
        watch = subprocess.Popen(query, stdout=subprocess.PIPE, text=True)
    except OSError:  # without the driver's program nothing is known
        yield samples
        return
    try:
        yield samples
    finally:
        watch.terminate()
        samples += [int(line) for line in watch.communicate()[0].split() if line.isdigit()]


def world(folder: Path) -> tuple[Record, list[str]]:
    """What the world's commands cost at the budget for a GPU."""
    run = [sys.executable, "-m", "tinytx_run.cli"]
    rest, body = ["--corpus", "world", "--budget", "gpu", "--out"], str(folder / "body")
    commands = {"pretrain": ["pretrain", *rest, body]}
    commands["finetune"] = ["finetune", body, *rest, str(folder / "tuned")]
    record, faults = {}, []
    for command, words in commands.items():
        begin = time.perf_counter()
        with busy() as samples:
            done = subprocess.run([*run, *words], cwd=ROOT)
        record[command] = {"seconds": round(time.perf_counter() - begin, 1), "busy_percent": samples}
        faults += [f"{command} ended with {done.returncode}"] if done.returncode else []
    return record, faults + faults_of_time(record)


def lessons(folder: Path) -> tuple[Record, list[str]]:
    """What the lessons cost that do more at the budget for a GPU, three side by side."""
    record, faults = notebooks(folder, "gpu", n_at_once=3, holding="recipes")
    return record, faults + faults_of_time(record)


def faults_of_time(record: Record) -> list[str]:
    """What took longer than the budget for a GPU allows."""
    most = {name: MOST_SECONDS.get(name, MOST_SECONDS["lesson"]) for name in record}
    return [
        f"{name} must take at most {most[name]} s, got {one['seconds']} s"
        for name, one in record.items()
        if one["seconds"] > most[name]
    ]


def benchmark(*words: str) -> Callable[[Path], tuple[Record, list[str]]]:
    """A part that runs a benchmark on the GPU, apart from the results of processors."""

    def measure(folder: Path) -> tuple[Record, list[str]]:
        from benchmarks.__main__ import main

        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            status = main([*words, "--device", "cuda", "--json", "--results", str(folder)])
        if status:
            return {}, [f"benchmarks {' '.join(words)} ended with {status}"]
        return json.loads(printed.getvalue())["records"], []

    return measure


PARTS: dict[str, Callable[[Path], tuple[Any, list[str]]]] = {
    "tests": tests,
    "notebooks": notebooks,
    "steps": benchmark("steps", "--rounds", "3"),
    "writing": benchmark("generation", "--rounds", "3"),
    "race": benchmark("race", "--seeds", "1", "--seconds", "30"),
    "world": world,
    "lessons": lessons,
}
OF_THE_BUDGET = ("world", "lessons")


def machine(commit: str | None) -> Record:
    """On what it ran; a machine without git is told the commit."""
    from tinytx_course.results import provenance

    known = provenance()
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        driver = subprocess.run(query, capture_output=True, text=True).stdout.split("\n")[0].strip()
    except OSError:
        driver = ""
    return {
        "commit": commit or known["commit"],
        "date": known["date"],
        "card": torch.cuda.get_device_name(),
        "n_cards": torch.cuda.device_count(),
        "driver": driver or "unknown",
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "python": sys.version.split()[0],
    }


def main(argv: list[str] | None = None) -> int:
    """Run the parts that are named, or all: 0 when all is well, 1 when not, 2 without a GPU."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu", description=__doc__)
    parts = f"{', '.join(PARTS)}; by default all but the last two, which take longer"
    parser.add_argument("part", nargs="*", help=parts)
    parser.add_argument("--commit", help="of the files, where there is no git to ask")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of gpu.json")
    args = parser.parse_args(argv)
    if unknown := set(args.part) - set(PARTS):
        parser.error(f"part must be one of {', '.join(PARTS)}, got {', '.join(sorted(unknown))}")
    if not torch.cuda.is_available():
        print(NO_GPU, file=sys.stderr)
        return 2
    from tinytx_course.building.gpu import write_pages
    from tinytx_course.results import Results

    store, where, n_faults = Results("gpu", args.results), machine(args.commit), 0
    print(where, flush=True)
    for name in args.part or [name for name in PARTS if name not in OF_THE_BUDGET]:
        begin = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="gpu-") as folder:
            try:
                found, faults = PARTS[name](Path(folder))
            except Exception as error:  # the other parts are run all the same
                found, faults = {}, [f"{type(error).__name__}: {error}"]
        seconds = round(time.perf_counter() - begin, 1)
        store.put(name, {**where, "seconds": seconds, "faults": faults, "found": found})
        if args.results == RESULTS:
            write_pages(ROOT)
        print(f"{name}: {len(faults)} faults, {seconds} s", *faults, sep="\n  ", flush=True)
        n_faults += len(faults)
    return 1 if n_faults else 0


if __name__ == "__main__":
    sys.exit(main())
