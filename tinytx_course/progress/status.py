"""What is done, and what to repeat: ``course.status``; start again: ``course.reset``."""

from __future__ import annotations

import html
from dataclasses import dataclass

from tinytx_course.exercises.card import Sheet
from tinytx_course.exercises.checking import EXERCISES, core_exercises
from tinytx_course.lessons import LESSONS, Lesson
from tinytx_course.museum.faults import PATIENT_NAMES
from tinytx_course.progress.answers import answer_file
from tinytx_course.progress.predictions import LEVELS
from tinytx_course.progress.record import PARTS, Entry, record
from tinytx_course.quizzes.bank import questions
from tinytx_course.results import nearest

_HEAD = ("lesson", "exercises done", "predictions right", "questions right")
#: What counts as an exercise, with its lesson: those that are checked, and the patients that are diagnosed.
_LESSON_OF = {name: one.lesson for name, one in EXERCISES.items()}
_LESSON_OF |= dict.fromkeys(PATIENT_NAMES, next(one.number for one in LESSONS if one.slug == "bug_museum"))
_FEWEST = 5  # predictions with a confidence before it is compared with how many were right


@dataclass(frozen=True, kw_only=True)
class Status:
    """A table with a row a lesson, and sentences below it; shown as HTML in a notebook, as text elsewhere."""

    rows: tuple[tuple[str, ...], ...]
    sentences: tuple[str, ...]

    def __repr__(self) -> str:
        widths = [max(map(len, column)) for column in zip(_HEAD, *self.rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in (_HEAD, *self.rows)
        ]
        return "\n".join([*lines, "", *self.sentences])

    def _repr_html_(self) -> str:
        head = "".join(f"<th scope='col' style='text-align:left'>{name}</th>" for name in _HEAD)
        cell = "<td style='text-align:left'>{}</td>".format
        body = "".join(f"<tr>{''.join(cell(html.escape(text)) for text in row)}</tr>" for row in self.rows)
        words = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in self.sentences)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{words}"


def status() -> Status:
    """Return the exercises done, the predictions and questions right, and what to repeat.

    Predictions and questions are counted once they are resolved and checked. Nothing is sent anywhere.
    """
    tried, predicted, asked = (record().part(part) for part in PARTS)
    rows, n_wrong = [], {}
    for lesson in LESSONS:
        exercises = [name for name, number in _LESSON_OF.items() if number == lesson.number]
        n_done = sum(bool(tried.get(name, {}).get("passed")) for name in exercises)
        start = f"{lesson.number:02d}."
        resolved = [
            one["right"] for key, one in predicted.items() if key.startswith(start) and "right" in one
        ]
        checked = [bool(one.get("right")) for key, one in asked.items() if key.startswith(f"{lesson.slug}/")]
        n_wrong[lesson] = resolved.count(False) + checked.count(False)
        rows.append(
            (
                f"{lesson.number:02d} {lesson.title}",
                f"{n_done} of {len(exercises)}" if exercises else "none",
                f"{sum(resolved)} of {len(resolved)}" if resolved else "none made",
                f"{sum(checked)} of {len(questions(lesson))}",
            )
        )
    sure = [one for one in predicted.values() if "right" in one and one.get("sure")]
    return Status(rows=tuple(rows), sentences=(*_calibration(sure), _advice(tried, n_wrong)))


def _calibration(predicted: list[Entry]) -> list[str]:
    """Say how often each confidence was right, and whether it was too high or too low."""
    levels = []
    for level in LEVELS:
        right = [entry["right"] for entry in predicted if entry["sure"] == level]
        levels += [f"{level} % sure: {sum(right)} of {len(right)} right"] if right else []
    sentences = ["; ".join(levels) + "."] if levels else []
    if len(predicted) < _FEWEST:
        return sentences
    sure = sum(entry["sure"] for entry in predicted) / len(predicted)
    right = 100 * sum(entry["right"] for entry in predicted) / len(predicted)
    verdict = "about as sure as you should be"
    if abs(sure - right) > 10:
        verdict = "too sure" if sure > right else "less sure than you may be"
    return [
        *sentences,
        f"You were {sure:.0f} % sure on average, and right in {right:.0f} %: {verdict}.",
    ]


def _advice(tried: dict[str, Entry], n_wrong: dict[Lesson, int]) -> str:
    """Return one line on what to repeat, or what comes next."""
    todo = [
        name
        for name in sorted(_LESSON_OF, key=_LESSON_OF.__getitem__)
        if not tried.get(name, {}).get("passed")
    ]
    for name in todo:
        if tried.get(name, {}).get("tries"):
            mistake = tried[name].get("mistake")
            words = f"; the last mistake was: {mistake}" if mistake else ""
            return f"To repeat: the exercise {name} in lesson {_LESSON_OF[name]:02d}{words}."
    worst = max(n_wrong, key=n_wrong.__getitem__)
    if n_wrong[worst]:
        return f"To repeat: lesson {worst.number:02d} (wrong answers: {n_wrong[worst]})."
    if not todo:
        return "Nothing to repeat: all exercises are done."
    following = next((name for name in todo if name in core_exercises(_LESSON_OF[name])), todo[0])
    return f"Nothing to repeat. The next exercise: {following} in lesson {_LESSON_OF[following]:02d}."


def reset(name: str) -> Sheet | None:
    """Forget what was recorded of an exercise or a prediction, so that it can be done again.

    Parameters
    ----------
    name : str
        Of an exercise, such as ``causal_mask``, or the number of a prediction, such as ``02.1``.

    Returns
    -------
    Sheet or None
        The lines that the exercise began with, as no program changes the cells of a notebook; None for a
        prediction and a patient.

    Raises
    ------
    ValueError
        If there is no such exercise or recorded prediction.
    """
    if name in EXERCISES:
        record().change("exercises", name, None)
        if (answer := answer_file(name)) is not None:
            answer.unlink(missing_ok=True)
        return Sheet("To begin again, copy these lines into the cell of the exercise:", EXERCISES[name].stub)
    for part in ("predictions", "exercises"):  # a patient is an entry of the exercises
        if name in record().part(part):
            record().change(part, name, None)
            return None
    known = [*_LESSON_OF, *record().part("predictions")]
    hint = nearest(name, known) or f"; there are {', '.join(known)}"
    raise ValueError(f"name must be that of an exercise or a recorded prediction, got {name!r}{hint}")
