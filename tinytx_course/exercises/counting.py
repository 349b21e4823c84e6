"""Exercises on counting parameters; mistakes are those of `tinytx.diagnose_count`, and a few more."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

from tinytx.config import TransformerConfig
from tinytx_course.counting.diagnosis import WORDS, Question, diagnose_count
from tinytx_course.exercises.catalogue import Mistake
from tinytx_course.exercises.comparing import count
from tinytx_course.exercises.exercise import Exercise
from tinytx_course.exercises.observation import Call

if TYPE_CHECKING:
    from tinytx_course.exercises.card import Part
    from tinytx_course.exercises.judging import Trial

_SLIP = "Break it: from the number to the mistake"
_COMMON = (  # what people forget or mix up, the commonest first; the rest follow in the order of the table
    "all-biases-forgotten",
    "norms-forgotten",
    "norms-counted-once",
    "attention-biases-forgotten",
    "feed-forward-biases-forgotten",
    "output-projection-forgotten",
    "head-bias-forgotten",
    "attention-as-heads-times-d2",
    "positions-counted-as-learned",
)
_NOT_ASKED = {  # nothing to forget in this model, said in the file, or right by accident with its two heads
    "embedding-forgotten",
    "positions-forgotten",
    "block-norms-forgotten",
    "final-norm-forgotten",
    "heads-for-feed-forward-matrices",
    "heads-for-norms",
}
_SINGLE = [*_COMMON, *(slug for slug in WORDS if slug not in _COMMON and slug not in _NOT_ASKED)]


@cache
def _config(vocab_size: int, d_model: int, n_layers: int, d_ff: int) -> TransformerConfig:
    """The architecture of the exercise in some size: two heads, sinusoidal positions, biases, norm last."""
    return TransformerConfig(
        vocab_size=vocab_size,
        d_model=d_model,
        n_heads=2,
        n_layers=n_layers,
        d_ff=d_ff,
        norm="last",
        causal=True,
    )


def _lm(
    vocab_size: int, d_model: int, n_layers: int, d_ff: int, *, slips: frozenset[str] = frozenset()
) -> int:
    return Question(_config(vocab_size, d_model, n_layers, d_ff), "lm", 2, "total").count(slips)


def _mistakes(compute: Callable[..., int]) -> tuple[Mistake, ...]:
    """The misconceptions that `diagnose_count` knows, one at a time."""
    return tuple(
        Mistake(slug, _sentence(WORDS[slug]), _SLIP, wrongs=(partial(compute, slips=frozenset({slug})),))
        for slug in _SINGLE
        if any(
            compute(*one.arguments, slips=frozenset({slug})) != compute(*one.arguments) for one in _calls(0)
        )
    )


def _sentence(clause: str) -> str:
    return f"{clause[0].upper()}{clause[1:]}."


def _recognise(trials: Sequence[Trial]) -> Mistake | None:
    """Several slips at once: a smallest set that gives every number.

    At some sizes a smaller set, or none, happens to give the number too, so what explains it at any size is
    counted again at all of them.
    """
    asked: list[tuple[Question, int]] = []
    candidates: set[frozenset[str]] = set()
    for trial in trials:
        if trial.got is None or trial.got.tensors[0].is_floating_point():
            return None
        config = _config(*trial.call.arguments)
        claimed = int(trial.got.tensors[0])
        asked.append((Question(config, "lm", 2, "total"), claimed))
        candidates.update(diagnose_count(config, "lm", claimed).explanations)
    common = [
        slips for slips in candidates if all(question.count(slips) == claimed for question, claimed in asked)
    ]
    if not common:
        return None
    order = list(WORDS)
    slips = min(common, key=lambda some: (len(some), sorted(order.index(slug) for slug in some)))
    chosen = sorted(slips, key=order.index)
    words = _sentence("; ".join(WORDS[slug] for slug in chosen))
    return Mistake("+".join(chosen), f"{len(chosen)} things at once. {words}", _SLIP)


def _by_how_much(trial: Trial) -> list[Part]:
    """How far the number is off."""
    if trial.got is None:
        return []
    off = trial.got.tensors[0].item() - trial.expected.tensors[0].item()
    if off == 0 or not math.isfinite(off):
        return []
    return [f"That is {abs(off):,} too {'few' if off < 0 else 'many'}."]


def _calls(seed: int) -> Iterator[Call]:
    for size in (
        (5, 2, 2, 3),
        (11, 6, 2, 7),
        (100, 200, 4, 200),
        (37 + seed, 14, 3, 23),
        (101, 34, 6, 59),
    ):
        yield Call(size)


COUNT_LANGUAGE_MODEL = Exercise(
    name="count_language_model",
    read=count,
    calls=_calls,
    mistakes=_mistakes(_lm),
    recognise=_recognise,
    explain=_by_how_much,
)
COUNT_LLAMA = Exercise(
    name="count_llama",
    read=count,
    calls=lambda seed: (
        Call(sizes)
        for sizes in (
            (7, 4, 1, 5, 2),
            (11, 6, 2, 13, 3),
            (37 + seed, 14, 3, 23, 2),
            (32_000, 4_096, 32, 11_008, 4_096),
            (128_256, 4_096, 32, 14_336, 1_024),
        )
    ),
    explain=_by_how_much,
)
COUNT_GPT2 = Exercise(
    name="count_gpt2",
    read=count,
    calls=lambda seed: (
        Call(sizes)
        for sizes in (
            (7, 5, 6, 3, 2),
            (11, 3, 10, 2, 3),
            (37 + seed, 13, 14, 7, 5),
            (50_257, 1_024, 768, 12, 12),
        )
    ),
    explain=_by_how_much,
)
EXERCISES = (COUNT_LANGUAGE_MODEL, COUNT_LLAMA, COUNT_GPT2)
