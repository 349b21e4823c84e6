"""Whether half precision pays on this processor: found out by a short measurement."""

from __future__ import annotations

import functools
import time

import torch

WIDTH = 384
N_TRIES = 9
LEAST_GAIN = 1.2  # less would not repay what is converted to and fro


@functools.cache
def bf16_pays_on_cpu() -> bool:
    """Whether products of matrices are clearly faster in bfloat16 than in float32.

    Returns
    -------
    bool
        Found out once in a process, in some hundredths of a second.

    Notes
    -----
    Having instructions for bfloat16 is not enough: with tiles (AMX) a product takes half the time or less,
    but a server that has AVX-512 BF16 alone was seen to need twice the time of float32; without either it is
    emulated, which takes several times as long. So it is measured, as the processor time of one thread
    (several wait for each other on a busy machine), of which the best of several tries counts.
    """
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        seconds = {dtype: _seconds(dtype) for dtype in (torch.float32, torch.bfloat16)}
    finally:
        torch.set_num_threads(n_threads)
    return seconds[torch.float32] > LEAST_GAIN * seconds[torch.bfloat16]


def _seconds(dtype: torch.dtype) -> float:
    """Processor time of a product, the best of some tries after one to warm up."""
    a = torch.full((WIDTH, WIDTH), 0.5, dtype=dtype)
    out = torch.empty_like(a)
    found = []
    for _ in range(1 + N_TRIES):
        start = time.thread_time()
        torch.mm(a, a, out=out)
        found.append(time.thread_time() - start)
    return min(found[1:])
