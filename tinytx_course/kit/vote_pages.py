"""The pages of the vote cards: questions to project, cards to print, answers for the teacher."""

from __future__ import annotations

import html
from functools import partial
from importlib.resources import files
from pathlib import Path

from tinytx_course.inventory.forms import paper
from tinytx_course.kit.pages import write_page
from tinytx_course.lessons import LESSONS
from tinytx_course.quizzes.bank import LETTERS, votes, with_twins
from tinytx_course.site.templates import render
from tinytx_run.files import write_file

#: For each letter: colour, shape, height of the letter in it, and marks that repeat every 12 units.
_SIGNS = {
    "A": ("#0072B2", '<circle cx="50" cy="50" r="47"/>', 50, ""),
    "B": ("#D55E00", '<rect x="6" y="6" width="88" height="88"/>', 50, '<path d="M0 0v12"/>'),
    "C": ("#009E73", '<path d="M50 3 99 95H1z"/>', 64, '<path d="M6 5v2"/>'),
    "D": ("#AA4499", '<path d="M50 1 99 50 50 99 1 50z"/>', 50, '<path d="M0 6h12M6 0v12"/>'),
}
_DENSE = """.item { margin-top: 0.8rem; padding-top: 0.5rem; } .item td:first-child { white-space: nowrap; }
.item td:nth-child(2) { width: 38%; } @media print { body { font-size: 8.5pt; line-height: 1.3; } }"""
_page = partial(render, "kit/votes.html", signs=_SIGNS, letters=LETTERS)


def write_votes(folder: Path) -> None:
    """Write ``index.html``, a page a lesson to project, ``cards.html`` and ``answers.html`` into a folder."""
    asked_in = {lesson: votes(lesson) for lesson in LESSONS}
    for lesson, asked in asked_in.items():
        title = f"Votes: {html.escape(lesson.title)} · tinytx"
        body = _page(page="screens", asked=with_twins(asked))
        screens = render("kit/votes/show.html", title=title, body=body)
        write_file(folder / f"{lesson.name}.html", screens.encode())
    answers = _page(page="answers", asked=[one for asked in asked_in.values() for one in with_twins(asked)])
    write_file(folder / "answers.html", paper("Votes: Answers", answers, _DENSE).encode())
    style = files(__package__).joinpath("votes", "cards.css").read_text(encoding="utf-8")
    write_file(folder / "cards.html", paper("Votes: Cards", _page(page="cards"), style).encode())
    write_page(folder / "index.html", "Vote cards", _page(page="index", votes=asked_in))
