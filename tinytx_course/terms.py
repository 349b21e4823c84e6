"""The glossary of the course, from ``terms.toml``: every term in one sentence, and names next to ours.

>>> terms()["causal mask"].lesson
2
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from functools import cache

from tinytx_course.results import tables_of

_COLUMNS = {
    "concept": "concept",
    "letter": "shape",
    "tinytx": "tinytx",
    "paper": "first paper",
    "torch": "torch",
    "hugging_face": "Hugging Face",
}


@dataclass(frozen=True, kw_only=True)
class Term:
    """One term."""

    name: str
    sentence: str  # what it means
    lesson: int  # number of the lesson where it is met
    others: str = ""  # its other names, or empty
    forms: tuple[str, ...]  # as pages link to it; their plural with -s is linked too

    @property
    def anchor(self) -> str:
        """Its id in the page of the glossary."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")


@cache
def terms() -> dict[str, Term]:
    """Return all terms by name, in the order of the file."""
    return {
        name: Term(name=name, **table | {"forms": tuple(table.get("forms", [name]))})
        for name, table in tables_of("terms.toml")["terms"].items()
    }


class Glossary:
    """All terms and names: a folded table in a notebook, lines of text elsewhere."""

    def __repr__(self) -> str:
        return "\n".join(f"{term.name} (lesson {term.lesson:02d}): {term.sentence}" for term in _sorted())

    def _repr_html_(self) -> str:
        parts = (("Glossary: every term in one sentence", terms_table()), ("Names and shapes", names_table()))
        return "\n".join(
            f"<details><summary>{title}</summary>\n{table}\n</details>" for title, table in parts
        )


def glossary() -> Glossary:
    """Show the terms of the course, and its names next to those of the paper, torch and Hugging Face."""
    return Glossary()


def _sorted() -> list[Term]:
    return sorted(terms().values(), key=lambda term: term.name.lower())


def terms_table(links: dict[int, str] | None = None) -> str:
    """Return the terms as an HTML table; with links, a lesson's number leads there and rows have ids."""
    rows = []
    for term in _sorted():
        number = f"{term.lesson:02d}"
        if links and term.lesson in links:
            number = f'<a href="{links[term.lesson]}">{number}</a>'
        anchor = "" if links is None else f' id="{term.anchor}"'
        name = f'<th scope="row"{anchor}>{html.escape(term.name)}</th>'
        cells = "".join(f"<td>{html.escape(text)}</td>" for text in (term.sentence, term.others))
        rows.append(f"<tr>{name}{cells}<td>{number}</td></tr>")
    return _table(["term", "what it means", "also called", "lesson"], rows)


def names_table() -> str:
    """Return the names of sizes and tensors as an HTML table."""
    rows = []
    for name in tables_of("terms.toml")["names"]:
        first, *others = (html.escape(name[key]) for key in _COLUMNS)
        cells = "".join(
            f"<td>{f'<code>{text}</code>' if text not in ('', '–') else text}</td>" for text in others
        )
        rows.append(f'<tr><th scope="row">{first}</th>{cells}</tr>')
    return _table(list(_COLUMNS.values()), rows)


def _table(heads: list[str], rows: list[str]) -> str:
    head = "".join(f'<th scope="col">{text}</th>' for text in heads)
    body = "\n".join(rows)
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"
