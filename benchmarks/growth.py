"""How time and memory of training grow with model, length, vocabulary, batch, texts, and processes.

Each axis changes one size. Its exponent is the slope of time against size on logarithmic axes; next to it is
that of the counted operations over the same sizes. What a small size pays apart from its products, such as
calls of Python, makes the measured exponent smaller.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import torch

from benchmarks.peers import our_loop
from benchmarks.report import Record
from benchmarks.settings import BenchSettings
from benchmarks.steps import BOS, EOS, PAD, StepCase
from tinytx.config import TransformerConfig
from tinytx.loop import TrainingStep
from tinytx.objectives import CausalObjective, FreshObjective
from tinytx.settings import TrainingSettings
from tinytx.tokenizer import Tokenizer
from tinytx.transformer import LanguageModel
from tinytx_course.labs.layers import count_saved_bytes
from tinytx_course.labs.scaling import Workload, scaling
from tinytx_course.labs.timing import Times, exponent, exponent_of_times, spend, take_turns
from tinytx_course.machine import PeakMemory
from tinytx_run.streaming import LargeFile

MIN_SECONDS = 0.05  # a quicker step is repeated, until the clock can see it
#: Bytes of the files that are streamed, a document of about 100 bytes a line.
FILE_BYTES = (10**7, 10**8, 10**9)


def axes(tiny: bool = False) -> dict[str, list[StepCase]]:
    """Sizes of each axis, from the smallest on.

    Examples
    --------
    >>> {name: len(sizes) for name, sizes in axes().items()}
    {'parameters': 7, 'length': 7, 'vocabulary': 6, 'batch': 7}
    """
    base = {"vocab_size": 1_000, "d_model": 128, "n_layers": 2, "batch_size": 8, "seq_len": 64}
    bodies = ((32, 2), (64, 3), (128, 4), (256, 4), (384, 7), (512, 9), (704, 8))  # widths and depths
    changes: dict[str, list[dict[str, int]]] = {
        "parameters": [{"d_model": width, "n_layers": depth, "batch_size": 2} for width, depth in bodies],
        "length": [{"seq_len": 64 * 2**k, "batch_size": 1} for k in range(7)],
        "vocabulary": [{"vocab_size": n} for n in (100, 300, 1_000, 4_000, 15_000, 50_000)],
        "batch": [{"batch_size": 2**k} for k in range(7)],
    }
    if tiny:
        base |= {"d_model": 8, "n_layers": 1, "batch_size": 2, "seq_len": 5}
        changes = {
            "length": [{"seq_len": 5}, {"seq_len": 11}],
            "batch": [{"batch_size": 1}, {"batch_size": 3}],
        }
    return {name: [_size(name, **{**base, **one}) for one in of] for name, of in changes.items()}


def _size(name: str, *, d_model: int, seq_len: int, batch_size: int, **others: Any) -> StepCase:
    config = TransformerConfig(
        d_model=d_model, d_ff=4 * d_model, n_heads=max(1, d_model // 32), max_len=seq_len, **others
    )
    return StepCase(name, config, batch_size, seq_len)


def measure(settings: BenchSettings, ceiling: Record) -> Iterator[tuple[str, Record]]:
    """Time a step at all sizes of an axis in turn, axis by axis; then stream files, then share a batch."""
    for name, sizes in axes(settings.tiny).items():
        yield name, _grown(name, sizes, settings)
    yield "texts", _streamed((10**5, 3 * 10**5) if settings.tiny else FILE_BYTES)
    yield "processes", _shared(settings)


def _grown(name: str, sizes: Sequence[StepCase], settings: BenchSettings) -> Record:
    """Seconds of the processor and bytes saved at each size, with measured and counted exponents."""
    steps = {i: _step(size, settings.device) for i, size in enumerate(sizes)}
    turns = take_turns(
        steps,
        n_rounds=settings.n_rounds,
        min_seconds=0.0 if settings.tiny else MIN_SECONDS,
        device=settings.device,
        label=name,
    )
    times = [turns.processor[i] for i in steps]
    costs = [size.costs() for size in sizes]
    along = {
        "parameters": [cost.parameters.total for cost in costs],
        "length": [size.seq_len for size in sizes],
        "vocabulary": [size.config.vocab_size for size in sizes],
        "batch": [size.batch_size for size in sizes],
    }[name]
    saved = [_saved_bytes(size, settings.device) for size in sizes]
    return {
        "kind": "growth",
        "sizes": along,
        "threads": torch.get_num_threads(),
        "n_rounds": settings.n_rounds,
        "seconds": [each.median for each in times],
        "flops": [cost.flops_training for cost in costs],
        "bytes_saved": saved,
        "exponent": exponent_of_times(along, times).to_dict(),
        "counted_exponent": exponent(along, [cost.flops_training for cost in costs]),
        "bytes_exponent": exponent(along, saved),
        "counted_bytes_exponent": exponent(along, [cost.bytes_activations for cost in costs]),
    }


def _objective(size: StepCase) -> CausalObjective:
    """One batch of random tokens."""
    rng = random.Random(0)
    rows = [
        [rng.randrange(4, size.config.vocab_size) for _ in range(size.seq_len - 1)]
        for _ in range(size.batch_size)
    ]
    return CausalObjective(rows, bos_id=BOS, eos_id=EOS, pad_id=PAD, max_len=size.seq_len)


def _step(size: StepCase, device: torch.device) -> Any:
    """A task: one step of training, in float32."""
    torch.manual_seed(0)
    model = LanguageModel(size.config).to(device)
    training = TrainingSettings(n_steps=1, precision="fp32")
    return our_loop(model, _objective(size), training, [list(range(size.batch_size))], n_updates=1)


def _saved_bytes(size: StepCase, device: torch.device) -> int:
    """Bytes that the forward pass saves for the backward pass."""
    model, objective = LanguageModel(size.config).to(device), _objective(size)
    rows = list(range(size.batch_size))
    return count_saved_bytes(lambda: objective.loss(model, rows), ignore=model.parameters())


def _shared(settings: BenchSettings) -> Record:
    """Seconds of one batch, dealt out to more and more processes of one thread each."""
    counts = [2**i for i in range(max(2, os.cpu_count() or 1).bit_length())]
    sizes = {"d_model": 8, "seq_len": 6, "tokens_per_batch": 24} if settings.tiny else {"d_model": 256}
    work = Workload(**sizes, n_rounds=settings.n_rounds, device=settings.device.type)
    times: list[Times] = []
    for n in counts[1:]:  # each start also times one process alone, in turn with n
        for way in scaling(n, work, report=lambda line: None):
            if way.n_threads == 1 and (way.n_processes == n or not times):
                times.append(Times(tuple(work.tokens_per_batch / each for each in way.tokens_per_second)))
    return {
        "kind": "growth",
        "sizes": counts,
        "threads": 1,
        "n_rounds": settings.n_rounds,
        "seconds": [each.median for each in times],
        "exponent": exponent_of_times(counts, times).to_dict(),
        "counted_exponent": -1.0,
    }


def _streamed(sizes: Sequence[int]) -> Record:
    """Seconds and peak of memory of reading files once, with a step of training in each part."""
    context = multiprocessing.get_context("spawn")
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for n_bytes in sizes:
            path = Path(folder) / f"{n_bytes}.txt"
            n_texts = _write(path, n_bytes)
            with ProcessPoolExecutor(1, context) as pool:
                found.append({"n_texts": n_texts, **pool.submit(_read_once, path).result()})
            path.unlink()
    texts = [one["n_texts"] for one in found]
    return {
        "kind": "growth",
        "sizes": texts,
        "file_bytes": list(sizes),
        "threads": 1,
        **{name: [one[name] for one in found] for name in ("n_parts", "seconds", "peak_bytes")},
        "exponent": {"median": exponent(texts, [one["seconds"] for one in found])},
        "counted_exponent": 1.0,
        "bytes_exponent": exponent(texts, [one["peak_bytes"] for one in found]),
        "counted_bytes_exponent": 0.0,
    }


def _write(path: Path, n_bytes: int) -> int:
    """Write different lines of words until the file is as large; return how many."""
    rng = random.Random(0)
    words = ["".join(rng.choices("aeioulnrst", k=rng.randrange(2, 9))) for _ in range(2_000)]
    n_texts, written = 0, 0
    with path.open("w", encoding="ascii", newline="\n") as file:
        while written < n_bytes:
            lines = [f"{' '.join(rng.choices(words, k=15))} {n_texts + i}\n" for i in range(1_000)]
            written += file.write("".join(lines))
            n_texts += len(lines)
    return n_texts


def _read_once(path: Path) -> dict[str, float]:
    """In a process of its own: one step of training in each part of a file, as at the start of each pass."""
    torch.set_num_threads(1)
    memory = PeakMemory()
    memory.watch(psutil.Process().pid)
    file = LargeFile(path)
    spent = spend(partial(_learn, file), 1, on_gpu=False)
    return {"n_parts": file.n_parts, "seconds": spent.processor, "peak_bytes": memory.stop()}


def _learn(file: LargeFile) -> None:
    tokenizer = Tokenizer.train(file.lines(0)[:5_000], vocab_size=1_000)
    config = _size("texts", d_model=64, seq_len=128, batch_size=1, n_layers=2, vocab_size=1_000).config
    settings = TrainingSettings(n_steps=file.n_parts, precision="fp32")

    def of_pass(part: int) -> CausalObjective:
        ids = tokenizer.encode_batch(file.lines(part))
        return CausalObjective(ids, bos_id=BOS, eos_id=EOS, pad_id=PAD, max_len=config.max_len)

    learning, model = FreshObjective(of_pass), LanguageModel(config)
    learner = TrainingStep(model, learning, settings)
    for part in range(file.n_parts):
        batch, *_ = learning.epoch_batches(seed=0, epoch=part, tokens_per_batch=2_048)
        learner.backward(batch)
        learner.update(settings.lr)
