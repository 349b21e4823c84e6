"""Terms in the text of a page as links to the glossary: the first time in each section."""

from __future__ import annotations

import html
import re
from functools import cache
from html.parser import HTMLParser

from tinytx_course.terms import Term, terms

_LEAVE = {"a", "code", "pre", "math", "script", "style", "summary", "svg", "h1", "h2", "h3", "h4", "h5", "h6"}
_SECTIONS = {"h1", "h2"}


@cache
def _forms() -> tuple[re.Pattern[str], dict[str, Term]]:
    """Return what finds a form as a whole word, the longest first, and the term of each form."""
    of_form = {form.lower(): term for term in terms().values() for form in term.forms}
    words = "|".join(re.escape(form) for form in sorted(of_form, key=len, reverse=True))
    return re.compile(rf"(?<![\w-])({words})(s?)(?![\w-])", re.IGNORECASE), of_form


class TermLinker(HTMLParser):
    """Link terms in HTML that comes in parts, as the cells of one page do: `link` remembers its section.

    Nothing is linked in code, formulas, headings, links and summaries.
    """

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self._out: list[str] = []
        self._inside: list[str] = []
        self._seen: set[str] = set()

    def link(self, part: str) -> str:
        """Return a part of the page with links."""
        self._out, self._inside = [], []
        self.feed(part)
        self.close()
        self.reset()
        return "".join(self._out)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in _LEAVE:
            self._inside.append(tag)
        if tag in _SECTIONS:
            self._seen = set()
        self._out.append(self.get_starttag_text() or "")

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        self._out.append(self.get_starttag_text() or "")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._inside:
            while self._inside.pop() != tag:
                pass
        self._out.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        self._out.append(data if self._inside else _forms()[0].sub(self._linked, data))

    def handle_entityref(self, name: str) -> None:
        self._out.append(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self._out.append(f"&#{name};")

    def handle_comment(self, data: str) -> None:
        self._out.append(f"<!--{data}-->")

    def _linked(self, match: re.Match[str]) -> str:
        term = _forms()[1][match[1].lower()]
        if term.name in self._seen:
            return match[0]
        self._seen.add(term.name)
        title = html.escape(term.sentence)
        return f'<a class="term" href="glossary.html#{term.anchor}" title="{title}">{match[0]}</a>'
