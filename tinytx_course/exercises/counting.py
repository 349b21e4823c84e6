"""Exercises on counting parameters; mistakes are those of `tinytx.diagnose_count`, and a few more."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from tinytx.config import TransformerConfig
from tinytx.counting import Head
from tinytx_course.counting.diagnosis import WORDS, Question, diagnose_count
from tinytx_course.exercises.catalogue import Mistake
from tinytx_course.exercises.comparing import count
from tinytx_course.exercises.exercise import Exercise, chosen, mistakes
from tinytx_course.exercises.observation import Call

if TYPE_CHECKING:
    from tinytx_course.exercises.card import Part
    from tinytx_course.exercises.judging import Trial

_SLIP = "Find the slip"
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
_NOT_ASKED = {  # nothing to forget in this model, or right by accident with its two heads
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


_FURTHER = {
    "head-forgotten": _sum_of(lambda e, layer, n, h, d, f: e + n * layer),
    "embedding-forgotten": _sum_of(lambda e, layer, n, h, d, f: n * layer + h),
    "one-layer-only": _sum_of(lambda e, layer, n, h, d, f: e + layer + h),
    "all-times-layers": (
        _sum_of(lambda e, layer, n, h, d, f: n * (e + layer + h)),
        _sum_of(lambda e, layer, n, h, d, f: n * (e + layer) + h),
    ),
    "final-norm-counted": _sum_of(lambda e, layer, n, h, d, f: e + n * layer + 2 * d + h),
    "attention-forgotten": _sum_of(lambda e, layer, n, h, d, f: e + n * (layer - 4 * (d * d + d)) + h),
    "three-norms": _sum_of(lambda e, layer, n, h, d, f: e + n * (layer + 2 * d) + h),
    "feed-forward-matrix-once": _sum_of(lambda e, layer, n, h, d, f: e + n * (layer - d * f) + h),
    "feed-forward-biases-alike": (
        _sum_of(lambda e, layer, n, h, d, f: e + n * (layer - d + f) + h),
        _sum_of(lambda e, layer, n, h, d, f: e + n * (layer - f + d) + h),
    ),
    "only-body": _sum_of(lambda e, layer, n, h, d, f: n * layer),
}


def _bias_of_width(compute: Callable[..., int], *sizes: int) -> int:
    n_outputs = sizes[4] if len(sizes) > 4 else sizes[0]
    return compute(*sizes) - n_outputs + sizes[1]


def _mistakes(compute: Callable[..., int], known_sizes: Sequence[int]) -> tuple[Mistake, ...]:
    others: dict[str, Any] = {
        **_FURTHER,
        "head-bias-of-width": partial(_bias_of_width, compute),
        "fixed-number": lambda *sizes: compute(*known_sizes),
    }
    return (
        *(
            Mistake(slug, _sentence(WORDS[slug]), _SLIP, wrongs=(partial(compute, slips=frozenset({slug})),))
            for slug in _SINGLE
            if compute is _lm or slug != "embedding-tied"  # a classifier has no vocabulary to share
        ),
        *mistakes("counting", others),
    )


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
    return Mistake("+".join(chosen), f"{len(chosen)} things at once. {words}", _SLIP)


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


COUNT_LANGUAGE_MODEL = Exercise(
    name="count_language_model",
    read=count,
    solve=_lm,
    calls=lambda seed: _calls(seed, False),
    mistakes=_mistakes(_lm, (100, 200, 4, 200)),
    recognise=partial(_recognise, "lm"),
    explain=_by_how_much,
)
COUNT_CLASSIFIER = Exercise(
    name="count_classifier",
    read=count,
    solve=_classifier,
    calls=lambda seed: _calls(seed, True),
    mistakes=(
        *_mistakes(_classifier, (100, 200, 4, 200, 2)),
        *mistakes(
            "count_classifier", {"two-classes-assumed": lambda v, d, n, f, c: _classifier(v, d, n, f, 2)}
        ),
    ),
    recognise=partial(_recognise, "classifier"),
    explain=_by_how_much,
)


def _gpt2(
    vocab_size: int,
    max_len: int,
    d_model: int,
    n_heads: int,
    n_layers: int,
    *,
    slips: frozenset[str] = frozenset(),
) -> int:
    d, d_ff = d_model, d_model if "feed-forward-of-width-d" in slips else 4 * d_model
    biased = "all-biases-forgotten" not in slips
    attention = chosen(
        {
            "output-projection-forgotten": 3 * (d * d + biased * d),
            "heads-for-matrices": n_heads * (d * d + biased * d),
            "matrices-for-each-head": 4 * n_heads * (d * d + biased * d),
            "one-head-only": 4 * d * (d // n_heads) + biased * 4 * d,
            "attention-biases-forgotten": 4 * d * d,
            "attention-forgotten": 0,
        },
        slips,
        4 * (d * d + biased * d),
    )
    ff_biases = chosen(
        {"feed-forward-biases-forgotten": 0, "feed-forward-biases-alike": 2 * d}, slips, d_ff + d
    )
    feed_forward = 2 * d * d_ff + biased * ff_biases
    norms = chosen(
        {"norms-forgotten": 0, "norms-counted-once": 2 * d, "norm-shifts-forgotten": 2 * d}, slips, 4 * d
    )
    final = chosen(
        {"final-norm-forgotten": 0, "norms-forgotten": 0, "norm-shifts-forgotten": d}, slips, 2 * d
    )
    positions = 0 if "positions-forgotten" in slips else max_len * d
    output = chosen(
        {
            "output-layer-not-tied": vocab_size * d,
            "output-layer-with-bias": vocab_size,
            "output-layer-counted": vocab_size * (d + 1),
        },
        slips,
        0,
    )
    blocks = n_layers * (attention + feed_forward + norms)
    return vocab_size * d + positions + blocks + final + output


def _blocks_of_gpt2(d_model: int) -> int:
    return 12 * d_model**2 + 13 * d_model


COUNT_GPT2 = Exercise(
    name="count_gpt2",
    read=count,
    solve=_gpt2,
    calls=lambda seed: (
        Call(sizes)
        for sizes in (
            (7, 5, 6, 3, 2),
            (11, 3, 10, 2, 3),
            (37 + seed, 13, 14, 7, 5),
            (50_257, 1_024, 768, 12, 12),
        )
    ),
    mistakes=mistakes(
        "count_gpt2",
        {
            "embedding-forgotten": lambda v, t, d, h, n: _gpt2(0, t, d, h, n),
            "one-layer-only": lambda v, t, d, h, n: _gpt2(v, t, d, h, 1),
            "all-times-layers": (
                lambda v, t, d, h, n: n * _gpt2(v, t, d, h, 1),
                lambda v, t, d, h, n: n * ((v + t) * d + _blocks_of_gpt2(d)) + 2 * d,
            ),
            "final-norm-in-each-block": lambda v, t, d, h, n: _gpt2(v, t, d, h, n) + 2 * d * (n - 1),
            "rule-of-thumb": (
                lambda v, t, d, h, n: 12 * n * d * d + v * d,
                lambda v, t, d, h, n: 12 * n * d * d + (v + t) * d,
            ),
            "positions-without-width": lambda v, t, d, h, n: _gpt2(v, t, d, h, n) - t * d + t,
            "only-blocks": (
                lambda v, t, d, h, n: n * _blocks_of_gpt2(d),
                lambda v, t, d, h, n: n * _blocks_of_gpt2(d) + 2 * d,
            ),
            "fixed-number": lambda *sizes: 124_439_808,
        },
        with_slips=_gpt2,
        exclusive=(
            ("output-layer-not-tied", "output-layer-with-bias", "output-layer-counted"),
            ("norms-forgotten", "norms-counted-once", "norm-shifts-forgotten"),
            ("norms-forgotten", "final-norm-forgotten"),
            ("norm-shifts-forgotten", "final-norm-forgotten"),
            ("all-biases-forgotten", "attention-biases-forgotten"),
            ("all-biases-forgotten", "feed-forward-biases-forgotten", "feed-forward-biases-alike"),
            ("output-projection-forgotten", "heads-for-matrices", "matrices-for-each-head", "one-head-only"),
            ("attention-forgotten", "attention-biases-forgotten", "output-projection-forgotten"),
        ),
        together=(
            "positions-forgotten",
            "final-norm-forgotten",
            "output-layer-not-tied",
            "output-layer-counted",
            "all-biases-forgotten",
            "norms-forgotten",
        ),
    ),
    explain=_by_how_much,
)
EXERCISES = (COUNT_LANGUAGE_MODEL, COUNT_CLASSIFIER, COUNT_GPT2)
