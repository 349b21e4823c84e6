"""Links in the text of a page: terms, lessons, papers, functions."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping
from functools import cache
from html.parser import HTMLParser

from tinytx_course.lessons import Lesson
from tinytx_course.terms import Term, terms

_LEAVE = {"a", "code", "pre", "math", "script", "style", "summary", "svg", "h1", "h2", "h3", "h4", "h5", "h6"}
_PAPER = r"arXiv:(\d{4}\.\d{4,5})"
_PAPER_LINK = re.compile(r'<a href="https://arxiv\.org/abs/(\d{4}\.\d{4,5})">')
# A paper named before its number, as in "Vaswani et al., *Attention Is All You Need*, [arXiv:1706.03762]".
_CITED = re.compile(rf"([^;.:()]*)[(\[]+{_PAPER}")
_SIGNS = re.compile(r"[*`\[\]]")


@cache
def _forms() -> tuple[re.Pattern[str], dict[str, Term]]:
    """Return what finds a term, a lesson or a paper, the longest form first, and the term of each form."""
    of_form = {form.lower(): term for term in terms().values() for form in term.forms}
    words = "|".join(re.escape(form) for form in sorted(of_form, key=len, reverse=True))
    term = rf"(?<![\w-])(?P<term>{words})(?:s?)(?![\w-])"
    return re.compile(rf"{term}|(?i:\blesson (?P<lesson>\d\d)\b)|{_PAPER}", re.IGNORECASE), of_form


def citations(markdown: Iterable[str]) -> dict[str, str]:
    """Return by its arXiv number what the sources of a lesson say of a paper: who wrote it, and its title.

    Examples
    --------
    >>> citations(["*Where this comes from:* rotary, Su et al., [arXiv:2104.09864](https://arxiv.org/abs/...)"])
    {'2104.09864': 'rotary, Su et al.'}
    """
    found: dict[str, str] = {}
    for cell in markdown:
        sources = cell.partition("*Where this comes from:*")[2].replace("et al.", "et al\0")
        text = " ".join(sources.split())
        for words, number in _CITED.findall(text):
            said = _SIGNS.sub("", words).replace("\0", ".").strip(" ,")
            if len(said) > len(found.get(number, "")) and len(said) < 160:
                found[number] = said
    return found


class Linker(HTMLParser):
    """Link HTML that comes in parts, as the cells of one page do.

    A term is linked once a page, as each link is a stop for who walks by keys; nothing is linked in code,
    formulas, headings, links and summaries, but a function whose name is all there is in its code.

    Parameters
    ----------
    lessons : sequence of Lesson
        Those that are linked where their number is named.
    papers : mapping of str to str
        From `citations`.
    names : iterable of str
        Functions that the reference has, such as ``tx.attention``.
    """

    def __init__(
        self,
        lessons: Iterable[Lesson] = (),
        papers: Mapping[str, str] | None = None,
        names: Iterable[str] = (),
    ) -> None:
        super().__init__(convert_charrefs=False)
        self._pages = {lesson.number: f"{lesson.name}.html" for lesson in lessons}
        self._papers, self._names = papers or {}, frozenset(names)
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
        start = self.get_starttag_text() or ""
        if paper := _PAPER_LINK.match(start):
            start = f'{paper[0][:-1]} class="paper"{self._citation(paper[1])}>'
        self._out.append(start)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        self._out.append(self.get_starttag_text() or "")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._inside:
            while self._inside.pop() != tag:
                pass
        self._out.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if self._inside == ["code"] and data in self._names:
            data = f'<a class="api" href="reference.html#{data}">{data}</a>'
        self._out.append(data if self._inside else _forms()[0].sub(self._linked, data))

    def handle_entityref(self, name: str) -> None:
        self._out.append(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self._out.append(f"&#{name};")

    def handle_comment(self, data: str) -> None:
        self._out.append(f"<!--{data}-->")

    def _citation(self, number: str) -> str:
        said = self._papers.get(number, "")
        return f' title="{html.escape(said)}"' if said else ""

    def _linked(self, match: re.Match[str]) -> str:
        if number := match["lesson"]:
            page = self._pages.get(int(number))
            return f'<a href="{page}">{match[0]}</a>' if page else match[0]
        if number := match[match.re.groups]:
            address = f"https://arxiv.org/abs/{number}"
            return f'<a href="{address}" class="paper"{self._citation(number)}>{match[0]}</a>'
        term = _forms()[1][match["term"].lower()]
        if term.name in self._seen:
            return match[0]
        self._seen.add(term.name)
        title = html.escape(term.sentence)
        return f'<a class="term" href="glossary.html#{term.anchor}" title="{title}">{match[0]}</a>'
