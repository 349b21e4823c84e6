"""The teacher's notes as pages: each section with its minutes, and a link to it on the page of the lesson."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path

from tinytx_course.kit.outline import Outline, Part
from tinytx_course.kit.pages import line_to_html, link, linked, write_page
from tinytx_course.kit.scissors import LESSON, PAGE
from tinytx_course.kit.teaching import Section, Teaching, exercise_steps, read_teaching
from tinytx_course.kit.votes import Question, questions
from tinytx_course.quizzes.card import marked
from tinytx_course.site.cells import markdown_to_html
from tinytx_course.site.pages import table

_SITE = "../site/"
#: What the folder holds for one lesson: page of the kit, and how it is called.
_MATERIAL = (
    ("slides/{}.html", "slides"),
    ("handouts/{}.html", "handout"),
    ("votes/{}.html", "vote cards"),
    ("site/{}.html", "the lesson with its results and folded solutions"),
    ("site/notebooks/{}.ipynb", "the notebook"),
)
_FIRST, *_REST = "The question that wakes the room", "Wrong ideas", "Where people get stuck", "When late"


def write_notes(folder: Path, outlines: Mapping[int, Outline], root: Path) -> None:
    """Write a page a lesson and their list into ``notes`` of the kit; what else is in the kit is linked."""
    lines = []
    for outline in outlines.values():
        lesson = outline.lesson
        teaching = read_teaching(lesson, root)
        title = f"{lesson.number:02d} · {lesson.title}"
        path = folder / "notes" / f"{lesson.name}.html"
        write_page(path, f"Notes: {title}", _body(title, outline, teaching, folder), up="index.html")
        name = link(path.name, title)
        lines.append(
            [name, html.escape(lesson.question), str(outline.times.reading), str(outline.times.exercises)]
        )
    head = ["lesson", "the question", "minutes to read", "of exercises"]
    write_page(
        folder / "notes" / "index.html", "Teacher's notes", f"<h1>Teacher's notes</h1>{table(head, lines)}"
    )


def _body(title: str, outline: Outline, teaching: Teaching, kit: Path) -> str:
    name = outline.lesson.name
    votes = questions(outline.lesson)
    material = [
        link(f"../{page.format(name)}", words)
        for page, words in _MATERIAL
        if (kit / page.format(name)).is_file()
    ]
    if outline.lesson.number == LESSON:
        material.append(link(f"../handouts/{PAGE}", "attention with paper and scissors"))
    parts = [
        f"<h1>{html.escape(title)}</h1><p><strong>{html.escape(outline.lesson.question)}</strong></p>",
        f"<p><strong>Aim:</strong> {line_to_html(teaching.aim)}</p>",
        f"<p><strong>Run before:</strong> {line_to_html(teaching.run_before)}</p>",
        f"<p><strong>It takes:</strong> {outline.times} on two cores.</p>",
        f"<p>Here for this lesson: {' · '.join(material)}</p>" if material else "",
        f"<h2>{_FIRST}</h2>{markdown_to_html(teaching.about_all[_FIRST])}",
        "<h2>Section by section</h2>",
        *(
            _part(
                part,
                teaching.sections.get(part.title),
                [vote for vote in votes if vote.section == part.title],
            )
            for part in outline.parts
        ),
        *(f"<h2>{name}</h2>{markdown_to_html(teaching.about_all[name])}" for name in _REST),
    ]
    return "".join(parts)


def _part(part: Part, notes: Section | None, votes: Sequence[Question]) -> str:
    own = " (measured)" if part.measured else ""
    head = f'<h3>{linked(part, _SITE)} <span class="soft">{part.minutes} min{own}</span></h3>'
    if notes is None:
        return head
    said = f"<p><strong>Board:</strong> {line_to_html(notes.board)}</p>"
    for one in part.predictions:
        said += (
            f"<p><strong>Prediction {one.number} (handout), vote before the cell:</strong> "
            f"{html.escape(one.question)} {html.escape(' / '.join(one.lettered))}</p>"
        )
    for vote in votes:
        page = link(f"../votes/{part.lesson.name}.html#{vote.key}", "Vote cards")
        answers = link("../votes/answers.html", "answers")
        said += (
            f"<p><strong>{page}, before you say what follows</strong> ({answers}): {marked(vote.prompt)}</p>"
        )
    if notes.groups:
        said += f"<p><strong>Groups:</strong> {line_to_html(notes.groups)}</p>"
    said += f"<ul>{''.join(f'<li>{line_to_html(point)}</li>' for point in notes.points)}</ul>"
    if notes.exercise:
        way = markdown_to_html(exercise_steps(part.lesson, notes.exercise))
        said += f"<p><strong>Now the exercise</strong> <em>{html.escape(notes.exercise)}</em>:</p>{way}"
    if notes.then:
        said += f"<p><strong>Then:</strong> {line_to_html(notes.then)}</p>"
    return head + said
