"""The exercise on greedy decoding."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from tinytx_course.exercises.comparing import ids
from tinytx_course.exercises.exercise import Exercise, family
from tinytx_course.exercises.observation import Call
from tinytx_course.exercises.steps import BOS, COMMON_SLIPS, EOS, Step, describe_paths


def _greedy(
    step: Step, bos_id: int, eos_id: int, max_len: int, *, slips: frozenset[str] = frozenset()
) -> list[int]:
    """Greedy decoding with slips."""
    found = [bos_id]
    longest = max_len + ("max-len-new-tokens" in slips) - ("one-token-short" in slips)
    if "max-len-ignored" in slips:
        longest = 200
    while len(found) < longest:
        prefix = (
            found[-1:] if "last-id-only" in slips else found[:1] if "prefix-not-extended" in slips else found
        )
        log_probs = step(prefix)
        if "eos-forbidden" in slips:
            log_probs[eos_id] = -torch.inf
        chosen = int(log_probs.argmin() if "least-probable" in slips else log_probs.argmax())
        if "second-best" in slips:
            chosen = int(log_probs.argsort(descending=True)[1])
        if chosen == eos_id and "eos-dropped" in slips:
            break
        found.append(chosen)
        if chosen == eos_id and "goes-on-after-eos" not in slips:
            break
    if "eos-always-appended" in slips and found[-1] != eos_id:
        found.append(eos_id)
    if "eos-forced-at-end" in slips and len(found) == max_len:
        found[-1] = eos_id
    return found[1:] if "bos-dropped" in slips else found


_GREEDY_SLIPS = {
    **COMMON_SLIPS,
    "goes-on-after-eos": ("Decoding goes on after `eos_id`: stop there.", ""),
    "max-len-ignored": ("It goes on until `eos_id`, however long that takes: stop at `max_len` ids.", ""),
    "one-token-short": ("It stops one token early: the answer may have `max_len` ids.", ""),
    "prefix-not-extended": ("`step` is given the same prefix again and again: add each new id to it.", ""),
    "least-probable": ("The least probable id is taken: the most probable one is asked (argmax).", ""),
    "second-best": ("The second best id is taken: the best one is asked (argmax).", ""),
    "eos-always-appended": ("`eos_id` is added at the end even if it was not reached.", ""),
    "eos-forced-at-end": (
        "The last id is replaced by `eos_id` when `max_len` is reached: leave it as it is.",
        "",
    ),
    "eos-forbidden": ("`eos_id` is never chosen: it is a token like others, and ends the text.", ""),
}


def _greedy_calls(seed: int) -> Iterator[Call]:
    drawn = [
        (7919 * seed + n, eos_bias, n // 2 + 2)
        for n, eos_bias in enumerate((2.0, 0.0, 1.0, 0.5, 1.5, 0.5, 1.0, 0.0))
    ]
    for step_seed, eos_bias, max_len in sorted(
        [*drawn, (1138, 0.0, 3), (3614, 1.0, 3)], key=lambda row: row[2]
    ):
        yield Call((Step(step_seed, eos_bias=eos_bias), BOS, EOS, max_len))


GREEDY_DECODE = Exercise(
    name="greedy_decode",
    signature="greedy_decode(step, bos_id, eos_id, max_len)",
    lesson=11,
    section="Searching: the best piece is not the best sentence",
    rule=(
        "a list of ids: bos_id, then each time the most probable next id of step(prefix), until "
        "eos_id (kept) or "
        "max_len ids in all."
    ),
    read=ids,
    solve=_greedy,
    calls=_greedy_calls,
    mistakes=family(
        _greedy,
        _GREEDY_SLIPS,
        (
            ["goes-on-after-eos", "eos-dropped", "eos-always-appended", "eos-forbidden", "max-len-ignored"],
            ["last-id-only", "prefix-not-extended"],
            ["least-probable", "second-best"],
            ["one-token-short", "max-len-new-tokens", "max-len-ignored"],
            ["eos-forced-at-end", "eos-always-appended", "eos-dropped"],
        ),
        together=("bos-dropped", "max-len-new-tokens", "eos-dropped"),
    ),
    explain=describe_paths,
)


EXERCISES = (GREEDY_DECODE,)
