"""Large numbers in short, what changed between two states, and bars as a still picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tinytx_course.widgets.base import fixed, grouped
from tinytx_course.widgets.picture import ACCENT, SOFT, WARN, Picture

NAMES = {
    "vocab_size": "vocabulary",
    "d_model": "width",
    "n_layers": "layers",
    "n_heads": "heads",
    "d_ff": "feed-forward width",
    "seq_len": "length",
    "batch_size": "batch",
    "max_len": "longest length",
    "n_classes": "classes",
    "tie_embeddings": "tied embeddings",
    "learned": "learned positions",
    "plain": "weights kept",
    "causal": "causal",
    "bias": "biases",
    "norm_first": "norm first",
    "gelu": "GELU",
    "head": "head",
}
GROUPS = {
    "parameters": ("Parameters", ""),
    "compute": ("Operations of one forward pass", ""),
    "training": ("Memory in training", "B"),
    "generating": ("Memory in generation", "B"),
}
_PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z")


def in_short(n: int) -> str:
    """Write a number with three digits and a prefix, and a space for the unit.

    Examples
    --------
    >>> in_short(999), in_short(1_008_100), in_short(64_000)
    ('999 ', '1.01 M', '64.0 k')
    """
    step = min((len(str(n)) - 1) // 3, len(_PREFIXES) - 1)
    if step == 0:
        return f"{n} "
    value = n / 1000**step
    return f"{fixed(value, 2 if value < 10 else 1 if value < 100 else 0)} {_PREFIXES[step]}"


def ratio(now: int, then: int) -> str:
    """Write by what factor a number changed.

    Examples
    --------
    >>> ratio(3, 3), ratio(3, 2), ratio(3, 0), ratio(5_000, 1)
    ('the same', '× 1.50', 'new', '× 5,000')
    """
    if now == then:
        return "the same"
    if not then:
        return "new"
    factor = now / then
    return f"× {grouped(fixed(factor, 2 if factor < 100 else 0))}"


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Say which settings differ, and how.

    Examples
    --------
    >>> changes({"seq_len": 128, "bias": True, "head": "lm"}, {"seq_len": 1024, "bias": False, "head": "lm"})
    'length 128 → 1,024, biases on → off'
    """
    words = (
        f"{name} {_in_words(before[key])} → {_in_words(after[key])}"
        for key, name in NAMES.items()
        if key in before and before[key] != after[key]
    )
    return ", ".join(words)


def _in_words(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return value if isinstance(value, str) else grouped(value)


def draw_bars(
    now: Mapping[str, Mapping[str, int]], then: Mapping[str, Mapping[str, int]], changed: str
) -> Picture:
    """Draw groups of bars, each on its own scale, with the pinned ones below and the factors beside."""
    picture = Picture(800, 416)
    picture.text(12, 402, "Grey: the pinned state" + (f" ({changed})" if changed else ""), color=SOFT)
    places = {"parameters": (12, 14), "compute": (412, 14), "training": (12, 208), "generating": (412, 208)}
    for group, (x, top) in places.items():
        title, unit = GROUPS[group]
        total = sum(now[group].values())
        shown = grouped(total) if group == "parameters" else in_short(total) + unit
        picture.text(x, top, f"{title}: {shown}", bold=True)
        scale = 96 / max(*now[group].values(), *then[group].values(), 1)
        for i, (name, value) in enumerate(now[group].items()):
            middle, old = top + 26 + 25 * i, then[group][name]
            picture.text(x, middle, name)
            picture.rect(x + 160, middle - 9, value * scale, 11, fill=ACCENT)
            picture.rect(x + 160, middle + 4, old * scale, 4, fill=SOFT)
            picture.text(x + 314, middle, in_short(value) + unit, anchor="rm")
            how = ratio(value, old)
            picture.text(x + 322, middle, how, color=SOFT if value == old else WARN)
    return picture
