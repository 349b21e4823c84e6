"""Printed text as HTML: aligned columns become a table, which wraps, aligns and can be read aloud."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from itertools import groupby

_FEWEST = 3  # rows, and columns
_ROW = re.compile(r"\S {2,}\S|^ {2,}\S")
_RULE = re.compile(r"^\s*[-─=]{3,}\s*$")
_WORD = re.compile(r"[^\W\d_]{3,}")
_NO_TABLE = re.compile(
    r"[█▏▎▍▌▋▊▉#\[\]\x1b]{3,}|\btensor\(|^ {4,}\S+ = |^\s*(def|class|return|import) ", re.M
)


def printed(text: str, to_html: Callable[[str], str] = html.escape) -> str:
    """Return what a cell printed as `<pre>` blocks, with a `<table>` in place of aligned columns.

    Parameters
    ----------
    text : str
    to_html : callable
        Makes HTML of a line or of a cell of a table.

    Examples
    --------
    >>> print(printed("heads  loss  time\\n    1  0.31     2\\n    2  0.25     3\\ndone"))
    <table class="printed"><thead><tr><th scope="col" class="n">heads</th>...
    <pre>done</pre>
    """
    lines = text.rstrip("\n").split("\n")
    parts: list[str | list[str]] = []  # tables, and lines that are none
    for like_rows, group in groupby(lines, key=lambda line: bool(_ROW.search(line) or _RULE.match(line))):
        run = list(group)
        if like_rows and (rows := _rows(run)):
            parts.append(_table(rows, to_html))
        elif parts and isinstance(parts[-1], list):
            parts[-1] += run
        else:
            parts.append(run)
    texts = [part if isinstance(part, str) else "\n".join(part).strip("\n") for part in parts]
    shown = zip(parts, texts, strict=True)
    return "\n".join(
        text if isinstance(part, str) else f"<pre>{to_html(text)}</pre>"
        for part, text in shown
        if text.strip()
    )


def _rows(lines: Sequence[str]) -> list[list[str]]:
    """The cells of lines whose columns are aligned; none where they are no table."""
    lines = [line for line in lines if not _RULE.match(line)]
    if len(lines) < _FEWEST or _NO_TABLE.search("\n".join(lines)):
        return []
    width = max(map(len, lines))
    used = "".join("x" if any(line[i : i + 1].strip() for line in lines) else " " for i in range(width))
    edges = [match.span() for match in re.finditer(r"x+(?: x+)*", used)]
    rows = [[line[a:b].strip() for a, b in edges] for line in lines]
    cells = [cell for row in rows for cell in row]
    is_whole = not any("  " in cell for cell in cells) and not any(
        cell.endswith((",", ":")) for cell in cells
    )
    is_dense = all(sum(map(bool, row)) >= min(_FEWEST, len(edges) - 1) for row in rows[1:])
    is_named = any(map(_WORD.search, rows[0])) or all(_WORD.search(row[0]) for row in rows)
    return rows if len(edges) >= _FEWEST and is_whole and is_dense and is_named else []


def _is_value(cell: str) -> bool:
    """Whether a cell is a number, perhaps with a unit or an interval, or a yes or no."""
    return cell in {"True", "False"} or (bool(re.search("[0-9]", cell)) and not _WORD.search(cell))


def _has_head(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row names the columns: words above values."""
    of_values = [2 * sum(map(_is_value, column)) >= len(column) for column in zip(*rows[1:], strict=True)]
    names = zip(rows[0][1:], of_values[1:], strict=True)
    return any(of_values[1:]) and all(
        not _is_value(name) and (is_value or not re.search("[0-9]", name)) for name, is_value in names
    )


def _table(rows: Sequence[Sequence[str]], to_html: Callable[[str], str]) -> str:
    head, body = (rows[0], rows[1:]) if _has_head(rows) else ([], rows)
    n_values = [sum(map(_is_value, column)) for column in zip(*body, strict=True)]
    look = [' class="n"' if 2 * n >= len(body) else "" for n in n_values]

    def line(cells: Sequence[str], scope: str) -> str:
        parts = []
        for i, (cell, own) in enumerate(zip(cells, look, strict=True)):
            names = bool(cell) and (scope == "col" or i == 0)  # no screen reader announces an empty corner
            begin, end = (f'th scope="{scope}"', "th") if names else ("td", "td")
            parts.append(f"<{begin}{own}>{to_html(cell)}</{end}>")
        return f"<tr>{''.join(parts)}</tr>"

    top = f"<thead>{line(head, 'col')}</thead>" if head else ""
    return f'<table class="printed">{top}<tbody>{"".join(line(row, "row") for row in body)}</tbody></table>'
