"""Code on slides: what is short enough to be read from the last row, in steps of a few lines."""

from __future__ import annotations

import ast
import html
import math
import re
from collections.abc import Iterable
from itertools import pairwise

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from tinytx_course.site.cells import without_marks

LINES, COLUMNS = 15, 68  # on a slide, at most; a longer line is wrapped
_STEP = 3  # lines that come with a key, at least
_NOT_SHOWN = re.compile(r"\b(course|plots)\.|^[%!]", re.M)  # cards and figures, commands
_TABLE = re.compile(r"print\(f|\.plot\(")  # prints a table: its numbers are in the notebook


def code_slides(source: str, printed: str = "") -> list[str]:
    """Return the slides of a cell: the whole cell with what it printed, or those of its functions that fit.

    Examples
    --------
    >>> len(code_slides("x = 1")), len(code_slides("course.quiz('tokens')"))
    (1, 0)
    """
    try:
        pieces = _pieces(without_marks(source))
    except SyntaxError:  # a command of IPython
        return []
    whole = "".join(text for node, text in pieces if not isinstance(node, ast.Import | ast.ImportFrom))
    whole = whole.strip("\n")
    if _fits(whole) and not _TABLE.search(whole):
        room = _height(whole) + 1 + _height(printed) <= LINES
        below = f'<pre class="printed fragment">{html.escape(printed.rstrip())}</pre>'
        return [_code(whole) + (below if printed.strip() and room else "")]
    functions = [text for node, text in pieces if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return [_code(text) for text in _together(part.strip("\n") for part in functions) if _fits(text)]


def _together(parts: Iterable[str]) -> list[str]:
    """Join neighbours that fit on one slide."""
    joined: list[str] = []
    for part in parts:
        both = f"{joined[-1]}\n\n{part}" if joined else ""
        if both and _fits(both):
            joined[-1] = both
        else:
            joined.append(part)
    return joined


def _pieces(source: str) -> list[tuple[ast.stmt, str]]:
    """Return the statements of a piece of code, each with its text and the comments before it."""
    nodes, lines = ast.parse(source).body, source.splitlines(keepends=True)
    ends = [0, *(node.end_lineno or 0 for node in nodes)]
    return [(node, "".join(lines[a:b])) for node, (a, b) in zip(nodes, pairwise(ends), strict=True)]


def _height(text: str) -> int:
    """Return how many lines a text takes on a slide."""
    return sum(max(1, math.ceil(len(line) / COLUMNS)) for line in text.rstrip().splitlines())


def _fits(text: str) -> bool:
    return 0 < _height(text) <= LINES and not _NOT_SHOWN.search(text)


def _code(source: str) -> str:
    """Return code as HTML that comes in steps, the first of which is there from the beginning."""
    (first, *others) = ast.parse(source).body
    inner = (
        first.body if not others and isinstance(first, ast.FunctionDef | ast.ClassDef) else [first, *others]
    )
    lines = highlight(source, PythonLexer(), HtmlFormatter(nowrap=True)).splitlines()
    ends = [0]
    for node in inner:
        if (node.end_lineno or 0) - ends[-1] >= _STEP:
            ends.append(node.end_lineno or 0)
    ends[-1 if len(ends) > 1 else 1 :] = [len(lines)]
    steps = (
        f'<span class="{"fragment custom" if a else "shown"}">{_spans(lines[a:b])}</span>'
        for a, b in pairwise(ends)
    )
    return f'<div class="highlight"><pre>{"".join(steps)}</pre></div>'


def _spans(lines: list[str]) -> str:
    """Return each line as an element of its own; what is wrapped is indented further than its beginning."""
    indents = [len(line) - len(line.lstrip(" ")) for line in lines]
    return "".join(
        f'<span class="line" style="padding-left: {indent + 4}ch">{line.lstrip(" ") or " "}</span>'
        for line, indent in zip(lines, indents, strict=True)
    )
