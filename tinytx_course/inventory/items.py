"""The stored items of the concept inventory, and how a table, a mask or a curve is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tinytx_course.results import read_results
from tinytx_course.site.templates import macro

FORMS, LETTERS = ("A", "B"), "ABCD"
Stored = dict[str, Any]


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
    return macro("inventory/drawn.html", "drawn", shown, in_words(shown), top)


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


def top_of(options: Sequence[Stored]) -> float:
    """The largest loss of curves that are drawn next to each other; 0 where there is none."""
    return max((loss for one in options if one["kind"] == "curve" for _, loss in one["cells"]), default=0.0)
