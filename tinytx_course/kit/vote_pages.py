"""The pages of the vote cards: questions to project, cards to print, answers for the teacher."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template

from tinytx_course.inventory.forms import paper, plain_table
from tinytx_course.kit.pages import link, write_page
from tinytx_course.kit.votes import LETTERS, Question, questions, with_twins
from tinytx_course.lessons import LESSONS, Lesson
from tinytx_course.quizzes.card import marked
from tinytx_course.site.pages import table
from tinytx_run.files import write_file

#: For each letter: colour, shape, height of the letter in it, and marks that repeat every 12 units.
_SIGNS = {
    "A": ("#0072B2", '<circle cx="50" cy="50" r="47"/>', 50, ""),
    "B": ("#D55E00", '<rect x="6" y="6" width="88" height="88"/>', 50, '<path d="M0 0v12"/>'),
    "C": ("#009E73", '<path d="M50 3 99 95H1z"/>', 64, '<path d="M6 5v2"/>'),
    "D": ("#AA4499", '<path d="M50 1 99 50 50 99 1 50z"/>', 50, '<path d="M0 6h12M6 0v12"/>'),
}
_HOW = (
    "Project the question of a lesson. Everybody thinks alone for a minute, then all show a letter at once.",
    "Show no answer yet. With fewer than 3 in 10 right, explain again; with more than 7 in 10, go on.",
    "In between, everybody finds a neighbour with another letter and argues for two minutes.",
    "Then → brings the twin, which asks the same in another dress. Vote again.",
    "Enter shows the answer and what each choice reveals; ← goes back to the first question.",
    "The votes are meant for 3 to 7 right in 10. They have not been tried on people yet.",
)
_DENSE = """.item { margin-top: 0.8rem; padding-top: 0.5rem; } .item td:first-child { white-space: nowrap; }
.item td:nth-child(2) { width: 38%; } @media print { body { font-size: 8.5pt; line-height: 1.3; } }"""
_PRINT = (
    "For each learner print the first sheet and cut it along the lines, or print the second one and fold it "
    "twice, letters outside, with the letter to show in front. Shapes and patterns tell the letters apart "
    "without colours."
)


def write_votes(folder: Path) -> None:
    """Write ``index.html``, a page a lesson to project, ``cards.html`` and ``answers.html`` into a folder."""
    votes = {lesson: questions(lesson) for lesson in LESSONS}
    for lesson, asked in votes.items():
        screens = _patterns() + "\n".join(map(_screen, with_twins(asked)))
        title = f"Votes: {html.escape(lesson.title)} · tinytx"
        page = Template(_source("show.html")).substitute(title=title, body=screens)
        write_file(folder / f"{lesson.name}.html", page.encode())
    answers = "".join(_answers(one) for asked in votes.values() for one in with_twins(asked))
    write_file(folder / "answers.html", _page("Answers", answers, _DENSE).encode())
    write_file(folder / "cards.html", _page("Cards", _cards(), _source("cards.css")).encode())
    write_page(folder / "index.html", "Vote cards", _index(votes))


def _source(name: str) -> str:
    return files(__package__).joinpath("votes", name).read_text(encoding="utf-8")


def _index(votes: Mapping[Lesson, Sequence[Question]]) -> str:
    lines = []
    for lesson, asked in votes.items():
        name = link(f"{lesson.name}.html", f"{lesson.number:02d} · {lesson.title}")
        lines.append([name, *(html.escape(vote.section) for vote in asked)])
    steps = "".join(f"<li>{html.escape(step)}</li>" for step in _HOW)
    return (
        f"<h1>Vote, discuss, vote again</h1><ol>{steps}</ol><p>{link('cards.html', 'Cards to print')} · "
        f"{link('answers.html', 'All answers, for the teacher')}</p>"
        + table(["to project", "first vote, in section", "second vote, in section"], lines)
    )


def _screen(vote: Question) -> str:
    act = "vote" if vote.twin else "discuss, then vote again"
    lesson = f"{vote.lesson.number:02d} · {html.escape(vote.lesson.title)}"
    options = "".join(
        f"<li>{_sign(letter)}<div><p>{marked(option.text)}</p>"
        f'<p class="reveals{" right" * (letter == vote.answer)}">{"✓ " * (letter == vote.answer)}'
        f"{marked(option.reveals)}</p></div></li>"
        for letter, option in zip(LETTERS, vote.options, strict=True)
    )
    return (
        f'<section id="{vote.key}" tabindex="-1"><header>{lesson} · {act}</header>'
        f"<h1>{marked(vote.prompt)}</h1><ol>{options}</ol></section>"
    )


def _answers(vote: Question) -> str:
    lines = [
        [f"{letter} ✓" if letter == vote.answer else letter, option.text, option.reveals]
        for letter, option in zip(LETTERS, vote.options, strict=True)
    ]
    head = "" if vote.twin is None else f"<h2>{vote.lesson.number:02d} · {html.escape(vote.section)}</h2>"
    name = "Twin" if vote.twin is None else "Vote"
    return (
        f'{head}<section class="item"><p><strong>{name}.</strong> {marked(vote.prompt)}</p>'
        f"{plain_table(['', 'answer', 'what it reveals'], lines)}</section>"
    )


def _cards() -> str:
    sheet = "".join(f"<div>{_sign(letter)}</div>" for letter in LETTERS)
    sheets = "".join(f'<div class="letters{fold}">{sheet}</div>' for fold in ("", " fold"))
    return f"<p>{_PRINT}</p>{_patterns()}{sheets}"


def _page(title: str, body: str, style: str) -> str:
    """A page next to the index of the votes, with a style of its own."""
    return paper(f"Votes: {title}", f'<p><a href="index.html">‹ back</a></p><h1>{title}</h1>{body}', style)


def _patterns() -> str:
    """Fills for the signs of a page, each a colour with marks of its own."""
    fills = "".join(
        f'<pattern id="sign-{letter}" width="12" height="12" patternUnits="userSpaceOnUse" '
        f'patternTransform="rotate(30)"><path d="M0 0h12v12H0z" fill="{colour}"/>'
        f'<g stroke="#fff" stroke-width="3.5" stroke-linecap="round">{marks}</g></pattern>'
        for letter, (colour, _, _, marks) in _SIGNS.items()
    )
    return (
        f'<svg width="0" height="0" style="position:absolute" aria-hidden="true"><defs>{fills}</defs></svg>'
    )


def _sign(letter: str) -> str:
    """A letter in its shape, with its fill."""
    colour, shape, height, _ = _SIGNS[letter]
    return (
        f'<svg viewBox="0 0 100 100" role="img" aria-label="{letter}"><g fill="url(#sign-{letter})" '
        f'stroke="{colour}" stroke-width="3">{shape}</g><circle cx="50" cy="{height}" r="27" fill="#fff"/>'
        f'<text x="50" y="{height}" dy=".36em" text-anchor="middle" '
        f'style="font:700 46px system-ui, sans-serif;fill:#000">{letter}</text></svg>'
    )
