"""The reference: the names of `tx` and `course` with their signatures and docstrings, as one page."""

from __future__ import annotations

import html
import inspect
import re
from functools import cache
from typing import Any

import tinytx as tx
import tinytx_course as course

_PACKAGES = (("tx", "tinytx", tx), ("course", "tinytx_course", course))
_LISTS = {"Parameters", "Attributes", "Returns", "Raises", "Yields"}
_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.M)
_CODE = re.compile(r"``([^`]+)``|`([^`]+)`")
_ROLE = re.compile(r":\w+:`")
_PAPER = re.compile(r"arXiv[: ](\d{4}\.\d{4,5})")
_FOOTNOTE = re.compile(r"\.\. \[\d+\] |\[\d+\]_")
_FOLDER = re.compile(r"\w+Path\('[^']*'\)")  # of this machine
_HOME = re.compile(rf"\b(?:{'|'.join(course.PACKAGES)}|torch|collections|pathlib|typing)[\w.]*\.(?=\w)")


@cache
def names() -> frozenset[str]:
    """Return the names that the reference has, as lessons write them, such as ``tx.attention``."""
    return frozenset(f"{short}.{name}" for short, _, package in _PACKAGES for name in package.__all__)


def reference_body() -> str:
    """Return the names with a heading, a signature and the docstring each."""
    parts = [
        "<h1>Reference</h1>",
        "<p>What <code>import tinytx as tx</code> and <code>import tinytx_course as course</code> offer. "
        "A capital letter in a shape is an axis: see "
        '<a href="glossary.html#names">names and shapes</a>.</p>',
    ]
    for short, package, module in _PACKAGES:
        parts.append(f'<h2 id="{short}"><code>{package}</code> as <code>{short}</code></h2>')
        parts += [
            _entry(f"{short}.{name}", getattr(module, name)) for name in sorted(module.__all__, key=str.lower)
        ]
    return "\n".join(parts)


def _entry(name: str, thing: Any) -> str:
    anchor = f'<a class="anchor-link" href="#{name}" tabindex="-1" aria-hidden="true">¶</a>'
    parts = [f'<h3 id="{name}"><code>{name}</code>{anchor}</h3>']
    if inspect.isfunction(thing) or inspect.isclass(thing):
        parts.append(_signature(name, thing))
        parts.append(docstring_to_html(inspect.getdoc(thing) or ""))
    else:
        keys = ", ".join(f"<code>{html.escape(str(key))}</code>" for key in thing)
        parts.append(f'<p class="first">A constant: a table with the keys {keys}.</p>')
    if inspect.isclass(thing):
        parts += [_method(name, each) for each in _methods(thing)]
    return "\n".join(parts)


def _methods(thing: type) -> list[Any]:
    """Return the public methods that the class itself defines and describes."""
    found = []
    for name, value in vars(thing).items():
        plain = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if inspect.isfunction(plain) and (name[0] != "_") and plain.__doc__:
            found.append(plain)
    return found


def _method(name: str, method: Any) -> str:
    label, doc = f"{name}.{method.__name__}", inspect.getdoc(method) or ""
    return (
        f'<details class="method"><summary><code>{html.escape(label.partition(".")[2])}</code> '
        f"{_prose(doc.partition(chr(10))[0])}</summary>\n"
        f"{_signature(label, method)}\n{docstring_to_html(doc)}</details>"
    )


def _signature(name: str, thing: Any) -> str:
    try:
        words = str(inspect.signature(thing))
    except ValueError:  # written in C
        return ""
    words = _HOME.sub("", _FOLDER.sub("...", words).replace("'", ""))
    if len(words) > 72:
        words = re.sub(r", (?=\*?\w+[:,)=]|\*)", ",\n    ", words.replace("(", "(\n    ", 1))
    return f'<pre class="signature">{html.escape(name + words)}</pre>'


def _prose(text: str) -> str:
    """Return a paragraph of a docstring as HTML: names as code, papers as links."""
    text = html.escape(_ROLE.sub("`", " ".join(_FOOTNOTE.sub("", text).split())), quote=False)
    text = _CODE.sub(lambda match: f"<code>{match[1] or match[2]}</code>", text)
    return _PAPER.sub(r'<a class="paper" href="https://arxiv.org/abs/\1">arXiv:\1</a>', text)


def docstring_to_html(text: str) -> str:
    """Return a docstring in the form of numpydoc as HTML.

    Examples
    --------
    >>> docstring_to_html("Add.\\n\\nReturns\\n-------\\nfloat\\n    The sum.")
    '<p class="first">Add.</p>\\n<h4>Returns</h4>\\n<dl><dt><code>float</code></dt><dd>The sum.</dd></dl>'
    """
    first, *rest = _SECTION.split(text)
    opening, *paragraphs = [part for part in re.split(r"\n\s*\n", first.strip()) if part.strip()] or [""]
    parts = [f'<p class="first">{_prose(opening)}</p>', *map(_paragraph, paragraphs)]
    for title, body in zip(rest[::2], rest[1::2], strict=True):
        parts.append(f"<h4>{title}</h4>")
        if title in _LISTS:
            parts.append(_definitions(body))
        elif title == "Examples":
            parts.append(f"<pre>{html.escape(inspect.cleandoc(body))}</pre>")
        else:
            parts += [_paragraph(part) for part in re.split(r"\n\s*\n", body.strip("\n")) if part.strip()]
    return "\n".join(parts)


def _paragraph(part: str) -> str:
    """Return a paragraph; one that is indented or holds a doctest is code."""
    lines = part.strip("\n").splitlines()
    if all(line.startswith("    ") for line in lines) or lines[0].startswith(">>>"):
        return f"<pre>{html.escape(inspect.cleandoc(part.strip(chr(10))))}</pre>"
    return f"<p>{_prose(part)}</p>"


def _definitions(body: str) -> str:
    """Return a list of names with what they mean."""
    items = []
    for part in re.split(r"\n(?=\S)", inspect.cleandoc(body)):
        head, _, words = part.partition("\n")
        meaning = f"<dd>{_prose(words)}</dd>" if words else "<dd></dd>"
        items.append(f"<dt><code>{html.escape(head)}</code></dt>{meaning}")
    return f"<dl>{''.join(items)}</dl>"
