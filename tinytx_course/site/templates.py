"""Pages from templates: the HTML files of this package, filled in by Jinja."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from tinytx_course.lessons import Lesson
from tinytx_course.quizzes.card import marked
from tinytx_course.site.cells import markdown_to_html


def line_to_html(source: str) -> str:
    """Return Markdown of one paragraph without the paragraph."""
    return re.sub(r"^<p>(.*)</p>$", r"\1", markdown_to_html(source).strip(), flags=re.S)


def titled(lesson: Lesson, between: str = " ") -> str:
    """Return number and title of a lesson as HTML."""
    return html.escape(f"{lesson.number:02d}{between}{lesson.title}")


def table(head: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    """Return a table of cells that are HTML already."""
    return macro("site/parts.html", "table", head, cells)


@cache
def _environment() -> Environment:
    loader = FileSystemLoader(Path(__file__).parents[1])
    found = Environment(loader=loader, undefined=StrictUndefined, keep_trailing_newline=True)
    found.filters |= {"e": html.escape, "titled": titled, "marked": marked}
    found.filters |= {"markdown": markdown_to_html, "line": line_to_html}
    return found


def render(template: str, **values: Any) -> str:
    """Return a template of the package, such as ``site/page.html``, with its values.

    They are HTML already; filters make HTML of plain text (``e``), of text with code between backticks
    (``marked``), of Markdown (``markdown``, ``line``) and of a lesson (``titled``).
    """
    return _environment().get_template(template).render(values)


def macro(template: str, name: str, *values: Any) -> str:
    """Return what a macro of a template makes of some values."""
    return getattr(_environment().get_template(template).module, name)(*values)
