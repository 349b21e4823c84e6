"""Paragraphs and small grids of numbers, as text for a terminal and as a card for a notebook."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest
from urllib.parse import quote

from tinytx_course.lessons import LESSONS


@dataclass(frozen=True)
class Grid:
    """A small table of cells, some of them marked: in brackets as text, bold and outlined in a card."""

    title: str
    cells: tuple[tuple[str, ...], ...]  # rows
    marked: frozenset[tuple[int, int]] = frozenset()  # row and column of each

    def lines(self) -> list[str]:
        """Title and rows as lines of equal width.

        Examples
        --------
        >>> print("\\n".join(Grid("got", (("1", "12"), ("0", "1")), frozenset({(0, 1)})).lines()))
        got
         1   [12]
         0    1
        """
        width = max((len(cell) for row in self.cells for cell in row), default=0)
        lines = [self.title]
        for r, row in enumerate(self.cells):
            shown = [f"[{cell}]" if (r, c) in self.marked else f" {cell} " for c, cell in enumerate(row)]
            lines.append(" ".join(cell.rjust(width + 2) for cell in shown))
        longest = max(map(len, lines))
        return [line.ljust(longest) for line in lines]

    def to_html(self) -> str:
        """A table with inline style only."""
        rows = []
        for r, row in enumerate(self.cells):
            cells = [_cell(cell, (r, c) in self.marked) for c, cell in enumerate(row)]
            rows.append(f"<tr style='background:none'>{''.join(cells)}</tr>")
        caption = f"<div style='font-size:90%'>{_prose(self.title)}</div>"
        table = f"<table style='border-collapse:separate;border-spacing:2px;margin:0'>{''.join(rows)}</table>"
        return f"<div style='margin:0 1.5em 0.5em 0'>{caption}{table}</div>"


_WHERE = re.compile(r"(?<=^Where to read: )lesson (\d\d), section &quot;(.+?)&quot;")
Part = str | tuple[Grid, ...]  # a paragraph, or grids side by side


def _prose(text: str) -> str:
    """Text with what is in backticks as code, and with a link where to read."""
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", _WHERE.sub(_link, html.escape(text)))


def _link(where: re.Match[str]) -> str:
    """A link to a section of the notebook of a lesson, which lies next to the one that shows the card."""
    anchor = quote(html.unescape(where[2]).replace(" ", "-"))
    return f'<a href="{LESSONS[int(where[1])].name}.ipynb#{anchor}">{where[0]}</a>'


def _cell(text: str, marked: bool) -> str:
    border = "2px solid currentColor;font-weight:bold" if marked else "2px solid transparent"
    style = f"padding:1px 6px;text-align:right;font-family:monospace;border:{border}"
    return f"<td style='{style}'>{html.escape(text)}</td>"


def _side_by_side(grids: tuple[Grid, ...]) -> str:
    columns = [grid.lines() for grid in grids]
    widths = [len(column[0]) for column in columns]
    rows = zip_longest(*columns, fillvalue="")
    return "\n".join(
        "  " + "    ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def as_text(parts: Iterable[Part]) -> str:
    """Return paragraphs and grids as plain text; marked cells are in brackets."""
    return "\n".join(part if isinstance(part, str) else _side_by_side(part) for part in parts)


#: The edge of a card, to be told from white and from black; the sign in its heading says the same.
EDGES = {"passed": "#2c8a57", "not yet": "#c2571a"}


def as_html(heading: str, parts: Iterable[Part], state: str = "not attempted yet") -> str:
    """Return a card: readable without colour, in light and dark; no script, inline style only.

    `state` is that of a verdict: what passed has a green edge, a mistake an orange one, the rest is dashed.
    """
    edge = EDGES.get(state)
    inner = [f"<div style='font-weight:bold;margin-bottom:0.4em'>{html.escape(heading)}</div>"]
    for part in parts:
        if isinstance(part, str):
            text = _prose(part).replace("\n", "<br>")
            inner.append(f"<div style='margin:0 0 0.4em 0;max-width:48em'>{text}</div>")
        else:
            grids = "".join(grid.to_html() for grid in part)
            inner.append(f"<div style='display:flex;flex-wrap:wrap'>{grids}</div>")
    border = f"1px solid {edge};border-left:8px solid {edge}" if edge else "1px dashed currentColor"
    style = f"border:{border};border-radius:6px;padding:0.6em 0.9em;margin:0.4em 0"
    return f"<div style='{style}'>{''.join(inner)}</div>"


@dataclass(frozen=True)
class Sheet:
    """A paragraph and a program; shown as HTML in a notebook, as text elsewhere."""

    words: str
    program: str

    def __repr__(self) -> str:
        return f"{self.words}\n\n{self.program}"

    def _repr_html_(self) -> str:
        return f"<p>{_prose(self.words)}</p><pre>{html.escape(self.program)}</pre>"
