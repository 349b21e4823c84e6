"""Formulas as MathML, which browsers draw by themselves: no script, font or host is needed."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from latex2mathml.converter import convert

# What the converter knows by another name.
_SAME = (("{aligned}", "{align*}"), (r"\operatorname*", r"\operatorname"), (r"\lvert", "|"), (r"\rvert", "|"))
# Elements that mean nothing with fewer parts, as when an argument was forgotten.
_PARTS = dict.fromkeys(("mfrac", "mroot", "msup", "msub", "mover", "munder"), 2)
_PARTS |= {"msubsup": 3, "munderover": 3}
_LEFTOVER = re.compile(r"<mi>(\\[a-zA-Z]+|&)</mi>")


def to_mathml(latex: str, *, block: bool = False) -> str:
    r"""Turn LaTeX without its dollar signs into MathML; `block` for a formula on a line of its own.

    Raises
    ------
    ValueError
        If a command in it is unknown, or lacks an argument.

    Examples
    --------
    >>> "<mfrac>" in to_mathml(r"\frac{1}{2}")
    True
    """
    source = latex.strip()
    for written, known in _SAME:
        source = source.replace(written, known)
    try:
        markup = convert(source, display="block" if block else "inline")
    except Exception as problem:
        raise ValueError(f"a formula must be LaTeX that can be drawn, got {latex!r}") from problem
    if unknown := _LEFTOVER.search(markup):
        raise ValueError(f"a formula must use known commands, got {unknown[1]} in {latex!r}")
    for element in ET.fromstring(markup).iter():
        kind = element.tag.rpartition("}")[2]
        if len(element) != _PARTS.get(kind, len(element)):
            raise ValueError(f"a formula must give each command its arguments, got {latex!r}")
    return markup
