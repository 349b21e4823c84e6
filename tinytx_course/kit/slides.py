"""Slides of the lessons: one self-contained HTML file a lesson on reveal.js, which loads nothing.

``?print-pdf`` lays all slides out on pages to print. The keys: ``S`` the speaker notes, ``D`` light or dark,
``Esc`` an overview, ``?`` all others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from tinytx_course.kit.deck import Stack, make_deck
from tinytx_course.kit.pages import doors, write_page
from tinytx_course.lessons import Lesson, project_root, written_lessons
from tinytx_course.plots.diagrams.svg import style_sheet as diagram_style
from tinytx_course.results import text_of
from tinytx_course.site import figures, pages
from tinytx_course.site.cells import code_style, markdown_to_html
from tinytx_course.site.templates import macro, render, titled
from tinytx_course.widgets import assets
from tinytx_run.files import write_file


def write_slides(folder: Path, lessons: Iterable[Lesson] | None = None) -> list[Path]:
    """Write ``slides/NN_slug.html`` of each lesson, or of some, and a page that links them into the kit."""
    root = project_root()
    chosen = written_lessons(root) if lessons is None else list(lessons)
    paths = [folder / "slides" / f"{lesson.name}.html" for lesson in chosen]
    rows = []
    for lesson, path in zip(chosen, paths, strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        stacks = make_deck(lesson, root)
        write_file(path, _page(lesson, stacks).encode())
        n_slides = sum(len(stack.slides) for stack in stacks)
        rows.append((path.name, f"{lesson.number:02d} {lesson.title}", f"{n_slides} slides"))
    body = f"<h1>Slides</h1>{markdown_to_html(text_of('kit/slides.md'))}{doors(rows)}"
    return [write_page(folder / "slides" / "index.html", "Slides", body), *paths]


def _page(lesson: Lesson, stacks: Iterable[Stack]) -> str:
    slides = macro("kit/deck.html", "stacked", stacks)
    slides = re.sub(r'href="(?=\d\d_)([\w-]+)\.ipynb(#[^"]*)?"', r'href="../site/\1.html\2"', slides)
    kinds = assets.explorers_in(slides)
    style = [
        pages.math_style(),
        text_of("site/css/page.css"),
        text_of("kit/reveal/reveal.css"),
        code_style(),
        diagram_style(),
        figures.style_sheet(),
        assets.style_sheet(kinds),
        text_of("kit/slides.css"),
    ]
    return render(
        "kit/slides.html",
        title=f"{titled(lesson)} · slides",
        style="\n".join(style),
        first=pages.first_script(),
        slides=slides,
        reveal=text_of("kit/reveal/reveal.js"),
        script=text_of("kit/slides.js"),
        explorers=assets.page_script(kinds) if kinds else "",
    )
