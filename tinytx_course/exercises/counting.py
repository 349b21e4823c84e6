"""Exercises on counting: parameters, operations, and the longest chain of operations that wait.

Mistakes in counts of parameters are those of `tinytx.diagnose_count`, and a few more.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
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
    "head-forgotten",
    "positions-forgotten",
    "block-norms-forgotten",
    "final-norm-forgotten",
    "heads-for-feed-forward-matrices",
    "heads-for-norms",
}
_SINGLE = [*_COMMON, *(slug for slug in WORDS if slug not in _COMMON and slug not in _NOT_ASKED)]


@cache
def _question(vocab_size: int, d_model: int, n_layers: int, d_ff: int) -> Question:
    """What is counted: a language model with two heads, sinusoidal positions, biases, norm last."""
    config = TransformerConfig(
        vocab_size=vocab_size, d_model=d_model, n_heads=2, n_layers=n_layers, d_ff=d_ff, norm="last",
        causal=True,
    )  # fmt: skip
    return Question(config, "lm", 2, "total")


def count_with(*sizes: int, slips: frozenset[str] = frozenset()) -> int:
    """Return the number of parameters that some misconceptions lead to; the right one for none."""
    return _question(*sizes).count(slips)


def _mistakes() -> tuple[Mistake, ...]:
    """The misconceptions that `diagnose_count` knows, one at a time."""
    wrongs = {slug: partial(count_with, slips=frozenset({slug})) for slug in _SINGLE}
    return tuple(
        Mistake(slug, _sentence(WORDS[slug]), _SLIP, wrongs=(wrong,))
        for slug, wrong in wrongs.items()
        if any(wrong(*one.arguments) != count_with(*one.arguments) for one in _calls(0))
    )


def _sentence(clause: str) -> str:
    return f"{clause[0].upper()}{clause[1:]}."


def _recognise(trials: Sequence[Trial]) -> Mistake | None:
    """Several slips at once: the smallest sets that give every number.

    At some sizes a smaller set, or none, happens to give the number too, so what explains it at any size is
    counted again at all of them.
    """
    asked: list[tuple[Question, int]] = []
    candidates: set[frozenset[str]] = set()
    for trial in trials:
        if trial.got is None or trial.got.tensors[0].is_floating_point():
            return None
        question, claimed = _question(*trial.call.arguments), int(trial.got.tensors[0])
        asked.append((question, claimed))
        candidates.update(diagnose_count(question.config, "lm", claimed).explanations)
    common = [
        slips for slips in candidates if all(question.count(slips) == claimed for question, claimed in asked)
    ]
    if not common:
        return None
    order, fewest = list(WORDS), min(map(len, common))
    smallest = [sorted(some, key=order.index) for some in common if len(some) == fewest]
    smallest.sort(key=lambda some: [*map(order.index, some)])
    words = [_sentence("; ".join(WORDS[slug] for slug in some)) for some in smallest]
    said = " Or these, which come to the same: ".join(words)
    return Mistake("+".join(smallest[0]), f"{fewest} things at once. {said}", _SLIP)


def _by_how_much(trial: Trial) -> list[Part]:
    """How far the number is off."""
    if trial.got is None:
        return []
    off = trial.got.tensors[0].item() - trial.expected.tensors[0].item()
    if off == 0 or not math.isfinite(off):
        return []
    return [f"That is {abs(off):,} too {'few' if off < 0 else 'many'}."]


def _calls(seed: int) -> Iterator[Call]:
    for sizes in ((5, 2, 2, 3), (11, 6, 2, 7), (100, 200, 4, 200), (37 + seed, 14, 3, 23), (101, 34, 6, 59)):
        yield Call(sizes)


def _llama_calls(seed: int) -> Iterator[Call]:
    yield from map(Call, ((7, 4, 1, 5, 2), (11, 6, 2, 13, 3), (37 + seed, 14, 3, 23, 2)))
    yield from map(Call, ((32_000, 4_096, 32, 11_008, 4_096), (128_256, 4_096, 32, 14_336, 1_024)))


def _gpt2_calls(seed: int) -> Iterator[Call]:
    yield from map(Call, ((7, 5, 6, 3, 2), (11, 3, 10, 2, 3), (37 + seed, 13, 14, 7, 5)))
    yield Call((50_257, 1_024, 768, 12, 12))


def _flops_calls(seed: int) -> Iterator[Call]:
    yield from map(Call, ((2, 3, 1), (3, 5, 1), (5, 6, 3), (50, 24, 2), (7 + seed, 10, 5)))


def _graphs(seed: int) -> Iterator[Call]:
    rng = random.Random(seed)
    yield Call(([()],))
    yield Call(([(), (0,)],))
    yield Call(([(), (0,), (0,)],))
    yield Call(([(), (), (0,), (2, 1)],))
    yield Call(([(), (), (1,), (0, 2), (0,)],))
    yield Call(([(), (0,), (1,), (), (3, 2), (2, 3), (0,)],))
    yield Call(([(), (), ()],))
    yield Call(([(), (0,), (1,), (), ()],))  # two end after the longest chain
    yield Call(([()] + [(i,) for i in range(6)],))
    n = 12
    drawn = [tuple(rng.sample(range(i), rng.randint(0, min(i, 3)))) for i in range(n)]
    yield Call(([*drawn, (3, 5), (3,)],))
    yield Call(([(), ()] + [(i, i + 1) for i in range(16)],))  # few enough to follow each chain by itself
    yield Call(([],))


EXERCISES = (
    Exercise(
        name="count_language_model",
        read=count,
        calls=_calls,
        mistakes=_mistakes(),
        recognise=_recognise,
        explain=_by_how_much,
    ),
    Exercise(name="count_llama", read=count, calls=_llama_calls, explain=_by_how_much),
    Exercise(name="count_gpt2", read=count, calls=_gpt2_calls, explain=_by_how_much),
    Exercise(name="attention_flops", read=count, calls=_flops_calls),
    Exercise(name="longest_chain", read=count, calls=_graphs),
)
