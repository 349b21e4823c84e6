"""Where the time of a training step is spent: a clock on each operation."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

PRODUCTS = "products"
REST = "the rest"
# Beginnings of the names of operations, by what they do; the first that fits counts.
KINDS: dict[str, tuple[str, ...]] = {
    PRODUCTS: ("mm", "addmm", "bmm", "baddbmm", "mkldnn"),
    "fused attention": ("_scaled_dot_product", "_flash_attention", "_efficient_attention", "_cudnn"),
    "softmax and loss": ("softmax", "_softmax", "log_softmax", "_log_softmax", "nll_loss", "amax", "gather"),
    "norms": ("native_layer_norm", "layer_norm", "_fused_rms_norm"),
    "optimizer": ("_fused_adam", "_foreach", "_fused_sgd", "linalg_vector_norm"),
    "copies": ("_to_copy", "copy", "clone", "cat", "fill"),
}


@dataclass(frozen=True)
class Profile:
    """Seconds and number of calls of each operation, by name.

    On a CPU the clock is processor time; on a GPU time on the wall, synchronised after each operation.
    """

    seconds: Mapping[str, float]
    calls: Mapping[str, int]

    @property
    def total(self) -> float:
        """Seconds of all operations, without the time between them."""
        return sum(self.seconds.values())

    def by_kind(self) -> dict[str, float]:
        """Seconds by kind of operation, in the order of `KINDS`, the rest last."""
        seconds_of = dict.fromkeys([*KINDS, REST], 0.0)
        for name, seconds in self.seconds.items():
            seconds_of[kind_of(name)] += seconds
        return seconds_of


def kind_of(name: str) -> str:
    """What an operation is for.

    Examples
    --------
    >>> kind_of("addmm"), kind_of("native_layer_norm_backward"), kind_of("gelu")
    ('products', 'norms', 'the rest')
    """
    return next((kind for kind, beginnings in KINDS.items() if name.startswith(beginnings)), REST)


def profile(task: Callable[[], object]) -> Profile:
    """Run a task twice, the second time with a clock on each operation, forward, backward and update alike.

    Notes
    -----
    Some microseconds of overhead an operation are not counted. On a CPU let torch have one thread: processor
    time sums over threads.

    Examples
    --------
    >>> a = torch.ones(3, 3)
    >>> profile(lambda: a @ a + a).calls == {"mm": 1, "add": 1}
    True
    """
    task()
    with _Watch() as watch:
        task()
    longest_first = sorted(watch.seconds, key=lambda name: -watch.seconds[name])
    return Profile(*({name: found[name] for name in longest_first} for found in (watch.seconds, watch.calls)))


class _Watch(TorchDispatchMode):
    """Measures every operation on its way to its kernel."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.calls: Counter[str] = Counter()
        self._on_gpu = torch.cuda.is_available()
        self._clock = time.perf_counter if self._on_gpu else time.process_time

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one operation between two readings of the clock."""
        start = self._clock()
        result = func(*args, **(kwargs or {}))
        if self._on_gpu:
            torch.cuda.synchronize()
        name = func._schema.name.split("::")[-1]
        self.seconds[name] += self._clock() - start
        self.calls[name] += 1
        return result
