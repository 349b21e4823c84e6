"""Boxes, cells, arrows and labels as SVG in one style, light and dark; nothing drawn needs an id."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

Point = tuple[float, float]
Drawn = tuple[tuple["Panel", ...], dict[str, object]]  # panels, with what the texts name

#: A colour has one meaning in all diagrams: (light, dark). As lines and letters they reach 4.5 to 1.
COLORS = {
    "q": ("#0068a8", "#7cc0ff"),  # queries
    "k": ("#b04600", "#ff9d6b"),  # keys
    "v": ("#00744f", "#54d6a6"),  # values
    "weights": ("#8a5d00", "#f2c14e"),  # attention: its scores, its weights, what a mask allows
    "head": ("#a12a68", "#ff9ccb"),  # the output layer of a model
    "stream": ("#7443b3", "#c3a6ff"),  # the residual stream, and the hidden states it carries
    "positive": ("#2166ac", "#6aa9e9"),  # of signed numbers, as in the heat maps
    "negative": ("#b2182b", "#f0746a"),
    "ink": ("#20242b", "#e4e6ea"),
    "soft": ("#56606c", "#a7b0bc"),
    "line": ("#8a93a0", "#6d7785"),
    "field": ("#f1f3f6", "#2a313c"),
    "ground": ("#ffffff", "#1c2027"),
}
SANS = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif'
MONO = 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace'
SIZES = {"title": 16, "label": 15, "small": 13, "code": 13}
_HOST = {"ink": "--jp-content-font-color0, var(--ink, {})", "ground": "--jp-layout-color0, var(--raised, {})"}

_MARKUP = re.compile(r"([_^])\{([^}]*)\}")


def style_sheet() -> str:
    """Return the style of all diagrams: JupyterLab's ink and ground there, a page's own in a page."""
    names = []
    for name, (light, dark) in COLORS.items():
        value = f"light-dark({light}, {dark})"
        host = _HOST.get(name)
        names.append(f"--txd-{name}: {f'var({host.format(value)})' if host else value};")
    kinds = [name for name in COLORS if name not in ("field", "ground")]
    paint = "\n".join(
        f".txd .t-{k} {{ fill: var(--txd-{k}); }} .txd .l-{k} {{ stroke: var(--txd-{k}); }} "
        f".txd .f-{k} {{ fill: color-mix(in srgb, var(--txd-{k}) 17%, var(--txd-ground)); "
        f"stroke: var(--txd-{k}); }}"
        for k in kinds
    )
    return f"""\
.txd {{ color-scheme: light dark; {" ".join(names)} }}
body[data-jp-theme-light="true"] .txd {{ color-scheme: light; }}
body[data-jp-theme-light="false"] .txd {{ color-scheme: dark; }}
figure.txd {{ margin: 0.4rem 0; color: var(--txd-ink); }}
.txd-scroll {{ overflow-x: auto; padding: 0.7rem; border: 1px solid light-dark(#d5d8de, #3a424e);
  border-radius: 12px; background: var(--txd-ground); }}
.txd-scroll:focus-visible {{ outline: 3px solid var(--txd-q); outline-offset: 2px; }}
.txd-panels {{ display: flex; flex-wrap: wrap; justify-content: safe center; align-items: flex-start;
  gap: 1rem 1.5rem; }}
.txd svg {{ display: block; height: auto; }}
.txd figcaption {{ margin: 0.5rem 0.2rem 0; font: 0.92rem/1.45 {SANS}; color: var(--txd-soft); }}
.txd .txd-still {{ display: none; }}
.txd text {{ font-family: {SANS}; }}
.txd text.code {{ font-family: {MONO}; }}
.txd text.title {{ font-weight: 650; }}
.txd .f-plain {{ fill: var(--txd-field); stroke: var(--txd-line); }}
.txd .f-q2 {{ fill: color-mix(in srgb, var(--txd-q) 38%, var(--txd-ground)); stroke: var(--txd-q); }}
.txd .f-q3 {{ fill: color-mix(in srgb, var(--txd-q) 62%, var(--txd-ground)); stroke: var(--txd-q); }}
.txd .f-v2 {{ fill: color-mix(in srgb, var(--txd-v) 38%, var(--txd-ground)); stroke: var(--txd-v); }}
.txd .f-v3 {{ fill: color-mix(in srgb, var(--txd-v) 62%, var(--txd-ground)); stroke: var(--txd-v); }}
.txd .f-none {{ fill: var(--txd-ground); stroke: var(--txd-line); }}
.txd .ground {{ fill: var(--txd-ground); }}
.txd .full {{ fill-opacity: 1; stroke: none; }}
{paint}
.txd .f-weights {{ fill: color-mix(in srgb, light-dark(#f5b301, #f2c14e) 24%, var(--txd-ground)); }}"""


def _spans(words: str, size: float) -> str:
    """Return a label as SVG: ``W_{Q}`` has a subscript, ``K^{T}`` a superscript."""
    plain, *marked = _MARKUP.split(words)
    if not marked:
        return escape(words)
    parts = [("", plain)]
    for sign, inner, after in zip(marked[::3], marked[1::3], marked[2::3], strict=True):
        parts += [(sign, inner), ("", after)]
    out, back = "", 0.0
    for sign, text in (part for part in parts if part[1]):
        shift = {"_": 0.24, "^": -0.36, "": 0.0}[sign] * size
        small = f' font-size="{0.74 * size:.1f}"' if sign else ""
        out += f'<tspan dy="{shift - back:.1f}"{small}>{escape(text)}</tspan>'
        back = shift
    return out


@dataclass(frozen=True)
class Box:
    """A rectangle with the points where arrows end."""

    x: float
    y: float
    width: float
    height: float

    def at(self, across: float, down: float) -> Point:
        """Return a point in it, by shares of its sides."""
        return self.x + across * self.width, self.y + down * self.height

    @property
    def top(self) -> Point:
        return self.at(0.5, 0)

    @property
    def bottom(self) -> Point:
        return self.at(0.5, 1)

    @property
    def left(self) -> Point:
        return self.at(0, 0.5)

    @property
    def right(self) -> Point:
        return self.at(1, 0.5)


@dataclass
class Panel:
    """One picture of a diagram; panels follow each other, or come below each other where it is narrow."""

    width: float
    height: float
    parts: list[str] = field(default_factory=list)

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        size: str = "label",
        kind: str = "ink",
        anchor: str = "middle",
        bold: bool = False,
    ) -> None:
        """Write a label whose middle line is at height y; `size` is one of SIZES, `kind` one of COLORS."""
        points = SIZES[size]
        heavy = ' font-weight="650"' if bold else ""
        self.parts.append(
            f'<text class="{size} t-{kind}" x="{x:.1f}" y="{y + 0.35 * points:.1f}" font-size="{points}" '
            f'text-anchor="{anchor}"{heavy}>{_spans(words, points)}</text>'
        )

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *lines: str,
        kind: str = "plain",
        size: str = "label",
        dashed: bool = False,
        round: float = 7,
        under: str | None = None,
    ) -> Box:
        """Draw a box with its lines of text in the middle; `under` is a last line in small code letters."""
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(
            f'<rect class="f-{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
            f'rx="{round}" stroke-width="1.4"{dash}/>'
        )
        rows = [(line, size) for line in lines] + ([(under, "code")] if under else [])
        pitch = 1.28 * SIZES[size]
        for number, (words, how) in enumerate(rows):
            middle = y + height / 2 + (number - (len(rows) - 1) / 2) * pitch
            kind = "soft" if how != size else "ink"
            self.text(x + width / 2, middle, words, size=how, kind=kind)
        return Box(x, y, width, height)

    def title(self, words: str, x: float | None = None) -> None:
        """Write a title at the top, in the middle or at x."""
        self.text(self.width / 2 if x is None else x, 14, words, size="title", bold=True)

    def column(self, x: float, width: float, rows: Sequence[tuple], **look: Any) -> list[Box]:
        """Draw boxes below each other, their middles at x; a row is the y of its top, its label, its look."""
        drawn = []
        for top, words, *more in rows:
            how = {"height": 36.0, **look, **(more[0] if more else {})}
            drawn.append(self.box(x - width / 2, top, width, how.pop("height"), words, **how))
        return drawn

    def chain(self, boxes: Sequence[Box], kind: str = "stream", width: float = 1.8) -> None:
        """Connect boxes from top to bottom."""
        for above, below in zip(boxes, boxes[1:], strict=False):
            self.arrow(above.bottom, below.top, kind=kind, width=width)

    def frame(self, x: float, y: float, width: float, height: float) -> None:
        """Draw a dashed frame around what belongs together."""
        self.parts.append(
            f'<rect class="l-line" x="{x}" y="{y}" width="{width}" height="{height}" rx="12" fill="none" '
            'stroke-width="1.4" stroke-dasharray="3 5"/>'
        )

    def cells(self, x: float, y: float, rows: Sequence[Sequence[str]], side: float = 16) -> Box:
        """Draw a matrix: each cell has a kind of COLORS, "plain", "none" (empty) or "blocked"."""
        strokes = []
        for i, row in enumerate(rows):
            for j, kind in enumerate(row):
                left, top = x + j * side, y + i * side
                name = "plain" if kind == "blocked" else kind
                self.parts.append(
                    f'<rect class="f-{name}" x="{left:.1f}" y="{top:.1f}" width="{side}" height="{side}" '
                    'stroke-width="1"/>'
                )
                if kind == "blocked":
                    a, b = 0.2 * side, 0.8 * side
                    strokes.append(f"M{left + a:.1f} {top + b:.1f}L{left + b:.1f} {top + a:.1f}")
        if strokes:
            self.parts.append(f'<path class="l-line" d="{"".join(strokes)}" fill="none" stroke-width="1.6"/>')
        return Box(x, y, side * len(rows[0]), side * len(rows))

    def shades(self, x: float, y: float, values: Sequence[Sequence[float]], side: float = 16) -> Box:
        """Draw a matrix of signed numbers: red below zero, blue above, zero empty."""
        most = max(abs(value) for row in values for value in row)
        for i, row in enumerate(values):
            for j, value in enumerate(row):
                sign = "positive" if value > 0 else "negative"
                self.parts.append(
                    f'<rect class="t-{sign}" x="{x + j * side:.1f}" y="{y + i * side:.1f}" width="{side}" '
                    f'height="{side}" fill-opacity="{abs(value) / most:.2f}"/>'
                )
        box = Box(x, y, side * len(values[0]), side * len(values))
        grid = "".join(f"M{x + j * side:.1f} {y}v{box.height}" for j in range(len(values[0]) + 1))
        grid += "".join(f"M{x} {y + i * side:.1f}h{box.width}" for i in range(len(values) + 1))
        self.parts.append(f'<path class="l-line" d="{grid}" fill="none" stroke-width="0.8"/>')
        return box

    def line(self, *points: Point, kind: str = "soft", width: float = 1.8, opacity: float = 1) -> None:
        """Draw a line through the points, with rounded corners."""
        before, *rest = points
        path = f"M{before[0]:.1f} {before[1]:.1f}"
        for corner, following in zip(rest, rest[1:], strict=False):
            radius = min(9.0, math.dist(before, corner) / 2, math.dist(corner, following) / 2)
            (ax, ay), (bx, by) = _toward(corner, before, radius), _toward(corner, following, radius)
            path += f"L{ax:.1f} {ay:.1f}Q{corner[0]:.1f} {corner[1]:.1f} {bx:.1f} {by:.1f}"
            before = corner
        path += f"L{rest[-1][0]:.1f} {rest[-1][1]:.1f}"
        faint = f' opacity="{opacity}"' if opacity < 1 else ""
        self.parts.append(f'<path class="l-{kind}" d="{path}" fill="none" stroke-width="{width}"{faint}/>')

    def arrow(self, *points: Point, kind: str = "soft", width: float = 1.8) -> None:
        """Draw a line through the points whose head ends exactly at the last one."""
        tip, size = points[-1], 5.5 + 1.3 * width
        neck = _toward(tip, points[-2], size)
        self.line(*points[:-1], _toward(tip, points[-2], 0.8 * size), kind=kind, width=width)
        across = ((tip[1] - neck[1]) * 0.48, (neck[0] - tip[0]) * 0.48)
        one, two = ((neck[0] + s * across[0], neck[1] + s * across[1]) for s in (1, -1))
        self.parts.append(
            f'<path class="t-{kind}" d="M{tip[0]:.1f} {tip[1]:.1f}L{one[0]:.1f} {one[1]:.1f}'
            f'L{two[0]:.1f} {two[1]:.1f}Z"/>'
        )

    def plus(self, x: float, y: float) -> Box:
        """Draw a circled plus: an addition."""
        radius, arm = 12, 6.6
        self.parts.append(
            f'<circle class="f-stream" cx="{x}" cy="{y}" r="{radius}" stroke-width="1.8"/>'
            f'<path class="l-stream" d="M{x - arm:.1f} {y}h{2 * arm:.1f}M{x} {y - arm:.1f}v{2 * arm:.1f}" '
            'stroke-width="1.8" fill="none"/>'
        )
        return Box(x - radius, y - radius, 2 * radius, 2 * radius)

    def dot(self, x: float, y: float, *, kind: str = "soft", radius: float = 4, filled: bool = True) -> Box:
        """Draw a dot: a position, or where a line branches."""
        name = f"t-{kind}" if filled else f"f-{kind}"
        width = "" if filled else ' stroke-width="1.6"'
        self.parts.append(f'<circle class="{name}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}"{width}/>')
        return Box(x - radius, y - radius, 2 * radius, 2 * radius)

    def svg(self, attributes: str) -> str:
        """Return the panel as one element."""
        return f'<svg viewBox="0 0 {self.width:g} {self.height:g}" {attributes}>{"".join(self.parts)}</svg>'


def _toward(start: Point, goal: Point, distance: float) -> Point:
    """Return the point at this distance from start on the way to goal."""
    whole = math.dist(start, goal)
    share = distance / whole if whole else 0.0
    return start[0] + share * (goal[0] - start[0]), start[1] + share * (goal[1] - start[1])
