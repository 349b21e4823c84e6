"""Quotation marks and apostrophes of prose as printers set them; code, formulas and data stay as they are."""

from __future__ import annotations

import re

_LEFT_ALONE = "pre|code|kbd|samp|math|svg|script|style|textarea"
_DATA = r'<table\b[^>]*class="dataframe".*?</table>'
TAG = r"""<!--.*?-->|<(?:"[^"]*"|'[^']*'|[^'">])*>"""
_PARTS = re.compile(
    rf"(?P<alone><(?P<name>{_LEFT_ALONE})\b.*?</(?P=name)>|{_DATA})|(?P<tag>{TAG})|(?P<text>[^<]+|<)",
    re.S,
)
_INLINE = re.compile(r"</?(?:a|abbr|b|cite|em|i|mark|q|small|span|strong|sub|sup|u)\b")
_QUOTE = re.compile(r"&quot;|&#39;|&#x27;|[\"']")
_OPENS = frozenset(" \t\n\u00a0\u202f([{<“‘«—–-/")
_SHORT = re.compile(r"\d|(?:tis|twas|em|n|til|cause)\b", re.IGNORECASE)


def typographic(page: str) -> str:
    """Return HTML whose prose has curly quotation marks and apostrophes.

    What opens and what closes follows from the character before, also across tags within a paragraph.

    Examples
    --------
    >>> typographic('<p title="it\\'s">"It\\'s <code>x\\'s</code>": the \\'90s</p>')
    '<p title="it\\'s">“It’s <code>x\\'s</code>”: the ’90s</p>'
    """
    out, before = [], " "
    for part in _PARTS.finditer(page):
        if part["text"]:
            text, before = _curled(part["text"], before)
            out.append(text)
            continue
        if part["alone"]:
            before = "x"  # what follows code belongs to it: its 's, a mark that closes
        elif not _INLINE.match(part["tag"]):
            before = " "
        out.append(part[0])
    return "".join(out)


def _curled(text: str, before: str) -> tuple[str, str]:
    """Return text with curly marks, given the character before it, and its own last one."""
    out, at = [], 0
    for mark in _QUOTE.finditer(text):
        between = text[at : mark.start()]
        before = between[-1] if between else before
        opens = before in _OPENS
        if mark[0] in ('"', "&quot;"):
            sign = "“" if opens else "”"
        else:
            sign = "‘" if opens and not _SHORT.match(text, mark.end()) else "’"
        out += [between, sign]
        before, at = sign, mark.end()
    rest = text[at:]
    return "".join(out) + rest, rest[-1] if rest else before
