"""The course as one PDF to print: all lessons without scripts, then hints, solutions, answers, glossary."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tinytx_course.building.notebooks import Run
from tinytx_course.lessons import Lesson
from tinytx_course.machine import CHROMIUM, find_chromium
from tinytx_course.site import bare
from tinytx_course.site.cells import notebook_to_html
from tinytx_course.site.pages import fill_page, without_answers, write_shared
from tinytx_course.terms import terms_table

_SECONDS = 900  # for printing
_ALIVE = re.compile(r" data-tx-(?:kind=\"\w+\"|explorer='[^']*')")
_ANCHOR = re.compile(r'(<(?:h[1-6]|figure|details)\b[^>]*? id=")')
_LESSON_LINK = re.compile(r'href="(\d\d)_\w+\.(?:html|ipynb)(?:#([^"]+))?"')
_ELSEWHERE = re.compile(r'<a [^>]*?href="(?!https?:|#)[^"]*"[^>]*>(.*?)</a>', re.S)


def _within(body: str, number: int, lessons: Sequence[Lesson]) -> str:
    """Return a lesson whose anchors have its number, and whose links lead to places in the booklet."""
    there = {f"{lesson.number:02d}" for lesson in lessons}

    def lesson_link(link: re.Match[str]) -> str:
        return f'href="#{link[1]}{"-" + link[2] if link[2] else ""}"' if link[1] in there else link[0]

    body = _ALIVE.sub("", body)
    body = _ANCHOR.sub(rf"\g<1>{number:02d}-", body)
    body = re.sub(r'(?<= )href="#(?!answer-)', f'href="#{number:02d}-', body)
    body = _LESSON_LINK.sub(lesson_link, body)
    return _ELSEWHERE.sub(r"\1", body.replace('href="glossary.html#', 'href="#'))


def booklet_page(runs: Sequence[Run], drawings: Path | None = None) -> str:
    """Return all lessons as one page.

    Parameters
    ----------
    runs : sequence of Run
    drawings : Path, optional
        The folder of the figures as SVG.
    """
    chapters = []
    shown = [run.lesson for run in runs]
    for run in runs:
        number = run.lesson.number
        body = bare.printed(notebook_to_html(run.notebook, run.lesson, shown, drawings), run.lesson.name)
        text, folded = without_answers(body, number)
        chapters.append((run.lesson, *(_within(part, number, shown) for part in (text, folded))))
    return fill_page(
        "booklet.html",
        title="tinytx · a course on transformers",
        sheets=["booklet"],
        scripted=False,
        chapters=chapters,
        terms=terms_table({}),
    )


def write_booklet(runs: Sequence[Run], path: Path, drawings: Path | None = None) -> Path:
    """Print the lessons as one PDF.

    Raises
    ------
    OSError
        If there is no Chromium, or it did not print.
    """
    program = find_chromium()
    if program is None:
        raise OSError(
            f"a PDF is printed by Chromium, got none of {', '.join(CHROMIUM)}: install one, "
            "name yours in TINYTX_CHROMIUM, or print pages of the site from your browser"
        )
    with tempfile.TemporaryDirectory(dir=path.parent) as aside:
        page, printed = Path(aside) / "booklet.html", Path(aside) / "booklet.pdf"
        text = booklet_page(runs, drawings)
        page.write_text(text, encoding="utf-8")
        write_shared(page.parent, text)
        bare.write_stills(page.parent, text)
        command = [
            *(program, "--headless=new", "--disable-gpu", "--disable-dev-shm-usage"),
            *(f"--user-data-dir={aside}/profile", "--no-pdf-header-footer"),
            *("--generate-pdf-document-outline", f"--print-to-pdf={printed}"),
        ]
        if getattr(os, "geteuid", lambda: 1)() == 0:
            command.append("--no-sandbox")  # Chromium refuses to start for root otherwise, as in containers
        command.append(page.as_uri())
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            words = f"{program} must print the booklet within {_SECONDS} seconds, got no end"
            raise OSError(words) from None
        if not printed.is_file():
            raise OSError(
                f"{program} must print the booklet, got status {done.returncode}: {done.stderr[-300:]}"
            )
        return printed.replace(path)
