"""Exercises on counting parameters; mistakes are those of `tinytx.diagnose_count`, and a few more."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

from tinytx.model.config import TransformerConfig
from tinytx.model.counting import Head
from tinytx.model.diagnosis import WORDS, Question, diagnose_count
from tinytx_course.exercises.comparing import count
from tinytx_course.exercises.exercise import Exercise, Mistake
from tinytx_course.exercises.observation import Call

if TYPE_CHECKING:
    from tinytx_course.exercises.card import Part
    from tinytx_course.exercises.judging import Trial

_MODEL, _LAYER, _SLIP = "The whole model", "One layer", "Find the slip"
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
_NOT_ASKED = {  # nothing to forget in the lab's model, or right by accident with its two heads
    "positions-forgotten",
    "block-norms-forgotten",
    "final-norm-forgotten",
    "heads-for-feed-forward-matrices",
    "heads-for-norms",
}
_SINGLE = [*_COMMON, *(slug for slug in WORDS if slug not in _COMMON and slug not in _NOT_ASKED)]


@cache
def _config(vocab_size: int, d_model: int, n_layers: int, d_ff: int) -> TransformerConfig:
    """The architecture of lab A in another size: two heads, sinusoidal positions, biases, norm last."""
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


def _classifier(
    vocab_size: int,
    d_model: int,
    n_layers: int,
    d_ff: int,
    n_classes: int,
    *,
    slips: frozenset[str] = frozenset(),
) -> int:
    config = _config(vocab_size, d_model, n_layers, d_ff)
    return Question(config, "classifier", n_classes, "total").count(slips)


def _layer(d_model: int, d_ff: int) -> int:
    return 4 * (d_model**2 + d_model) + 2 * d_model * d_ff + d_ff + d_model + 4 * d_model


def _head(vocab_size: int, d_model: int, rest: Sequence[int]) -> int:
    n_outputs = rest[0] if rest else vocab_size
    return n_outputs * (d_model + 1)


def _sum_of(rule: Callable[..., int]) -> Callable[..., int]:
    """From a rule on embedding, one layer, layers and head to a rule on the sizes."""

    def total(vocab_size: int, d_model: int, n_layers: int, d_ff: int, *rest: int) -> int:
        return rule(
            vocab_size * d_model,
            _layer(d_model, d_ff),
            n_layers,
            _head(vocab_size, d_model, rest),
            d_model,
            d_ff,
        )

    return total


_FURTHER = (
    Mistake(
        "head-forgotten",
        "The head was forgotten: the layer on top has a matrix and a bias too.",
        _sum_of(lambda e, layer, n, h, d, f: e + n * layer),
        _MODEL,
    ),
    Mistake(
        "embedding-forgotten",
        "The embedding was forgotten: it has one vector of width D for each of the V tokens.",
        _sum_of(lambda e, layer, n, h, d, f: n * layer + h),
        _MODEL,
    ),
    Mistake(
        "one-layer-only",
        "One layer was counted, but there are n_layers of them.",
        _sum_of(lambda e, layer, n, h, d, f: e + layer + h),
        _LAYER,
    ),
    Mistake(
        "all-times-layers",
        "Embedding and head were multiplied by the number of layers too: there is one of each.",
        _sum_of(lambda e, layer, n, h, d, f: n * (e + layer + h)),
        _MODEL,
    ),
    Mistake(
        "all-times-layers",
        "The embedding was multiplied by the number of layers too: there is only one.",
        _sum_of(lambda e, layer, n, h, d, f: n * (e + layer) + h),
        _MODEL,
    ),
    Mistake(
        "final-norm-counted",
        "A norm after the last layer was counted: in this architecture there is none.",
        _sum_of(lambda e, layer, n, h, d, f: e + n * layer + 2 * d + h),
        _MODEL,
    ),
    Mistake(
        "attention-forgotten",
        "Attention was forgotten: each layer has four matrices of D × D, with biases.",
        _sum_of(lambda e, layer, n, h, d, f: e + n * (layer - 4 * (d * d + d)) + h),
        _LAYER,
    ),
    Mistake(
        "three-norms",
        "Three norms were counted in a layer, but there are two.",
        _sum_of(lambda e, layer, n, h, d, f: e + n * (layer + 2 * d) + h),
        _LAYER,
    ),
    Mistake(
        "feed-forward-matrix-once",
        "Only one of the two matrices of the feed-forward network was counted.",
        _sum_of(lambda e, layer, n, h, d, f: e + n * (layer - d * f) + h),
        _LAYER,
    ),
    Mistake(
        "feed-forward-biases-alike",
        "Both biases of the feed-forward network were given the same length: one has d_ff "
        "numbers, the other D.",
        (
            _sum_of(lambda e, layer, n, h, d, f: e + n * (layer - d + f) + h),
            _sum_of(lambda e, layer, n, h, d, f: e + n * (layer - f + d) + h),
        ),
        _LAYER,
    ),
    Mistake(
        "only-body",
        "Only the layers were counted: embedding and head are missing.",
        _sum_of(lambda e, layer, n, h, d, f: n * layer),
        _MODEL,
    ),
)


_FIXED = (
    "This is the number for the sizes of the lab, whatever sizes are asked for: compute it from the "
    "arguments."
)
_FIXED_LM = Mistake("fixed-number", _FIXED, lambda *sizes: _lm(100, 200, 4, 200), _MODEL)
_FIXED_CLASSIFIER = Mistake("fixed-number", _FIXED, lambda *sizes: _classifier(100, 200, 4, 200, 2), _MODEL)
_TWO_CLASSES = Mistake(
    "two-classes-assumed",
    "Two classes were counted, whatever n_classes is.",
    lambda v, d, n, f, n_classes: _classifier(v, d, n, f, 2),
    _MODEL,
)
_BIAS_OF_WIDTH = "The bias of the head was given D numbers: it has one for each output."


def _bias_of_width(compute: Callable[..., int], *sizes: int) -> int:
    n_outputs = sizes[4] if len(sizes) > 4 else sizes[0]
    return compute(*sizes) - n_outputs + sizes[1]


def _mistakes(compute: Callable[..., int], *no_slips: str) -> tuple[Mistake, ...]:
    asked = tuple(
        Mistake(slug, _sentence(WORDS[slug]), partial(compute, slips=frozenset({slug})), _SLIP)
        for slug in _SINGLE
        if slug not in no_slips
    )
    bias = Mistake("head-bias-of-width", _BIAS_OF_WIDTH, partial(_bias_of_width, compute), _MODEL)
    return (*asked, *_FURTHER, bias)


def _sentence(clause: str) -> str:
    return f"{clause[0].upper()}{clause[1:]}."


def _recognise(head: Head, trials: Sequence[Trial]) -> Mistake | None:
    """Several slips at once: a smallest set that gives every number.

    At some sizes a smaller set, or none, happens to give the number too, so what explains it at any size is
    counted again at all of them.
    """
    asked: list[tuple[Question, int]] = []
    candidates: set[frozenset[str]] = set()
    for trial in trials:
        if trial.got is None or trial.got.tensors[0].is_floating_point():
            return None
        sizes = trial.call.arguments
        config, n_classes = _config(*sizes[:4]), sizes[4] if len(sizes) > 4 else 2
        claimed = int(trial.got.tensors[0])
        asked.append((Question(config, head, n_classes, "total"), claimed))
        candidates.update(diagnose_count(config, head, claimed, n_classes=n_classes).explanations)
    common = [
        slips for slips in candidates if all(question.count(slips) == claimed for question, claimed in asked)
    ]
    if not common:
        return None
    order = list(WORDS)
    slips = min(common, key=lambda some: (len(some), sorted(order.index(slug) for slug in some)))
    chosen = sorted(slips, key=order.index)
    words = _sentence("; ".join(WORDS[slug] for slug in chosen))
    return Mistake("+".join(chosen), f"{len(chosen)} things at once. {words}", lambda *sizes: None, _SLIP)


def _by_how_much(trial: Trial) -> list[Part]:
    """How far the number is off."""
    if trial.got is None:
        return []
    off = trial.got.tensors[0].item() - trial.expected.tensors[0].item()
    if off == 0 or not math.isfinite(off):
        return []
    return [f"That is {abs(off):,} too {'few' if off < 0 else 'many'}."]


def _calls(seed: int, classes: bool) -> Iterator[Call]:
    sizes = (
        (5, 2, 2, 3, 3),
        (11, 6, 2, 7, 4),
        (100, 200, 4, 200, 2),
        (37 + seed, 14, 3, 23, 5),
        (101, 34, 6, 59, 7),
    )
    for size in sizes:
        yield Call(size if classes else size[:4])


_RULE = (
    "the number of learned numbers in the model of this lesson: embedding, n_layers layers "
    "(attention with four "
    "matrices, feed-forward with two, two norms; biases everywhere; norm last), sinusoidal positions, and "
)
COUNT_LANGUAGE_MODEL = Exercise(
    name="count_language_model",
    signature="count_language_model(vocab_size, d_model, n_layers, d_ff)",
    lesson=6,
    section=_MODEL,
    rule=f"{_RULE}a linear head onto the vocabulary, with a bias, not tied to the embedding.",
    read=count,
    solve=_lm,
    calls=lambda seed: _calls(seed, False),
    mistakes=(*_mistakes(_lm), _FIXED_LM),
    recognise=partial(_recognise, "lm"),
    explain=_by_how_much,
)
COUNT_CLASSIFIER = Exercise(
    name="count_classifier",
    signature="count_classifier(vocab_size, d_model, n_layers, d_ff, n_classes)",
    lesson=6,
    section=_MODEL,
    rule=f"{_RULE}a linear head onto the classes, with a bias.",
    read=count,
    solve=_classifier,
    calls=lambda seed: _calls(seed, True),
    mistakes=(
        *_mistakes(_classifier, "embedding-tied"),
        _FIXED_CLASSIFIER,
        _TWO_CLASSES,
    ),  # its head has no vocabulary to share
    recognise=partial(_recognise, "classifier"),
    explain=_by_how_much,
)
EXERCISES = (COUNT_LANGUAGE_MODEL, COUNT_CLASSIFIER)
