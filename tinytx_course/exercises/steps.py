"""What decoders are tried on: next-token distributions drawn once, and the slips that both can make."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from tinytx_course.exercises.card import Part

if TYPE_CHECKING:
    from tinytx_course.exercises.judging import Trial

BOS, EOS = 1, 2


def _mixed(state: int) -> int:
    """Scramble 64 bits (splitmix64), the same with every version of every library."""
    state = (state + 0x9E3779B97F4A7C15) % 2**64
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    state = (state ^ (state >> 27)) * 0x94D049BB133111EB % 2**64
    return state ^ (state >> 31)


class Step:
    """A next-token distribution for every prefix, drawn once from a seed.

    Ids are 0 to V - 1; ``BOS`` is hardly ever predicted. Takes a list, a tuple, an array or a tensor.
    """

    def __init__(self, seed: int, vocab_size: int = 7, eos_bias: float = 0.0) -> None:
        self._seed, self._vocab_size, self._eos_bias = seed, vocab_size, eos_bias
        self._known: dict[tuple[int, ...], Tensor] = {}

    def __call__(self, prefix_ids: Any) -> Tensor:
        prefix = tuple(int(i) for i in np.asarray(prefix_ids).reshape(-1))
        if prefix not in self._known:
            self._known[prefix] = torch.tensor(self._log_probs(prefix), dtype=torch.float32, device="cpu")
        return self._known[prefix].clone()

    def _log_probs(self, prefix: tuple[int, ...]) -> list[float]:
        state = self._seed
        for token in prefix:
            state = _mixed(state + token + 1)
        logits = [5.0 * _mixed(state + 1000 + token) / 2**64 for token in range(self._vocab_size)]
        logits[BOS] -= 8.0
        logits[EOS] += self._eos_bias
        log_total = math.log(sum(map(math.exp, logits)))
        return [logit - log_total for logit in logits]

    def __repr__(self) -> str:
        return "step"


def describe_paths(trial: Trial) -> list[Part]:
    """How probable the expected and the found sequence are, step by step."""
    step, *_ = trial.call.arguments
    rows = [("expected", trial.expected)] + ([("yours", trial.got)] if trial.got is not None else [])
    lines = []
    for name, reading in rows:
        path = reading.tensors[0].tolist()
        parts = [float(step(path[:i])[token]) for i, token in enumerate(path) if i and 0 <= token < 7]
        said = " ".join(f"{part:.2f}" for part in parts)
        lines.append(f"{name} {path}: log-probabilities {said}, sum {sum(parts):.2f}" + _score(trial, parts))
    return ["Along the way, after each prefix:\n" + "\n".join(lines)]


def _score(trial: Trial, parts: list[float]) -> str:
    if len(trial.call.arguments) < 6:
        return ""
    penalty = trial.call.arguments[5]
    return f", score {sum(parts) / max(len(parts), 1) ** penalty:.3f}"


COMMON_SLIPS = {
    "bos-dropped": ("The answer lacks `bos_id` at its beginning.", ""),
    "eos-dropped": ("The answer lacks `eos_id`, which was reached: it belongs to the answer.", ""),
    "max-len-new-tokens": (
        "`max_len` tokens were generated: `max_len` counts all ids, `bos_id` too.",
        "",
    ),
    "last-id-only": ("`step` is given the last id only: it needs the whole prefix.", ""),
}
