"""Exercises on translation: greedy and beam search on next-token distributions drawn once, and chrF."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from tinytx_course.exercises.calling import working_device
from tinytx_course.exercises.card import Part
from tinytx_course.exercises.comparing import ids, number
from tinytx_course.exercises.exercise import Exercise, mixed
from tinytx_course.exercises.observation import Call

if TYPE_CHECKING:
    from tinytx_course.exercises.judging import Trial

_BOS, _EOS = 1, 2  # those of the lesson
_OTHERS = {"bos": 5, "eos": 3}
_LONGEST_PATH = 32  # ids that are explained; right answers have up to 7
_LONGEST_PREFIX = 100


class _Step:
    """A next-token distribution for every prefix, drawn once from a seed.

    Ids are 0 to V - 1; ``bos`` is hardly ever predicted. Takes a list, a tuple, an array or a tensor; answers
    on the device of a tensor, else on the default one. A prefix that grows without end is refused.
    """

    def __init__(self, seed: int, eos_bias: float = 0.0, *, bos: int = _BOS, eos: int = _EOS) -> None:
        self._seed, self._vocab_size, self._eos_bias = seed, 7, eos_bias
        self.bos, self.eos = bos, eos
        self._known: dict[tuple[int, ...], Tensor] = {}

    def __call__(self, prefix_ids: Any) -> Tensor:
        device = prefix_ids.device if isinstance(prefix_ids, Tensor) else working_device()
        prefix = tuple(int(i) for i in np.asarray(_listed(prefix_ids)).reshape(-1))
        if len(prefix) > _LONGEST_PREFIX:
            raise ValueError(f"a prefix must hold at most {_LONGEST_PREFIX} ids, got {len(prefix)}")
        if prefix not in self._known:
            self._known[prefix] = torch.tensor(self._log_probs(prefix), dtype=torch.float32, device="cpu")
        return self._known[prefix].clone().to(device)

    def _log_probs(self, prefix: tuple[int, ...]) -> list[float]:
        state = self._seed
        for token in prefix:
            state = mixed(state + token + 1)
        logits = [5.0 * mixed(state + 1000 + token) / 2**64 for token in range(self._vocab_size)]
        logits[self.bos] -= 8.0
        logits[self.eos] += self._eos_bias
        log_total = math.log(sum(map(math.exp, logits)))
        return [logit - log_total for logit in logits]

    def __repr__(self) -> str:
        return "step"


def _listed(ids: Any) -> Any:
    """Ids without tensors, which NumPy reads on the CPU only."""
    if isinstance(ids, (list, tuple)):
        return [_listed(one) for one in ids]
    return ids.tolist() if isinstance(ids, Tensor) else ids


def _describe_paths(trial: Trial) -> list[Part]:
    """How probable the expected and the found sequence are, step by step."""
    step, *_ = trial.call.arguments
    rows = [("expected", trial.expected)] + ([("yours", trial.got)] if trial.got is not None else [])
    lines = []
    for name, reading in rows:
        path = reading.tensors[0][:_LONGEST_PATH].tolist()
        parts = [float(step(path[:i])[token]) for i, token in enumerate(path) if i and 0 <= token < 7]
        said = " ".join(f"{part:.2f}" for part in parts)
        n_more = len(reading.tensors[0]) - len(path)
        more = f" and {n_more:,} more" if n_more else ""
        lines.append(f"{name} {path}{more}: log-probabilities {said}, sum {sum(parts):.2f}")
        if trial.call.arguments[5:]:  # the length penalty of beam search
            lines[-1] += f", score {sum(parts) / max(len(parts), 1) ** trial.call.arguments[5]:.3f}"
    return ["Along the way, after each prefix:\n" + "\n".join(lines)]


def _greedy_calls(seed: int) -> Iterator[Call]:
    biases = (2.0, 0.0, 1.0, 0.5, 1.5, 0.5, 1.0, 0.0)
    drawn = [
        (_Step(7919 * seed + n, eos_bias, **_OTHERS if n % 2 else {}), n // 2 + 2)
        for n, eos_bias in enumerate(biases)
    ]
    endless = _Step(7919 * seed, -20.0)
    drawn += [(_Step(1138), 3), (_Step(3614, 1.0), 3), (endless, 4)]
    for step, max_len in sorted(drawn, key=lambda row: row[1]):
        yield Call((step, step.bos, step.eos, max_len))


# (seed of the step, bias of eos, beam_size, max_len, length_penalty): found by a search over many; together
# they tell each slip from the right answer and from every other slip, whatever the seed of the check.
_TELLING = (
    (1619, 1.5, 3, 3, 2.0),
    (5129, 1.0, 2, 4, 1.0),
    (3955, 0.0, 3, 4, 0.5),
    (5318, 0.5, 2, 4, 2.0),
    (5036, 1.5, 3, 4, 1.3),
    (2520, 1.5, 2, 4, 0.7),
    (28, 1.0, 2, 4, 2.0),  # all continuations, but only until there are enough beams
    (2132, 1.5, 3, 4, 1.0),  # probabilities in place of their logarithms
    (1, 1.5, 2, 4, 1.0),  # the penalty is added
    (51, 0.5, 2, 4, 1.0),  # one beam too many gives what no other slip does
    (3338, 1.0, 1, 5, 0.0),
    (8253, 0.5, 2, 5, 2.0),
    (7938, 0.5, 2, 6, 0.0),
)
_OF_EVERY_SIZE = ((0.5, 2, 2, 1.0), (1.5, 2, 3, 0.0), (1.0, 2, 3, 1.0), (0.5, 3, 5, 0.6))


def _beam_calls(seed: int) -> Iterator[Call]:
    drawn = [
        (_Step(7919 * seed + n, eos_bias, **_OTHERS if n % 2 else {}), sizes)
        for n, (eos_bias, *sizes) in enumerate(_OF_EVERY_SIZE)
    ]
    telling = [(_Step(step_seed, eos_bias), sizes) for step_seed, eos_bias, *sizes in _TELLING]
    for step, sizes in sorted([*drawn, *telling], key=lambda row: row[1][1]):
        yield Call((step, step.bos, step.eos, *sizes))


_SENTENCES = "La fin est belle.", "Le style est lent, mais il me touche.", "C'est un bel ouvrage !"


def _chrf_calls(seed: int) -> Iterator[Call]:
    fixed = [("ab", "a bc"), ("", "ab"), ("a", "b"), ("aa a", "a"), ("A b", "a b"), ("abab ab", "abc abd ab")]
    fixed += [("la la fin", "la fin"), ("le roman", "le roman"), ("fin", "la fin est belle")]
    drawn = random.Random(seed)
    for sentence in _SENTENCES:
        words = sentence.split()
        shuffled = drawn.sample(words, len(words))
        fixed += [(" ".join(shuffled), sentence), (" ".join([*words[1:], drawn.choice(words)]), sentence)]
    for translation, reference in sorted(fixed, key=lambda pair: sum(map(len, pair))):
        yield Call((translation, reference))


EXERCISES = (
    Exercise(name="greedy_decode", read=ids, calls=_greedy_calls, explain=_describe_paths),
    Exercise(name="beam_search", read=ids, calls=_beam_calls, explain=_describe_paths),
    Exercise(name="chrf", read=number, calls=_chrf_calls),
)
