"""The stored items of the concept inventory, and how a table, a mask or a curve is drawn."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from tinytx_course.results import read_results

FORMS, LETTERS = ("A", "B"), "ABCD"
Stored = dict[str, Any]
_CELL, _LABEL = 22, 46  # of a mask, in px; a square of 20 in each cell
_WIDTH, _HEIGHT, _LEFT, _BELOW = 280, 150, 34, 30  # of a curve


def read_items() -> list[Stored]:
    """All items by number."""
    records = read_results("inventory").data
    items = [record for key, record in records.items() if key.startswith("laptop/")]
    if not items:
        raise ValueError(
            "results/inventory.json must hold items, got none: run `python -m tests.solutions.inventory`"
        )
    return sorted(items, key=lambda item: item["number"])


def separation() -> Stored:
    """Which share of the pairs of misconceptions the items tell apart, see `experiments.inventory`."""
    return read_results("inventory").data["laptop-separation"]


def drawn(shown: Stored, top: float = 0.0) -> str:
    """A stored table, mask or curve as HTML; `top` is the largest loss of all curves next to it."""
    caption = f'<p class="caption">{html.escape(shown["caption"])}</p>' if "caption" in shown else ""
    return caption + {"table": _table, "mask": _mask, "curve": _curve}[shown["kind"]](shown, top)


def in_words(shown: Stored) -> str:
    """The same as text: rows separated by semicolons."""
    if shown["kind"] == "curve":
        points = ", ".join(f"{loss:.2f} at step {step:.0f}" for step, loss in shown["cells"])
        return f"loss {points}; bound {shown['bound']:.2f}"
    labels = shown.get("rows") or [""] * len(shown["cells"])
    rows = [
        f"{label}: " * bool(label) + " ".join(row) for label, row in zip(labels, shown["cells"], strict=True)
    ]
    return "; ".join(rows)


def _table(shown: Stored, _: float) -> str:
    rows, columns = shown.get("rows", ()), shown.get("columns", ())
    if len(shown["cells"]) == 1 and not rows and not columns:
        return f'<p class="row">{" &ensp; ".join(map(html.escape, shown["cells"][0]))}</p>'
    corner = "<td></td>" if rows else ""
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in columns)
    lines = [f"<tr>{corner}{head}</tr>"] if columns else []
    for number, cells in enumerate(shown["cells"]):
        name = f'<th scope="row">{html.escape(rows[number])}</th>' if rows else ""
        lines.append(f"<tr>{name}{''.join(f'<td>{html.escape(cell)}</td>' for cell in cells)}</tr>")
    return f"<table>{''.join(lines)}</table>"


def _mask(shown: Stored, _: float) -> str:
    rows, columns = shown.get("rows", ()), shown.get("columns", ())
    left, top = _LABEL * bool(rows), 18 * bool(columns)
    parts = [
        f'<rect x="{left + _CELL * s + 1}" y="{top + _CELL * t + 1}" width="20" height="20" '
        f'class="{"on" if cell == "1" else "off"}"/>'
        for t, row in enumerate(shown["cells"])
        for s, cell in enumerate(row)
    ]
    parts += [
        f'<text x="{left - 5}" y="{top + _CELL * (t + 0.7):.0f}" text-anchor="end">{_short(name)}</text>'
        for t, name in enumerate(rows)
    ]
    parts += [
        f'<text class="small" x="{left + _CELL * (s + 0.5):.0f}" y="13" text-anchor="middle">'
        f"{_short(name)}</text>"
        for s, name in enumerate(columns)
    ]
    width, height = left + _CELL * len(shown["cells"][0]) + 1, top + _CELL * len(shown["cells"]) + 1
    return _svg(width, height, "Mask. " + in_words(shown), parts)


def _short(label: str) -> str:
    return html.escape(label.strip("‹›"))


def _curve(shown: Stored, top: float) -> str:
    steps, losses = zip(*shown["cells"], strict=True)
    right, high = max(steps), max(top, max(losses))

    def point(step: float, loss: float) -> tuple[float, float]:
        x = _LEFT + (_WIDTH - _LEFT - 8) * step / right
        return round(x, 1), round(8 + (_HEIGHT - _BELOW - 8) * (1 - loss / high), 1)

    line = " ".join(f"{x},{y}" for x, y in map(point, steps, losses))
    floor, bound = _HEIGHT - _BELOW, point(0, shown["bound"])[1]
    parts = [
        f'<path class="axis" d="M{_LEFT} 8V{floor}H{_WIDTH - 8}"/>',
        f'<path class="bound" d="M{_LEFT} {bound}H{_WIDTH - 8}"/>',
        f'<polyline class="line" points="{line}"/>',
        f'<text x="{_LEFT - 5}" y="16" text-anchor="end">{high:.0f}</text>',
        f'<text x="{_LEFT - 5}" y="{floor}" text-anchor="end">0</text>',
        f'<text x="{_WIDTH - 8}" y="{floor + 16}" text-anchor="end">{right:.0f} steps</text>',
        f'<text x="{_LEFT}" y="{floor + 16}">nats a token</text>',
    ]
    return _svg(_WIDTH, _HEIGHT, "Curve: " + in_words(shown), parts)


def _svg(width: float, height: float, label: str, parts: Sequence[str]) -> str:
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return f'<svg {size} role="img" aria-label="{html.escape(label)}">{"".join(parts)}</svg>'


def top_of(options: Sequence[Stored]) -> float:
    """The largest loss of curves that are drawn next to each other; 0 where there is none."""
    return max((loss for one in options if one["kind"] == "curve" for _, loss in one["cells"]), default=0.0)
