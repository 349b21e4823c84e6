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

from tinytx_course.site.templates import macro

LINES, COLUMNS = 16, 68  # on a slide, at most; a longer line is wrapped
_WHOLE = 10  # lines of a cell that is shown as a whole
_STEP = 3  # lines that come with a key, at least
_NOT_SHOWN = re.compile(r"\b(course|plots|museum|inspect)\.|^[%!]", re.M)  # cards and figures, commands
_TABLE = re.compile(r"print\(f|\.plot\(")  # prints a table: its numbers are in the notebook


def code_slides(source: str, printed: str = "") -> list[str]:
    """Return the slides of a cell: the whole cell with what it printed, or those of its functions that fit.

    Examples
    --------
    >>> len(code_slides("x = 1")), len(code_slides("course.quiz('tokens')"))
    (1, 0)
    """
    try:
        pieces = _pieces(source)
    except SyntaxError:  # a command of IPython
        return []
    whole = "".join(text for node, text in pieces if not isinstance(node, ast.Import | ast.ImportFrom))
    whole = whole.strip("\n")
    if 0 < _height(whole) <= _WHOLE and not _NOT_SHOWN.search(whole) and not _TABLE.search(whole):
        below = f'<pre class="printed fragment">{html.escape(printed.rstrip())}</pre>'
        (code,) = _in_steps(whole)
        return [code + (below if 0 < _height(printed) < LINES - _height(whole) else "")]
    functions = (text for node, text in pieces if isinstance(node, ast.FunctionDef | ast.ClassDef))
    shown = (
        text for text in _together(part.strip("\n") for part in functions) if not _NOT_SHOWN.search(text)
    )
    return [slide for text in shown if _height(text) <= 2 * LINES for slide in _in_steps(text)]


def _together(parts: Iterable[str]) -> list[str]:
    """Join neighbours that fit on one slide."""
    joined: list[str] = []
    for part in parts:
        if joined and _height(both := f"{joined[-1]}\n\n{part}") <= LINES:
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


def _in_steps(source: str) -> list[str]:
    """Return code as one slide, or two where it is long, in steps that begin with a statement."""
    starts = {node.lineno for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt)}
    lines = source.splitlines()
    coloured = highlight(source, PythonLexer(), HtmlFormatter(nowrap=True)).splitlines()
    slides: list[list[list[int]]] = [[[]]]  # numbers of lines
    for number in range(len(lines)):
        if number + 1 in starts and len(slides[-1][-1]) >= _STEP:
            half = _height("\n".join(lines[:number])) >= _height(source) / 2 - 1
            if half and len(slides) == 1 and _height(source) > LINES:
                slides.append([[]])
            else:
                slides[-1].append([])
        slides[-1][-1].append(number)
    shown = ([[coloured[number] for number in step] for step in slide] for slide in slides)
    return [macro("kit/deck.html", "code", steps) for steps in shown]
