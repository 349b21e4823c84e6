"""The reference: the names of `tx` and `course` with their signatures and docstrings, as one page."""

from __future__ import annotations

import html
import inspect
import re
from typing import Any

from tinytx_course import PACKAGES
from tinytx_course.site.linking import DOCUMENTED
from tinytx_course.site.templates import render

_LISTS = {"Parameters", "Attributes", "Returns", "Raises", "Yields"}
_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.M)
_CODE = re.compile(r"``([^`]+)``|`([^`]+)`")
_ROLE = re.compile(r":\w+:`")
_PAPER = re.compile(r"arXiv[: ](\d{4}\.\d{4,5})")
_FOOTNOTE = re.compile(r"\.\. \[\d+\] |\[\d+\]_")
_FOLDER = re.compile(r"\w+Path\('[^']*'\)")  # of this machine
_HOME = re.compile(rf"\b(?:{'|'.join(PACKAGES)}|torch|collections|pathlib|typing)[\w.]*\.(?=\w)")


def reference_body() -> str:
    """Return the names with a heading, a signature and the docstring each."""
    return render(
        "site/names.html",
        packages=DOCUMENTED,
        of=getattr,
        signature=_signature,
        docstring=lambda thing: docstring_to_html(inspect.getdoc(thing) or ""),
        first_line=lambda method: _prose((inspect.getdoc(method) or "").partition("\n")[0]),
        methods=_methods,
    ).rstrip()


def _methods(thing: Any) -> list[Any]:
    """Return the public methods that a class itself defines and describes."""
    values = vars(thing).items() if inspect.isclass(thing) else ()
    plain = ((name, getattr(value, "__func__", value)) for name, value in values if name[0] != "_")
    return [value for _, value in plain if inspect.isfunction(value) and value.__doc__]


def _signature(name: str, thing: Any) -> str:
    words = _HOME.sub("", _FOLDER.sub("...", str(inspect.signature(thing))).replace("'", ""))
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
    parts = _paragraphs(first)
    parts[:1] = [part.replace("<p>", '<p class="first">', 1) for part in parts[:1]]
    for title, body in zip(rest[::2], rest[1::2], strict=True):
        parts.append(f"<h4>{title}</h4>")
        if title in _LISTS:
            parts.append(_definitions(body))
        elif title == "Examples":
            parts.append(f"<pre>{html.escape(inspect.cleandoc(body))}</pre>")
        else:
            parts += _paragraphs(body)
    return "\n".join(parts)


def _paragraphs(text: str) -> list[str]:
    """Return paragraphs; one that is indented or holds a doctest is code."""
    found = []
    for part in re.split(r"\n\s*?\n(?=.*\S)", text.strip("\n")):
        is_code = re.match(r">>>|    .*(\n    .*)*\Z", part)
        code = f"<pre>{html.escape(inspect.cleandoc(part))}</pre>"
        found.append(code if is_code else f"<p>{_prose(part)}</p>")
    return found


def _definitions(body: str) -> str:
    """Return a list of names with what they mean."""
    items = []
    for part in re.split(r"\n(?=\S)", inspect.cleandoc(body)):
        head, _, words = part.partition("\n")
        items.append(f"<dt><code>{html.escape(head)}</code></dt><dd>{_prose(words)}</dd>")
    return f"<dl>{''.join(items)}</dl>"
