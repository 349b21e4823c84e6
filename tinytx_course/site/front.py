"""The first page: a model that learns, one that has learned, the lessons as a map, doors."""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from tinytx_course.building.notebooks import Run
from tinytx_course.exercises.checking import EXERCISES
from tinytx_course.lessons import Lesson, by_course, format_duration, stored_times
from tinytx_course.machine import this_machine
from tinytx_course.plots.diagrams.diagram import DIAGRAMS, diagram
from tinytx_course.quizzes.bank import questions
from tinytx_course.site.bare import EXPLORER
from tinytx_course.site.figures import drawing

#: The figure on the card of a lesson; of the others the widest panel of their diagram.
CARD_FIGURES = {
    0: "attention_on_four_words",
    2: "wrong_masks",
    3: "train_short_test_long",
    5: "depth",
    7: "learning",
    8: "loss_and_bound",
    9: "label_efficiency",
    13: "profile",
    14: "swaps",
    15: "dose",
    16: "three_ways",
    17: "patched_heads",
    18: "nine_programs",
}
_EXERCISE = re.compile(r'<h3 id="Exercise:')


def _thumbnail(lesson: int, drawings: Path | None) -> str:
    """Return a figure of the lesson or the widest panel of its diagram, whole, or nothing."""
    chosen = drawings / f"{lesson:02d}_{CARD_FIGURES.get(lesson)}.svg" if drawings else Path()
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
) -> list[tuple[str, str, list[dict[str, Any]]]]:
    """Return the three short courses, name, what you have at the end, lessons; those shown are linked.

    The marks of a lesson say how long it takes, and what there is to try and to do.
    """

    def card(lesson: Lesson) -> dict[str, Any]:
        return {
            "lesson": lesson,
            "shown": lesson in shown,
            "failed": lesson in failed,
            "thumbnail": _thumbnail(lesson.number, drawings),
            "marks": _marks(folder / f"{lesson.name}.html"),
            "n_questions": len(questions(lesson)),
        }

    return [
        (name, f"At its end you have {has}.", [*map(card, lessons)]) for name, has, lessons in by_course()
    ]


def _marks(file: Path) -> list[str]:
    """Return the minutes of a lesson as stored, and what there is to try and to do, from its page."""
    page = file.read_text(encoding="utf-8") if file.is_file() else ""
    times = stored_times().get(file.stem)
    found = [f"{times.core} min, {times.everything} with everything"] if times else []
    for sign, name, pattern in (("◆", "explorer", EXPLORER), ("✎", "exercise", _EXERCISE)):
        if n := len(pattern.findall(page)):
            found.append(f"{sign} {n} {name}{'s' * (n > 1)}")
    return found


def doors(shown: Sequence[Lesson]) -> dict[str, Any]:
    """Return where the first page leads learners, teachers and engineers, and the models that greet them."""
    from tinytx_course.widgets.live_model import live_model
    from tinytx_course.widgets.playground import playground

    first = f"{shown[0].name}.html" if shown else "glossary.html"
    by_slug = {lesson.slug: f"{lesson.name}.html" for lesson in shown}
    attend, build = (by_slug.get(slug, first) for slug in ("attention_and_masks", "your_own_gpt"))
    models = {"learns": playground(brief=True).to_html(), "learned": live_model("Ce roman est").to_html()}
    return {**models, "first": first, "attend": attend, "build": build, "n_checkers": len(EXERCISES)}


def facts(runs: Sequence[Run]) -> list[str]:
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
    return [*found, "Code: Apache-2.0", "Text and figures: CC BY 4.0", "These pages ask no host for anything"]
