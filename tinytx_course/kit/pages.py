"""The shell of the pages of the kit, and its front page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from string import Template

from tinytx_course.inventory.forms import paper
from tinytx_course.results import text_of
from tinytx_course.site.cells import markdown_to_html
from tinytx_course.site.templates import macro
from tinytx_run.files import write_file

COURSE = "course.zip"  # the learner's edition, to install
#: Doors of the front page: first page, name, what is behind it. One whose page was not written is left out.
DOORS = (
    ("schedules/index.html", "Schedules", "An afternoon, two days, six weeks or a semester, by the minute."),
    ("notes/index.html", "Teacher's notes", "What to draw, say and ask in each section, what to leave out."),
    ("slides/index.html", "Slides", "To project, a deck a lesson, with votes and speaker notes."),
    ("votes/index.html", "Vote cards", "Two questions a lesson to vote on, discuss, and vote on again."),
    ("handouts/index.html", "Handouts", "A page a lesson, to print."),
    ("inventory/index.html", "Concept inventory", "Questions before and after the course, on paper."),
    ("self-study.html", "Syllabus for self-study", "What to do in which week, and when to go on."),
    ("site/index.html", "The lessons", "All notebooks as pages with their results, explorers alive."),
)


def write_page(path: Path, title: str, body: str, *, up: str = "../index.html") -> Path:
    """Write one page of the kit, which loads nothing; `up` is the page one level above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    back = f'<nav><a href="{up}">‹ back</a></nav>' if up else ""
    write_file(path, paper(title, back + body, text_of("kit/kit.css")).encode())
    return path


def write_front(folder: Path) -> Path:
    """Write the first page, with a door to every part of the kit that `folder` holds."""
    there = [door for door in DOORS if (folder / door[0]).is_file()]
    where = "is **not in this folder**: ask for it where you got this folder."
    if (folder / COURSE).is_file():
        where = f"lies in this folder: unpack [{COURSE}]({COURSE}), for example next to it."
    write_page(folder / "install.html", "Install", _text("install", where=where), up="index.html")
    body = f"<h1>Teach transformers</h1>{doors(there)}{_text('front')}"
    return write_page(folder / "index.html", "Classroom kit", body, up="")


def _text(name: str, **values: str) -> str:
    return markdown_to_html(Template(text_of(f"kit/{name}.md")).substitute(values))


def doors(rows: Sequence[tuple[str, str, str]]) -> str:
    """A list of links: page, words in plain text, and HTML about it."""
    return macro("kit/parts.html", "doors", rows)
