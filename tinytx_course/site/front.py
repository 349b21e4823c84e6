"""The first page: the live model, the lessons as a map, doors for those who come."""

from __future__ import annotations

import datetime
import html
import re
from collections.abc import Collection, Sequence
from pathlib import Path

from tinytx_course.building.notebooks import Run
from tinytx_course.exercises.checking import EXERCISES
from tinytx_course.lessons import LESSONS, Lesson, format_duration
from tinytx_course.machine import this_machine
from tinytx_course.plots.diagrams.diagram import DIAGRAMS, diagram
from tinytx_course.quizzes.quiz import QUIZZES, quiz
from tinytx_course.site.figures import drawing

#: The parts of the course: name, what it is about, the numbers of the first and the last lesson.
PARTS = (
    ("Read", "How text becomes numbers.", 0, 1),
    ("Attend", "Which token may attend to which, in what order, and with how many heads.", 2, 4),
    ("Build", "From one block to a GPT of your own.", 5, 7),
    ("Learn", "What training on text teaches, and what it is good for.", 8, 11),
    ("Look further", "Speed, real models, what they hold inside, and what goes wrong.", 12, 18),
)

#: The figure on the card of a lesson; of the others the widest panel of their diagram.
_FIGURES = {
    0: "attention_on_four_words",
    1: "other_text",
    2: "causal_mask",
    5: "deeper_is_worse",
    6: "embedding_share",
    7: "learning",
    8: "sweep",
    9: "label_efficiency",
    11: "diverging",
    13: "cache",
    14: "swaps",
    15: "dose",
    16: "three_ways",
    17: "patched_heads",
    18: "nine_programs",
}
_MINUTES = re.compile(r"<em>It takes:</em> (\d+) minutes")
_EXPLORER = re.compile(r'data-tx-kind="(?!questions|outcome|parsons)([a-z_]+)"')
_EXERCISE = re.compile(r'<h3 id="Exercise:')
_PLAYGROUND = "playground.html"


def doors() -> str:
    """Return the links to the pages that are no lesson as list items."""
    pages = {"Playground": _PLAYGROUND, "Exercises": "exercises.html",
             "Glossary": "glossary.html", "Reference": "reference.html"}  # fmt: skip
    return "".join(f'<li><a href="{address}">{name}</a></li>' for name, address in pages.items())


def hero() -> str:
    """Return the explorer of the model that ships, which writes in the page."""
    from tinytx_course.widgets.live_model import live_model

    return live_model("Ce roman est").to_html()


def _thumbnail(lesson: int, drawings: Path | None) -> str:
    """Return a figure of the lesson or the widest panel of its diagram, whole, or nothing."""
    chosen = drawings / f"{lesson:02d}_{_FIGURES.get(lesson)}.svg" if drawings else Path()
    if chosen.is_file():
        svg = drawing(chosen.read_text(encoding="utf-8"), "", f"card{lesson}")
        return f'<span class="figure thumbnail" aria-hidden="true">{svg}</span>'
    for name in DIAGRAMS:
        drawn = diagram(name)
        if drawn.lesson == lesson:
            panel = max(drawn.panels, key=lambda panel: panel.width / panel.height)
            svg = panel.svg('preserveAspectRatio="xMidYMid meet"')
            return f'<span class="txd thumbnail" aria-hidden="true">{svg}</span>'
    return '<span class="thumbnail"></span>'


def course_map(
    shown: Sequence[Lesson], failed: Collection[Lesson], folder: Path, drawings: Path | None = None
) -> str:
    """Return the lessons in the parts of the course; linked are those that are shown."""
    sections = []
    for name, words, first, last in PARTS:
        cards = "".join(
            _card(lesson, lesson in shown, lesson in failed, folder, drawings)
            for lesson in LESSONS[first : last + 1]
        )
        sections.append(
            f'<section class="part"><h2>{html.escape(name)}</h2><p>{html.escape(words)}</p>'
            f'<ol class="cards">{cards}</ol></section>'
        )
    return "\n".join(sections)


def _card(lesson: Lesson, shown: bool, failed: bool, folder: Path, drawings: Path | None) -> str:
    title, question = html.escape(lesson.title), html.escape(lesson.question)
    inside = (
        f'{_thumbnail(lesson.number, drawings)}<span class="number">{lesson.number:02d}</span>'
        f"<h3>{title}</h3><p>{question}</p>"
    )
    if not shown:
        return f'<li><div class="card waiting">{inside}<small>in preparation</small></div></li>'
    marks = "a cell failed" if failed else " ".join(_marks(lesson, folder / f"{lesson.name}.html"))
    asked = len(quiz(lesson.slug).questions) if lesson.slug in QUIZZES else 0
    return (
        f'<li><a class="card{" failed" if failed else ""}" href="{lesson.name}.html" '
        f'data-lesson="{lesson.name}" data-quiz="{lesson.slug}" data-questions="{asked}">{inside}'
        f'<small>{marks}</small><span class="progress" hidden></span></a></li>'
    )


def _marks(lesson: Lesson, file: Path) -> list[str]:
    """Return the minutes of a lesson, and what there is to try and to do."""
    page = file.read_text(encoding="utf-8") if file.is_file() else ""
    minutes = _MINUTES.search(page)
    n_explorers = len(_EXPLORER.findall(page))
    n_exercises = len(_EXERCISE.findall(page))
    several = {True: "s", False: ""}
    found = [
        *([f"{minutes[1]} min"] if minutes else []),
        *([f"◆ {n_explorers} explorer{several[n_explorers > 1]}"] if n_explorers else []),
        *([f"✎ {n_exercises} exercise{several[n_exercises > 1]}"] if n_exercises else []),
    ]
    return [f"<span>{mark}</span>" for mark in found]


def first_lesson(shown: Sequence[Lesson]) -> str:
    """Return the link to the first lesson that has a page."""
    if not shown:
        return ""
    return f'<a class="begin" href="{shown[0].name}.html">Begin with lesson {shown[0].number:02d}</a>'


def readers(shown: Sequence[Lesson]) -> str:
    """Return the doors of the first page: for learners, teachers and engineers, and the playground."""
    first = f"{shown[0].name}.html" if shown else "glossary.html"
    by_slug = {lesson.slug: f"{lesson.name}.html" for lesson in shown}
    build = by_slug.get("your_own_gpt", first)
    found = [
        ("I want to learn", f"Begin with lesson 00. You need Python, and how two matrices are multiplied. "
         f"{len(EXERCISES)} checkers name your mistake.", first, "Start here"),
        ("I teach", "Each lesson fills a projector screen by screen, with the key P. The command "
         "<code>tinytx-course kit DIR --start 09:15</code> writes a folder for class: schedules, notes, "
         "slides, handouts and votes.",
         by_slug.get("attention_and_masks", first) + "?present",
         "See a lesson in front of a class"),
        ("I build", "Lesson 07 writes a GPT line by line; the reference lists the package, which imports "
         "nothing but torch, numpy and a few small libraries.", build, "Build it"),
        ("I want to play", "Train a transformer in this browser, and break it.", _PLAYGROUND, "Open it"),
        ("I have no Python here", "Fill masks, order lines, predict numbers: checked in the page.",
         "exercises.html", "Try one"),
    ]  # fmt: skip
    return "".join(
        f'<li><h3>{title}</h3><a href="{address}">{link}</a>'
        f"{_in_front(shown) if title == 'I teach' else ''}<p>{words}</p></li>"
        for title, words, address, link in found
    )


def _in_front(shown: Sequence[Lesson]) -> str:
    """Return the lessons, folded, as they are shown in front of a class."""
    links = "".join(
        f'<li><a href="{lesson.name}.html?present">{_titled(lesson)}</a></li>' for lesson in shown
    )
    return f"<details><summary>Choose a lesson to show</summary><ul>{links}</ul></details>"


def _titled(lesson: Lesson) -> str:
    return f"{lesson.number:02d} {html.escape(lesson.title)}"


def facts(runs: Sequence[Run]) -> str:
    """Return when the pages were made and, if the lessons were run just now, on what machine."""
    found = [datetime.date.today().strftime("%d %B %Y")]
    seconds = [run.seconds for run in runs if run.seconds is not None]
    if seconds:
        machine = this_machine()
        memory = max(run.peak_bytes for run in runs) / 2**30
        found[:0] = [
            f"{len(runs)} notebooks, together {format_duration(sum(seconds))}",
            f"at most {memory:.1f} GiB of memory each",
            f"{machine.gpu or machine.cpu}, {machine.cores} cores",
            f"Python {machine.python}, PyTorch {machine.torch}",
        ]
    found += ["Code: Apache-2.0", "Text and figures: CC BY 4.0", "These pages ask no host for anything"]
    return "".join(f"<li>{html.escape(fact)}</li>" for fact in found)
