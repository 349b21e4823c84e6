"""The picture at the top of the README, light and dark, drawn from ``results/mask-off.json``.

A hand-laid SVG: its letters are at least 22 of 840 units, so they can be read on a phone (10 of 380 pixels).
Where motion is welcome the curves draw themselves, once; a picture that cannot move shows their end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from itertools import accumulate, groupby, pairwise
from math import dist
from typing import Any

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
_STYLE = """
text { font: 22px system-ui, -apple-system, 'Segoe UI', Arial, 'DejaVu Sans', sans-serif; fill: %(ink)s }
.title { font-size: 28px; font-weight: 700 }
.bold { font-weight: 700 }
.quiet { fill: %(quiet)s }
.right { fill: %(right)s }
.wrong { fill: %(wrong)s }
.not { fill: %(wrong)s; text-decoration: underline }
path { fill: none; stroke-width: 4; stroke-linejoin: round }
@media (prefers-reduced-motion: no-preference) {
  path { stroke-dasharray: 1; animation: draw linear both }
  g { animation: appear .4s both }
}
@keyframes draw { from { stroke-dashoffset: 1 } to { stroke-dashoffset: 0 } }
@keyframes appear { from { opacity: 0 } to { opacity: 1 } }
"""
Point = tuple[float, float]


def draw_picture(record: Mapping[str, Any], theme: str) -> str:
    """Return the picture as SVG.

    Parameters
    ----------
    record : mapping
        Of one seed, as `experiments.mask_off` stores it.
    theme : str
        A key of `THEMES`.
    """
    colors, bound = THEMES[theme], record["bound"]
    n_steps, highest = record["masked"][-1][0], record["masked"][0][1]

    def place(step: float, loss: float) -> Point:
        across, up = step / n_steps, loss / highest
        return round(LEFT + (RIGHT - LEFT) * across, 1), round(BOTTOM - (BOTTOM - TOP) * up, 1)

    curves = {
        name: {step: place(step, loss) for step, loss in record[name]} for name in ("masked", "unmasked")
    }
    kinds = {"masked": "right", "unmasked": "wrong"}
    begins, lasts = {"masked": 0.0, "unmasked": LEARNING + PAUSE}, {"masked": LEARNING, "unmasked": CHEATING}
    floor, end = place(0, bound)[1], curves["masked"][n_steps]
    shapes = [
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="12" fill="{colors["ground"]}"/>',
        _text(24, 44, "No honest model gets below the dashed line.", "title"),
        _text(24, 80, "Take the causal mask away, and the loss falls through it."),
        _text(LEFT + 40, TOP + 14, "loss, in nats a word", "quiet"),
        _text(LEFT + 10, floor + 30, f"entropy bound: {bound:.2f}"),
        *(_line(place(0, loss)[1], colors["grid"]) for loss in range(0, int(highest) + 1, 2)),
        *(
            _text(LEFT - 12, place(0, loss)[1] + 8, str(loss), "quiet", "end")
            for loss in range(0, int(highest) + 1, 2)
        ),
        _text(LEFT, BOTTOM + 30, "0", "quiet"),
        _text(RIGHT, BOTTOM + 30, f"{n_steps:,} training steps", "quiet", "end"),
        _line(floor, colors["ink"], 'stroke-width="3" stroke-dasharray="10 7"'),
        *(
            _curve(curves[name].values(), colors[kinds[name]], begins[name], lasts[name])
            for name in ("masked", "unmasked")
        ),
        _late(_text(RIGHT, end[1] - 20, f"with the mask: {_above(record)}", "bold right", "end"), LEARNING),
        _late(
            _text(RIGHT, floor + 40, "without: it reads the answers", "bold wrong", "end"), LEARNING + PAUSE
        ),
    ]
    told = "What it writes (underlined: the grammar does not allow it)"
    shapes.append(_text(24, BOTTOM + 86, told, "quiet"))
    for row, text in enumerate(record["texts"]):
        name, y = text["curve"], BOTTOM + 126 + 38 * row
        x, loss = curves[name][text["step"]]
        label = f"step {text['step']:,}" if name == "masked" else "no mask"
        dot = f'<circle cx="{x}" cy="{loss}" r="8" fill="{colors[kinds[name]]}"/>'
        words = _text(24, y, label, f"bold {kinds[name]}") + _review(text, 178, y)
        shown = begins[name] + lasts[name] * _drawn(curves[name].values(), (x, loss))
        shapes.append(_late(dot + words, shown))
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    style, title = _STYLE % colors, escape(alt_text(record))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    return "\n".join([head, f"<title>{title}</title>", f"<style>{style}</style>", *shapes, "</svg>\n"])


def alt_text(record: Mapping[str, Any]) -> str:
    """What there is to see, for whoever cannot see it."""
    (n_steps, loss), (_, without) = record["masked"][-1], record["unmasked"][-1]
    *_, last, broken = (_shown(text) for text in record["texts"])
    return (
        f"The loss of a small transformer falls to {loss:.2f} nats a word in {n_steps:,} steps, "
        f"{_above(record)} the entropy bound of {record['bound']:.2f}; it writes “{last}”. A copy that goes "
        f"on without the causal mask falls through the bound, to {without:.2f}; it writes “{broken}”."
    )


def _above(record: Mapping[str, Any]) -> str:
    return f"{100 * (record['masked'][-1][1] / record['bound'] - 1):.0f} % above"


def _drawn(points: Iterable[Point], until: Point) -> float:
    """The share of a curve's length that is drawn when a point is reached."""
    points = list(points)
    lengths = [0.0, *accumulate(dist(a, b) for a, b in pairwise(points))]
    return lengths[points.index(until)] / lengths[-1]


def _shown(text: Mapping[str, Any]) -> str:
    """The first words of a review, as many as fit into a row."""
    return "".join(gap + word for gap, word, _ in _fitting(text))


def _fitting(text: Mapping[str, Any]) -> list[tuple[str, str, bool]]:
    """Each word that fits, the gap before it, and whether the grammar allows it."""
    found: list[tuple[str, str, bool]] = []
    length = 0
    for word, allowed in zip(text["words"], text["allowed"], strict=True):
        gap = " " if found and word not in (".", ",", "!", "?") else ""
        length += len(gap + word)
        if length > N_LETTERS:
            return [*found, (" ", "…", True)]
        found.append((gap, word, allowed))
    return found


def _review(text: Mapping[str, Any], x: float, y: float) -> str:
    """A review; neighbours that the grammar does not allow are underlined as one."""
    spans = []
    for allowed, words in groupby(_fitting(text), key=lambda one: one[2]):
        (gap, word, _), *others = words
        rest = "".join(gap + word for gap, word, _ in others)
        written = escape(word + rest)
        spans.append(gap + (written if allowed else f'<tspan class="not">{written}</tspan>'))
    return f'<text x="{x}" y="{y}">{"".join(spans)}</text>'


def _text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def _line(y: float, color: str, more: str = "") -> str:
    return f'<line x1="{LEFT}" x2="{RIGHT}" y1="{y}" y2="{y}" stroke="{color}" {more}/>'


def _curve(points: Iterable[Point], color: str, begins: float, lasts: float) -> str:
    way = " ".join(f"{x},{y}" for x, y in points)
    moving = f'style="animation-delay: {begins}s; animation-duration: {lasts}s"'
    return f'<path pathLength="1" stroke="{color}" {moving} d="M{way}"/>'


def _late(shape: str, shown: float) -> str:
    return f'<g style="animation-delay: {shown:.2f}s">{shape}</g>'
