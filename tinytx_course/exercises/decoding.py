"""Exercises on decoding: greedy and beam search on next-token distributions drawn once, and the KV cache."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from tinytx_course.exercises.calling import working_device
from tinytx_course.exercises.card import Part
from tinytx_course.exercises.comparing import floats, ids, pair
from tinytx_course.exercises.exercise import Exercise, chosen, generator, mistakes, mixed, normal
from tinytx_course.exercises.observation import Call

if TYPE_CHECKING:
    from tinytx_course.exercises.judging import Trial

_BOS, _EOS = 1, 2  # those of the lesson
_OTHERS = {"bos": 5, "eos": 3}
Slips = frozenset[str]
Beam = tuple[list[int], float]


class _Step:
    """A next-token distribution for every prefix, drawn once from a seed.

    Ids are 0 to V - 1; ``bos`` is hardly ever predicted. Takes a list, a tuple, an array or a tensor; answers
    on the device of a tensor, else on the default one.
    """

    def __init__(self, seed: int, eos_bias: float = 0.0, *, bos: int = _BOS, eos: int = _EOS) -> None:
        self._seed, self._vocab_size, self._eos_bias = seed, 7, eos_bias
        self.bos, self.eos = bos, eos
        self._known: dict[tuple[int, ...], Tensor] = {}

    def __call__(self, prefix_ids: Any) -> Tensor:
        device = prefix_ids.device if isinstance(prefix_ids, Tensor) else working_device()
        prefix = tuple(int(i) for i in np.asarray(_listed(prefix_ids)).reshape(-1))
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
        path = reading.tensors[0].tolist()
        parts = [float(step(path[:i])[token]) for i, token in enumerate(path) if i and 0 <= token < 7]
        said = " ".join(f"{part:.2f}" for part in parts)
        lines.append(f"{name} {path}: log-probabilities {said}, sum {sum(parts):.2f}")
        if trial.call.arguments[5:]:  # the length penalty of beam search
            lines[-1] += f", score {sum(parts) / max(len(parts), 1) ** trial.call.arguments[5]:.3f}"
    return ["Along the way, after each prefix:\n" + "\n".join(lines)]


def _read(bos_id: int, eos_id: int, slips: Slips) -> tuple[int, int]:
    """The ids that a function uses, with slips."""
    return _BOS if "bos-written-in" in slips else bos_id, _EOS if "eos-written-in" in slips else eos_id


def _greedy(step: _Step, bos_id: int, eos_id: int, max_len: int, *, slips: Slips = frozenset()) -> list[int]:
    """Greedy decoding with slips."""
    bos_id, eos_id = _read(bos_id, eos_id, slips)
    found = [bos_id]
    longest = max_len + ("max-len-new-tokens" in slips) - ("one-token-short" in slips)
    longest = 200 if "max-len-ignored" in slips else longest
    while len(found) < longest:
        prefix = found[:1] if "prefix-not-extended" in slips else found
        log_probs = step(prefix[-1:] if "last-id-only" in slips else prefix)
        if "eos-forbidden" in slips:
            log_probs[eos_id] = -torch.inf
        rank = -1 if "least-probable" in slips else int("second-best" in slips)
        best = int(log_probs.argsort(descending=True)[rank])
        if best == eos_id and "eos-dropped" in slips:
            break
        found.append(best)
        if best == eos_id and "goes-on-after-eos" not in slips:
            break
    if "eos-always-appended" in slips and found[-1] != eos_id:
        found.append(eos_id)
    if "eos-forced-at-end" in slips and len(found) == max_len:
        found[-1] = eos_id
    return found[1:] if "bos-dropped" in slips else found


def _greedy_calls(seed: int) -> Iterator[Call]:
    biases = (2.0, 0.0, 1.0, 0.5, 1.5, 0.5, 1.0, 0.0)
    drawn = [
        (_Step(7919 * seed + n, eos_bias, **_OTHERS if n % 2 else {}), n // 2 + 2)
        for n, eos_bias in enumerate(biases)
    ]
    for step, max_len in sorted([*drawn, (_Step(1138), 3), (_Step(3614, 1.0), 3)], key=lambda row: row[1]):
        yield Call((step, step.bos, step.eos, max_len))


GREEDY_DECODE = Exercise(
    name="greedy_decode",
    read=ids,
    solve=_greedy,
    calls=_greedy_calls,
    mistakes=mistakes(
        "greedy_decode",
        with_slips=_greedy,
        exclusive=(
            ["goes-on-after-eos", "eos-dropped", "eos-always-appended", "eos-forbidden", "max-len-ignored"],
            ["last-id-only", "prefix-not-extended"],
            ["least-probable", "second-best"],
            ["one-token-short", "max-len-new-tokens", "max-len-ignored"],
            ["eos-forced-at-end", "eos-always-appended", "eos-dropped"],
        ),
        together=("bos-dropped", "max-len-new-tokens", "eos-dropped"),
    ),
    explain=_describe_paths,
)


def _continuations(step: _Step, beams: list[Beam], slips: Slips) -> list[Beam]:
    """All continuations, the best first."""
    found: list[Beam] = []
    for path, total in beams:
        log_probs = step(path[-1:] if "last-id-only" in slips else path)
        gain = log_probs.double().exp() if "probabilities-summed" in slips else log_probs.double()
        each = [
            ([*path, token], (0.0 if "only-last-step" in slips else total) + g)
            for token, g in enumerate(gain.tolist())
        ]
        if "one-continuation-each" in slips and len(beams) > 1:
            each = [max(each, key=lambda beam: beam[1])]
        found += each
    return sorted(found, key=lambda beam: beam[1], reverse="worst-kept" not in slips)


_SCORES: dict[str, Callable[[float, int, float], float]] = {  # from the sum, the length and the penalty
    "penalty-ignored": lambda total, length, penalty: total,
    "always-mean": lambda total, length, penalty: total / length,
    "penalty-multiplied": lambda total, length, penalty: total * length**penalty,
    "penalty-as-factor": lambda total, length, penalty: total / (length * penalty) if penalty else total,
    "penalty-subtracted": lambda total, length, penalty: total - penalty * length,
    "google-penalty": lambda total, length, penalty: total / ((5 + length) / 6) ** penalty,
}


def _final_score(beam: Beam, eos_id: int, penalty: float, slips: Slips) -> float:
    path, total = beam
    length = len(path) - 1 + ("penalty-counts-bos" in slips)
    length -= "penalty-leaves-out-eos" in slips and path[-1] == eos_id
    score = chosen(_SCORES, slips, lambda total, length, penalty: total / length**penalty)
    return score(total, max(length, 1), penalty)


def _beam(
    step: _Step,
    bos_id: int,
    eos_id: int,
    beam_size: int,
    max_len: int,
    length_penalty: float,
    *,
    slips: Slips = frozenset(),
) -> list[int]:
    """Beam search with slips."""
    bos_id, eos_id = _read(bos_id, eos_id, slips)
    beams: list[Beam] = [([bos_id], 0.0)]
    finished: list[Beam] = []
    longest = max_len + ("max-len-new-tokens" in slips) - ("one-token-short" in slips)
    if "one-beam" in slips:
        beam_size = 1
    size = beam_size
    while beams and len(beams[0][0]) < longest:
        beams, ended = _kept(step, beams, size, eos_id, finished, length_penalty, slips)
        finished += ended
        if "beams-shrink" in slips:
            size = beam_size - len(finished)
            if size <= 0:
                break
        if "first-finished-wins" in slips and ended:
            beams = []
        if "stops-when-enough-finished" in slips and len(finished) >= beam_size:
            break
    return _answer(beams, finished, eos_id, length_penalty, slips)


def _kept(
    step: _Step, beams: list[Beam], size: int, eos_id: int, finished: list[Beam], penalty: float, slips: Slips
) -> tuple[list[Beam], list[Beam]]:
    """The beams that continue, and those that have just ended."""
    found = _continuations(step, beams, slips)
    if "goes-on-after-eos" in slips:
        return found[:size], []
    unfinished = [beam for beam in found if beam[0][-1] != eos_id][:size]
    pool = found[:size]
    if slips & {"finished-take-a-place", "finished-take-a-place-by-score"}:
        by_sum = "finished-take-a-place" in slips
        pool = [*found, *finished]
        pool.sort(
            key=lambda beam: beam[1] if by_sum else _final_score(beam, eos_id, penalty, slips), reverse=True
        )
        pool = pool[:size]
        finished.clear()
    elif "places-refilled" in slips:
        pool = found[: found.index(unfinished[-1]) + 1] if unfinished else found
    elif "places-refilled-from-double" in slips:
        pool = found[: 2 * size]
    elif "every-ending-finished" in slips:
        pool = found
    ended = [beam for beam in pool if beam[0][-1] == eos_id]
    return [beam for beam in pool if beam[0][-1] != eos_id][:size], ended


def _answer(beams: list[Beam], finished: list[Beam], eos_id: int, penalty: float, slips: Slips) -> list[int]:
    pool = [*finished, *beams]
    if "finished-forgotten" in slips and beams:
        pool = beams
    if "unfinished-forgotten" in slips and finished:
        pool = finished
    if "first-of-unfinished" in slips:
        pool = beams[:1] or finished[:1]
    best = max(pool, key=lambda beam: _final_score(beam, eos_id, penalty, slips))[0]
    if "bos-dropped" in slips:
        best = best[1:]
    return best[:-1] if "eos-dropped" in slips and best[-1] == eos_id else best


_BEAM_APART = (
    [*_SCORES, "penalty-counts-bos", "penalty-leaves-out-eos"],
    [
        "places-refilled",
        "places-refilled-from-double",
        "every-ending-finished",
        "finished-take-a-place",
        "finished-take-a-place-by-score",
        "goes-on-after-eos",
        "beams-shrink",
    ],
    ["finished-forgotten", "unfinished-forgotten", "first-of-unfinished", "goes-on-after-eos"],
    ["first-finished-wins", "stops-when-enough-finished"],
    ["one-token-short", "max-len-new-tokens"],
    [
        "one-beam",
        "one-continuation-each",
        "only-last-step",
        "probabilities-summed",
        "worst-kept",
        "last-id-only",
    ],
)


# (seed of the step, bias of eos, beam_size, max_len, length_penalty): found by a search over many; together
# they tell each slip from the right answer and from every other slip, whatever the seed of the check.
_TELLING = (
    (1619, 1.5, 3, 3, 2.0),
    (5129, 1.0, 2, 4, 1.0),
    (3955, 0.0, 3, 4, 0.5),
    (5318, 0.5, 2, 4, 2.0),
    (5036, 1.5, 3, 4, 1.3),
    (2520, 1.5, 2, 4, 0.7),
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


BEAM_SEARCH = Exercise(
    name="beam_search",
    read=ids,
    solve=_beam,
    calls=_beam_calls,
    mistakes=mistakes(
        "beam_search",
        with_slips=_beam,
        exclusive=_BEAM_APART,
        together=("penalty-ignored", "penalty-counts-bos", "bos-dropped"),
    ),
    explain=_describe_paths,
)


_SCALES: dict[str, Callable[[int, int, int], float]] = {  # from D, K and the number of keys
    "not-scaled": lambda d, k, n: 1.0,
    "scale-without-root": lambda d, k, n: k,
    "scale-by-model-width": lambda d, k, n: math.sqrt(d),
    "scale-by-keys": lambda d, k, n: math.sqrt(n),
    "scale-multiplied": lambda d, k, n: 1 / math.sqrt(k),
}
_PROJECTIONS = {  # of query, key and value: which of w_q, w_k, w_v
    "query-from-w-k": (1, 1, 2),
    "key-from-w-q": (0, 0, 2),
    "value-from-w-k": (0, 1, 1),
    "key-from-w-v": (0, 2, 2),
    "key-and-value-exchanged": (0, 2, 1),
    "query-and-key-exchanged": (1, 0, 2),
}


def _grown(cache: Tensor, newest: Tensor, slips: Slips) -> Tensor:
    """Cache and newest key and value as one tensor, with slips."""
    if "newest-first" in slips:
        return torch.cat([newest, cache], dim=2)
    if "newest-twice" in slips:
        return torch.cat([cache, newest, newest], dim=2)
    if "newest-overwrites-last" in slips and cache.shape[2]:
        return torch.cat([cache[:, :, :-1], newest], dim=2)
    if "oldest-dropped" in slips and cache.shape[2]:
        return torch.cat([cache[:, :, 1:], newest], dim=2)
    return torch.cat([cache, newest], dim=2)


def _step_weights(scores: Tensor, slips: Slips) -> Tensor:
    """Attention weights (B, 1, T + 1) of the newest token, with slips."""
    if "triangle-from-the-left" in slips:
        scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -torch.inf)
    if "newest-hidden" in slips:
        scores = scores.clone()
        scores[..., -1] = -torch.inf
    if "newest-alone" in slips:
        scores = scores.clone()
        scores[..., :-1] = -torch.inf
    if "softmax-over-batch" in slips:
        return scores.softmax(0)
    if "softmax-over-queries" in slips:
        return scores.softmax(1)
    return scores if "no-softmax" in slips else scores.softmax(-1)


def _cached_step(
    x: Tensor, cache: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, *, slips: Slips = frozenset()
) -> tuple[Tensor, Tensor]:
    """One step of an attention head with a KV cache, with slips."""
    which = chosen(_PROJECTIONS, slips, (0, 1, 2))
    q, k, v = (x @ (w_q, w_k, w_v)[i] for i in which)  # (B, 1, K)
    grown = _grown(cache, torch.stack([k, v]), slips)  # (2, B, T + 1, K)
    read = cache if "newest-not-read" in slips else grown
    keys, values = read.flip(0) if "halves-exchanged" in slips else read
    if "first-row-for-all" in slips:
        keys, values = (each[:1].expand_as(each) for each in (keys, values))
    scale = chosen(_SCALES, slips, lambda d, k, n: math.sqrt(k))(x.shape[-1], q.shape[-1], keys.shape[1])
    output = _step_weights(q @ keys.transpose(1, 2) / scale, slips) @ values  # (B, 1, K)
    if "output-without-axis" in slips:
        output = output[:, 0]
    if "newest-only-returned" in slips:
        return output, torch.stack([k, v])
    if "halves-returned-exchanged" in slips:
        return output, grown.flip(0)
    return output, cache if "cache-not-grown" in slips else grown


def _cached_step_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 18)
    x = torch.tensor([[[1.0, 2.0, 0.0]]], device="cpu")
    weights = [[[1.0], [0.0], [1.0]], [[0.0], [1.0], [0.0]], [[0.0], [3.0], [1.0]]]
    yield Call((x, torch.tensor([[[[0.0]]], [[[2.0]]]], device="cpu"), *map(torch.tensor, weights)))
    for b, t, d, k in ((1, 2, 3, 2), (2, 0, 3, 2), (2, 3, 5, 3), (3, 5, 4, 7)):
        shapes = ((b, 1, d), (2, b, t, k), (d, k), (d, k), (d, k))
        yield Call(tuple(normal(rng, *shape).round(decimals=1) for shape in shapes))


CACHED_STEP = Exercise(
    name="cached_step",
    read=pair(floats, floats, "output, cache"),
    solve=_cached_step,
    calls=_cached_step_calls,
    mistakes=mistakes(
        "cached_step",
        with_slips=_cached_step,
        exclusive=(
            [*_SCALES],
            [*_PROJECTIONS],
            ["newest-not-read", "newest-hidden", "newest-alone", "no-softmax", "softmax-over-queries"],
            ["cache-not-grown", "newest-only-returned", "halves-returned-exchanged"],
        ),
        together=("not-scaled", "cache-not-grown"),
    ),
)
EXERCISES = (GREEDY_DECODE, BEAM_SEARCH, CACHED_STEP)
