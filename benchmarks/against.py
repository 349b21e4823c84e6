"""This checkout and an older one: the same rows, measured in turn, each side in a process of its own.

The file is also the script of both processes. There it finds the modules of its own side, in the layout of
today (``benchmarks``) or in the one before it (``tinytx.bench``); the names that the rows use are in both.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    from benchmarks.settings import BenchSettings

ROOT = Path(__file__).resolve().parents[1]
NEW, OLD = "this checkout", "the other checkout"
Task = Callable[[], object]
SEED_LAB = {"d_model": 200, "n_heads": 2, "n_layers": 4, "d_ff": 200}
SMALL_GPT = {"d_model": 256, "n_heads": 4, "n_layers": 6, "d_ff": 1024}
TINY = {"d_model": 8, "n_heads": 2, "n_layers": 1, "d_ff": 16}


def measure_against(directory: Path, settings: BenchSettings, results: Path) -> dict[str, dict[str, Any]]:
    """Time each row of `ROWS` on both sides, round after round, and store it in ``bench-against.json``.

    Parameters
    ----------
    directory : Path
        Another checkout of this project.
    settings : BenchSettings
    results : Path
        Folder of the file.

    Returns
    -------
    dict of str to dict
        By row ``ratio``: how many times as fast this checkout is as the other one, the median over the rounds
        with its 95 % interval; ``processor``: the same of processor time; ``times`` of both sides.

    Raises
    ------
    ValueError
        If the folder holds no checkout.
    RuntimeError
        If a side cannot do a row.
    """
    from tinytx.settings import choose_precision
    from tinytx_course.labs.timing import take_turns
    from tinytx_course.results import Results

    if not (directory / "tinytx" / "__init__.py").is_file():
        raise ValueError(f"--against must be a checkout that holds tinytx/, got {directory}")
    precision = choose_precision("auto", settings.device)
    how = {"threads": torch.get_num_threads(), "precision": precision, "device": str(settings.device)}
    store, records = Results("bench-against", results), {}
    with ExitStack() as stack:
        sides = {
            name: stack.enter_context(closing(Side(where, {**how, "tiny": settings.tiny})))
            for name, where in ((NEW, ROOT), (OLD, directory))
        }
        for row in ROWS:
            for side in sides.values():
                side.ask("build", row)
            tasks = {name: side.run for name, side in sides.items()}
            turns = take_turns(tasks, n_rounds=settings.n_rounds, n_warmup=2, label=row)
            ratio = turns.ratio(OLD, NEW)
            records[row] = {
                "kind": "against",
                **how,
                "n_rounds": settings.n_rounds,
                "commits": {name: side.commit for name, side in sides.items()},
                "ratio": ratio.to_dict(),
                "processor": turns.processor_ratio(OLD, NEW).to_dict(),
                "times": {name: turns.times_of(name) for name in sides},
            }
            store.put(row, records[row])
            settings.report(f"{row}: {ratio} times as fast as {sides[OLD].commit}")
    return records


class Side:
    """A process that imports from one checkout."""

    def __init__(self, directory: Path, how: dict[str, Any]) -> None:
        directory = directory.resolve()
        git = ["git", "-C", str(directory), "describe", "--always", "--dirty", "--exclude=*"]
        self.commit = subprocess.run(git, capture_output=True, text=True).stdout.strip() or "unknown"
        self._process: Any = subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__).resolve()), json.dumps(how)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=directory,
            env={**os.environ, "PYTHONPATH": str(directory)},
        )

    def ask(self, what: str, row: str = "") -> dict[str, Any]:
        """Send a request and wait for the answer."""
        try:
            self._process.stdin.write(json.dumps([what, row]) + "\n")
            self._process.stdin.flush()
            answer = json.loads(self._process.stdout.readline() or '{"error": "the process ended"}')
        except BrokenPipeError:
            answer = {"error": "the process ended"}
        if "error" in answer:
            raise RuntimeError(f"{self.commit}, {row or what}: {answer['error']}")
        return answer

    def run(self) -> object:
        """One call of the task that was built; gives the times that it took over there."""
        from tinytx_course.labs.timing import Spent

        return Spent(**self.ask("run"))

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


# What follows runs in the processes of the sides.


def _module(name: str) -> Any:
    """A module of the benchmarks of this side."""
    package = "benchmarks" if Path("benchmarks").is_dir() else "tinytx.bench"
    return importlib.import_module(f"{package}.{name}")


def _ours(module: Any, *case: object) -> Task:
    build = getattr(module, "our_candidate", None) or module.our_contestant
    return build(*case)[module.OURS].task


def _training_step(sizes: dict[str, int], how: dict[str, Any]) -> Task:
    steps, shared = _module("steps"), _module("generation").GPT2
    batch_size, seq_len = (2, 5) if how["tiny"] else (16, 128)
    sizes = TINY if how["tiny"] else sizes
    config = steps.TransformerConfig(vocab_size=1_000, max_len=seq_len, **sizes, **shared)
    n = steps.N_BATCHES * batch_size * seq_len + 1
    stream = np.random.default_rng(0).integers(10, 1_000, size=n).tolist()
    case = steps.StepCase("against", config, batch_size, seq_len)
    return _ours(steps, case, stream, how["precision"], torch.device(how["device"]))


def _fine_tuning(how: dict[str, Any]) -> Task:
    reviews = _module("reviews")
    n_texts, max_len = (8, 24) if how["tiny"] else (64, 512)
    rng = np.random.default_rng(0)
    lengths = rng.lognormal(4.5, 0.8, size=n_texts).clip(3, max_len).astype(int)  # as long as real reviews
    rows = tuple(tuple(rng.integers(10, 8_000, size=n).tolist()) for n in lengths)
    sizes = {**(TINY if how["tiny"] else SEED_LAB), "vocab_size": 8_000, "max_len": max_len}
    config = reviews.TransformerConfig(dropout=0.1, n_segments=2, **sizes, **reviews.BERT)
    labels = tuple(i % 2 for i in range(n_texts))
    case = reviews.ReviewsCase(config, rows, labels, how["precision"], torch.device(how["device"]))
    return _ours(reviews, case)


def _greedy(how: dict[str, Any]) -> Task:
    generation = _module("generation")
    sizes = generation.TINY if how["tiny"] else generation._Sizes(new=64)
    torch.manual_seed(0)
    config = generation.TransformerConfig(**sizes.of_model(1_000), **generation.GPT2)
    model = generation.LanguageModel(config).to(how["device"]).eval()
    prompts = torch.randint(1_000, (1, sizes.prompt))
    return lambda: generation._continued(model, prompts, sizes.new)


def _beams(how: dict[str, Any]) -> Task:
    generation = _module("generation")
    sizes = generation.TINY if how["tiny"] else generation._Sizes(translated=32)
    torch.manual_seed(0)
    config = generation.TransformerConfig(**sizes.of_model(1_000), **generation._marian())
    model = generation.Translator(config).to(how["device"]).eval()
    src_ids = torch.randint(generation.BOS + 1, 1_000, (4, sizes.source), device=how["device"])
    return lambda: generation._searched(model, src_ids, sizes.n_beams, sizes.translated)


ROWS: dict[str, Callable[[dict[str, Any]], Task]] = {
    "training step, seed lab, 16 x 128": partial(_training_step, SEED_LAB),
    "training step, small GPT, 16 x 128": partial(_training_step, SMALL_GPT),
    "fine-tuning on 64 reviews": _fine_tuning,
    "greedy generation, 64 tokens": _greedy,
    "4 beams, 32 tokens, 4 sources": _beams,
}


def serve(how: dict[str, Any]) -> None:
    """Answer requests on standard input until it ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print must not lie between the answers
    torch.set_num_threads(how["threads"])
    task: Task = int
    for line in sys.stdin:
        what, row = json.loads(line)
        try:
            if what == "build":
                import tinytx

                if not Path(tinytx.__file__ or "").is_relative_to(Path.cwd()):
                    raise ImportError(f"tinytx must come from {Path.cwd()}, got {tinytx.__file__}")
                task, answer = ROWS[row](how), {}
            else:
                answer = _timed(task, how["device"].startswith("cuda"))
        except Exception as problem:
            answer = {"error": f"{type(problem).__name__}: {problem}"}
        answers.write(json.dumps(answer) + "\n")


def _timed(task: Task, on_gpu: bool) -> dict[str, Any]:
    """Seconds of one call; the other side may lack the module that measures here."""
    if on_gpu:
        torch.cuda.synchronize()
    start, of_processor = time.perf_counter(), time.process_time()
    task()
    if on_gpu:
        torch.cuda.synchronize()
    return {"wall": time.perf_counter() - start, "processor": time.process_time() - of_processor}


if __name__ == "__main__":
    serve(json.loads(sys.argv[1]))
