"""Links in the text of a page: terms, lessons, papers, functions."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping
from functools import cache

import tinytx as tx
import tinytx_course as course
import tinyworld
from tinytx_course.lessons import Lesson
from tinytx_course.site.typography import TAG
from tinytx_course.terms import Term, terms

#: What the reference describes, by the name that lessons give it.
DOCUMENTED = {"tx": tx, "tinyworld": tinyworld, "course": course}
_ALONE = "a|code|pre|math|script|style|summary|svg|h[1-6]"
_PARTS = re.compile(rf"<(?P<name>{_ALONE})\b[^>]*>(?P<inside>.*?)</(?P=name)>|{TAG}|(?P<text>[^<]+)", re.S)
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


@cache
def names() -> frozenset[str]:
    """Return the names that the reference has, as lessons write them, such as ``tx.attention``."""
    return frozenset(f"{short}.{name}" for short, package in DOCUMENTED.items() for name in package.__all__)


class Linker:
    """Link HTML that comes in parts, as the cells of one page do.

    A term is linked once a page, as each link is a stop for who walks by keys; nothing is linked in code,
    formulas, headings, links and summaries, but a function whose name is all there is in its code.

    Parameters
    ----------
    lessons : sequence of Lesson
        Those that are linked where their number is named.
    papers : mapping of str to str
        From `citations`.
    """

    def __init__(self, lessons: Iterable[Lesson] = (), papers: Mapping[str, str] | None = None) -> None:
        self._pages = {lesson.number: f"{lesson.name}.html" for lesson in lessons}
        self._papers, self._seen = papers or {}, set[str]()

    def link(self, part: str) -> str:
        """Return a part of the page with links."""
        part = _PAPER_LINK.sub(lambda link: self._paper(link[1]), part)
        return _PARTS.sub(self._linked_part, part)

    def _linked_part(self, match: re.Match[str]) -> str:
        if match["text"]:
            return _forms()[0].sub(self._linked, match[0])
        name = match["inside"]
        if match["name"] == "code" and name in names():
            return f'<code><a class="api" href="reference.html#{name}">{name}</a></code>'
        return match[0]

    def _paper(self, number: str) -> str:
        """Return the beginning of a link to a paper, which says who wrote it where that is known."""
        said = self._papers.get(number, "")
        title = f' title="{html.escape(said)}"' if said else ""
        return f'<a href="https://arxiv.org/abs/{number}" class="paper"{title}>'

    def _linked(self, match: re.Match[str]) -> str:
        if number := match["lesson"]:
            page = self._pages.get(int(number))
            return f'<a href="{page}">{match[0]}</a>' if page else match[0]
        if number := match[match.re.groups]:
            return f"{self._paper(number)}{match[0]}</a>"
        term = _forms()[1][match["term"].lower()]
        if term.name in self._seen:
            return match[0]
        self._seen.add(term.name)
        title = html.escape(term.sentence)
        return f'<a class="term" href="glossary.html#{term.anchor}" title="{title}">{match[0]}</a>'
