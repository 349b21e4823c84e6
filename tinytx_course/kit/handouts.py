"""Handouts to print on A4: the diagram and the predictions in front, the take-home on the back."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from tinytx_course.kit.outline import Outline, Prediction
from tinytx_course.kit.pages import link, write_page
from tinytx_course.kit.scissors import LESSON, write_scissors
from tinytx_course.plots.diagrams.diagram import DIAGRAMS, diagram
from tinytx_course.plots.style import captions
from tinytx_course.progress.predictions import LEVELS
from tinytx_course.site.cells import markdown_to_html
from tinytx_course.site.figures import drawing, style_sheet

#: The figure to remember of a lesson that has no diagram; it gives answers away, so it is on the back.
FIGURES = {8: "08_loss_and_bound", 13: "13_roofline"}
_ABOVE = re.compile(r"`(\w+)` above")
_STILL = re.compile(r'<img class="txd-still"[^>]*>')
_WIDE = 1.3  # a diagram this much wider than high takes the width of the page


def write_handouts(folder: Path, outlines: Mapping[int, Outline], root: Path) -> None:
    """Write a page a lesson, attention with paper and scissors, and the list of all."""
    doors = []
    for outline in outlines.values():
        lesson = outline.lesson
        title = f"{lesson.number:02d} · {lesson.title}"
        body = f"{_front(title, outline)}{_back(title, outline, root)}"
        path = write_page(folder / f"{lesson.name}.html", title, body, up="index.html")
        doors.append(f"<li>{link(path.name, title)}</li>")
    path = write_scissors(folder)
    doors.append(f"<li>{link(path.name, 'Attention with paper and scissors')}, for lesson {LESSON:02d}</li>")
    words = "Two pages a lesson, to print apart: fronts before, backs at the end, as they give answers away."
    body = f'<h1>Handouts</h1><p>{words}</p><ul class="doors">{"".join(doors)}</ul>'
    write_page(folder / "index.html", "Handouts", body)


def _front(title: str, outline: Outline) -> str:
    diagrams = [one for one in map(diagram, DIAGRAMS) if one.lesson == outline.lesson.number]
    shown = []
    for one in diagrams:
        wide = sum(panel.width for panel in one.panels) > _WIDE * max(panel.height for panel in one.panels)
        kind = "wide diagram" if wide else "diagram"
        shown.append(f'<div class="{kind}">{_STILL.sub("", one.to_html())}</div>')
    asked = "".join(map(_question, (one for part in outline.parts for one in part.predictions)))
    how = "Before the cell runs: choose one, and say how sure you are. After it: what was it?"
    return (
        f'<section class="sheet-of-paper"><h1>{html.escape(title)}</h1>'
        f'<p><strong>{html.escape(outline.lesson.question)}</strong></p><div class="around">{"".join(shown)}'
        f'<div><h2>Predictions</h2><p class="soft">{how}</p><div class="predictions">{asked}</div></div>'
        "</div></section>"
    )


def _question(one: Prediction) -> str:
    options = "".join(f"<li>○ {html.escape(option)}</li>" for option in one.lettered)
    sure = " ".join(f"○ {level} %" for level in LEVELS)
    return (
        f'<div class="prediction"><b>{one.number}</b> {html.escape(one.question)}<ul>{options}</ul>'
        f'<span class="soft">sure: {sure} &emsp; it was: <span class="answer"></span></span></div>'
    )


def _back(title: str, outline: Outline, root: Path) -> str:
    figure = ""
    if name := FIGURES.get(outline.lesson.number):
        words, svg = captions()[name], (root / "figures" / f"{name}.svg").read_text(encoding="utf-8")
        figure = (
            f'<style>{style_sheet()}</style><figure class="figure">{drawing(svg, words["alt"], name)}'
            f"<figcaption>{html.escape(words['caption'])}</figcaption></figure>"
        )
    head = f"<h1>Take-home: {html.escape(title)}</h1>"
    return f'<section class="sheet-of-paper">{head}{figure}{"".join(_take_home(outline))}</section>'


def _take_home(outline: Outline) -> Iterator[str]:
    """The cells of the section, up to a puzzle or a program shown whole, and the classes it speaks of."""
    cells = list(outline.find("Take-home").cells)
    puzzle = next((i for i, cell in enumerate(cells) if "course.parsons(" in cell.source), None)
    for cell in cells if puzzle is None else cells[: puzzle - (puzzle > 1)]:
        if cell.cell_type == "markdown":
            yield markdown_to_html(_ABOVE.sub(r"`\1` below", re.sub(r"^## .+\n", "", cell.source)))
            yield from (_code(_class(outline, name)) for name in _ABOVE.findall(cell.source))
            continue
        shown = [one.get("data", {}) for one in cell.outputs]
        if programs := [data["text/markdown"] for data in shown if "text/markdown" in data]:
            yield f'<div class="program">{"".join(map(markdown_to_html, programs))}</div>'
            return
        pages = "".join(data["text/html"] for data in shown if "text/html" in data)
        yield f'<div class="program">{pages}</div>' if pages else _code(cell.source)


def _class(outline: Outline, name: str) -> str:
    codes = (cell.source for part in outline.parts for cell in part.cells if cell.cell_type == "code")
    return next(code for code in codes if f"class {name}(" in code)


def _code(source: str) -> str:
    return f'<pre tabindex="0">{html.escape(source)}</pre>'
