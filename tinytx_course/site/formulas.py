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
_FUNCTIONS = frozenset({"ln", "log", "exp", "sin", "cos", "tan", "max", "min"})
_MATHML = "http://www.w3.org/1998/Math/MathML"
ET.register_namespace("", _MATHML)
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
    root = ET.fromstring(markup)
    for element in root.iter():
        kind = element.tag.rpartition("}")[2]
        if len(element) != _PARTS.get(kind, len(element)):
            raise ValueError(f"a formula must give each command its arguments, got {latex!r}")
    for text in root.iter(f"{{{_MATHML}}}mtext"):  # the converter leaves a backslash before a sign as it is
        text.text = re.sub(r"\\([_%&#$])", r"\1", text.text or "")
    _space_names(root)
    for element in root.iter(f"{{{_MATHML}}}mo"):
        if element.text == "∞":  # no operator: those have spaces around them
            element.tag = f"{{{_MATHML}}}mi"
    return ET.tostring(root, encoding="unicode")


def _space_names(root: ET.Element) -> None:
    """Put a thin space between the name of a function and its neighbours, if no sign is there: 6 ln 2."""
    for row in root.iter(f"{{{_MATHML}}}mrow"):
        for i in reversed(range(1, len(row))):
            left, right = row[i - 1], row[i]
            names = left.text in _FUNCTIONS or right.text in _FUNCTIONS
            if names and not {left.tag, right.tag} & {f"{{{_MATHML}}}mo", f"{{{_MATHML}}}mspace"}:
                row.insert(i, ET.Element(f"{{{_MATHML}}}mspace", width="0.17em"))
