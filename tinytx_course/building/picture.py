"""The picture at the top of the README, light and dark, drawn from ``results/mask-off.json``.

A hand-laid SVG: its letters are at least 22 of 840 units, so they can be read on a phone (10 of 380 pixels).
Where motion is welcome the curves draw themselves, once; a picture that cannot move shows their end.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate, pairwise
from math import dist
from typing import Any

from tinytx_course.site.templates import render

WIDTH, HEIGHT = 840, 652
LEFT, RIGHT, TOP, BOTTOM = 52, 816, 118, 392  # of the chart
N_LETTERS = 52  # of a review that is shown
LEARNING, PAUSE, CHEATING = 6.0, 0.6, 3.0  # seconds
THEMES: Mapping[str, Mapping[str, str]] = {
    "light": {
        "ground": "#ffffff",
        "ink": "#1f2328",
        "quiet": "#59636e",
        "grid": "#d8dee4",
        "right": "#0072b2",
        "wrong": "#b84a00",
    },
    "dark": {
        "ground": "#0d1117",
        "ink": "#f0f6fc",
        "quiet": "#9198a1",
        "grid": "#30363d",
        "right": "#56b4e9",
        "wrong": "#ff9a52",
    },
}


def draw_picture(record: Mapping[str, Any], theme: str) -> str:
    """Return the picture as SVG in a theme of `THEMES`; the record is one of `experiments.mask_off`."""
    n_steps, highest = record["masked"][-1][0], record["masked"][0][1]

    def place(step: float, loss: float) -> tuple[float, float]:
        across, up = step / n_steps, loss / highest
        return round(LEFT + (RIGHT - LEFT) * across, 1), round(BOTTOM - (BOTTOM - TOP) * up, 1)

    moves = {"masked": ("right", 0.0, LEARNING), "unmasked": ("wrong", LEARNING + PAUSE, CHEATING)}
    curves: dict[str, dict[str, Any]] = {}
    for name, (kind, begins, lasts) in moves.items():
        points = {step: place(step, loss) for step, loss in record[name]}
        curves[name] = {"kind": kind, "begins": begins, "lasts": lasts, "points": points}
    bound_y, end_y = place(0, record["bound"])[1], curves["masked"]["points"][n_steps][1]
    reviews = []
    for text in record["texts"]:
        curve = curves[text["curve"]]
        way, last = list(curve["points"].values()), curve["points"][text["step"]]
        lengths = [0.0, *accumulate(dist(a, b) for a, b in pairwise(way))]
        shown = curve["begins"] + curve["lasts"] * lengths[way.index(last)] / lengths[-1]
        label = f"step {text['step']:,}" if text["curve"] == "masked" else "no mask"
        reviews.append((curve, last, label, _runs(text), shown))
    return render(
        "building/picture.svg",
        **{"width": WIDTH, "height": HEIGHT, "left": LEFT, "right": RIGHT, "top": TOP, "bottom": BOTTOM},
        title=alt_text(record),
        colors=THEMES[theme],
        bound=record["bound"],
        bound_y=bound_y,
        grid={str(loss): place(0, loss)[1] for loss in range(0, int(highest) + 1, 2)},
        n_steps=n_steps,
        curves=curves,
        labels=[
            (end_y - 20, f"with the mask: {_above(record)}", LEARNING),
            (bound_y + 40, "without: it reads the answers", LEARNING + PAUSE),
        ],
        reviews=reviews,
    )


def alt_text(record: Mapping[str, Any]) -> str:
    """What there is to see, for whoever cannot see it."""
    (n_steps, loss), (_, without) = record["masked"][-1], record["unmasked"][-1]
    *_, last, broken = ("".join(gap + words for gap, words, _ in _runs(text)) for text in record["texts"])
    return (
        f"The loss of a small transformer falls to {loss:.2f} nats a word in {n_steps:,} steps, "
        f"{_above(record)} the entropy bound of {record['bound']:.2f}; it writes “{last}”. A copy that goes "
        f"on without the causal mask falls through the bound, to {without:.2f}; it writes “{broken}”."
    )


def _above(record: Mapping[str, Any]) -> str:
    return f"{100 * (record['masked'][-1][1] / record['bound'] - 1):.0f} % above"


def _runs(text: Mapping[str, Any]) -> list[tuple[str, str, bool]]:
    """Neighbouring words that fit and that the grammar allows, or does not, and the gap before them."""
    found: list[tuple[str, str, bool]] = []
    length = 0
    for word, allowed in zip(text["words"], text["allowed"], strict=True):
        gap = " " if found and word not in (".", ",", "!", "?") else ""
        length += len(gap + word)
        if length > N_LETTERS:
            gap, word, allowed = " ", "…", True
        if found and found[-1][2] == allowed:
            before, words, _ = found.pop()
            found.append((before, words + gap + word, allowed))
        else:
            found.append((gap, word, allowed))
        if length > N_LETTERS:
            break
    return found
