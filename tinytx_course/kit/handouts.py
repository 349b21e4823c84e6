"""To print on A4: handouts, diagram and predictions in front, take-home on the back; and the vote cards."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tinytx_course.inventory.forms import paper
from tinytx_course.kit.outline import Outline
from tinytx_course.kit.pages import doors, write_page
from tinytx_course.kit.scissors import LESSON, write_scissors
from tinytx_course.lessons import LESSONS
from tinytx_course.plots.diagrams.diagram import DIAGRAMS, Diagram, diagram
from tinytx_course.plots.style import captions
from tinytx_course.progress.predictions import LEVELS
from tinytx_course.quizzes.bank import LETTERS, votes, with_twins
from tinytx_course.quizzes.card import plain
from tinytx_course.results import text_of
from tinytx_course.site.cells import markdown_to_html
from tinytx_course.site.figures import drawing, style_sheet
from tinytx_course.site.templates import render
from tinytx_run.files import write_file

#: The figure to remember of a lesson that has no diagram; it gives answers away, so it is on the back.
FIGURES = {8: "08_loss_and_bound", 13: "13_profile"}
_ABOVE = re.compile(r"`(\w+)` above")
_STILL = re.compile(r'<img class="txd-still"[^>]*>')
_WIDE = 1.3  # a diagram this much wider than high takes the width of the page
#: For each letter: colour, shape, height of the letter in it, and marks that repeat every 12 units.
_SIGNS = {
    "A": ("#0072B2", '<circle cx="50" cy="50" r="47"/>', 50, ""),
    "B": ("#D55E00", '<rect x="6" y="6" width="88" height="88"/>', 50, '<path d="M0 0v12"/>'),
    "C": ("#009E73", '<path d="M50 3 99 95H1z"/>', 64, '<path d="M6 5v2"/>'),
    "D": ("#AA4499", '<path d="M50 1 99 50 50 99 1 50z"/>', 50, '<path d="M0 6h12M6 0v12"/>'),
}
_DENSE = """.item { margin-top: 0.8rem; padding-top: 0.5rem; } .item td:first-child { white-space: nowrap; }
.item td:nth-child(2) { width: 38%; } @media print { body { font-size: 8.5pt; line-height: 1.3; } }"""


def write_handouts(folder: Path, outlines: Mapping[int, Outline], root: Path) -> None:
    """Write a page a lesson, attention with paper and scissors, and the list of all."""
    rows = []
    for outline in outlines.values():
        lesson = outline.lesson
        title, page = f"{lesson.number:02d} · {lesson.title}", f"{lesson.name}.html"
        diagrams = [
            ("wide diagram" if _is_wide(one) else "diagram", _STILL.sub("", one.to_html()))
            for one in map(diagram, DIAGRAMS)
            if one.lesson == lesson.number
        ]
        values: dict[str, Any] = {"figure": "", "take_home": _take_home(outline)}
        if name := FIGURES.get(lesson.number):
            words, svg = captions()[name], (root / "figures" / f"{name}.svg").read_text(encoding="utf-8")
            values |= {"figure": drawing(svg, words["alt"], name), "caption": words["caption"]}
            values["style"] = style_sheet()
        values |= {"outline": outline, "diagrams": diagrams, "levels": LEVELS, "plain": plain}
        body = render("kit/handout.html", **values)
        write_page(folder / page, title, body, up="index.html")
        rows.append((page, title, ""))
    page = write_scissors(folder).name
    rows.append((page, "Attention with paper and scissors", f"for lesson {LESSON:02d}"))
    how = "Two pages a lesson, to print apart: fronts before, backs at the end, as they give answers away."
    write_page(folder / "index.html", "Handouts", f"<h1>Handouts</h1><p>{how}</p>{doors(rows)}")


def _is_wide(one: Diagram) -> bool:
    return sum(panel.width for panel in one.panels) > _WIDE * max(panel.height for panel in one.panels)


def _take_home(outline: Outline) -> Iterator[str]:
    """The cells of the section, up to a puzzle or a program shown whole, and the classes it speaks of."""
    cells = list(outline.find("Take-home").cells)
    codes = [cell.source for part in outline.parts for cell in part.cells if cell.cell_type == "code"]
    puzzle = next((i for i, cell in enumerate(cells) if "course.parsons(" in cell.source), None)
    for cell in cells if puzzle is None else cells[: puzzle - (puzzle > 1)]:
        if cell.cell_type == "markdown":
            yield markdown_to_html(_ABOVE.sub(r"`\1` below", re.sub(r"^## .+\n", "", cell.source)))
            for name in _ABOVE.findall(cell.source):
                yield _code(next(code for code in codes if f"class {name}(" in code))
            continue
        shown = [one.get("data", {}) for one in cell.outputs]
        if programs := [data["text/markdown"] for data in shown if "text/markdown" in data]:
            yield f'<div class="program">{"".join(map(markdown_to_html, programs))}</div>'
            return
        pages = "".join(map(_output, shown))
        yield f'<div class="program">{pages}</div>' if pages else _code(cell.source)


def _output(data: dict[str, str]) -> str:
    """A picture, or a page such as a table or the caption of a picture."""
    if picture := data.get("image/png"):
        said = html.escape(data["text/plain"])
        return f'<img src="data:image/png;base64,{picture.strip()}" alt="{said}">'
    return data.get("text/html", "")


def _code(source: str) -> str:
    return f'<pre tabindex="0">{html.escape(source)}</pre>'


def write_votes(folder: Path) -> None:
    """Write ``index.html``, a page a lesson to project, ``cards.html`` and ``answers.html`` into a folder."""
    page = partial(render, "kit/votes.html", signs=_SIGNS, letters=LETTERS)
    asked_in = {lesson: votes(lesson) for lesson in LESSONS}
    for lesson, asked in asked_in.items():
        title = f"Votes: {html.escape(lesson.title)} · tinytx"
        screens = render(
            "kit/votes/show.html", title=title, body=page(page="screens", asked=with_twins(asked))
        )
        write_file(folder / f"{lesson.name}.html", screens.encode())
    answers = page(page="answers", asked=[one for asked in asked_in.values() for one in with_twins(asked)])
    write_file(folder / "answers.html", paper("Votes: Answers", answers, _DENSE).encode())
    cards = paper("Votes: Cards", page(page="cards"), text_of("kit/votes/cards.css"))
    write_file(folder / "cards.html", cards.encode())
    write_page(folder / "index.html", "Vote cards", page(page="index", votes=asked_in))
