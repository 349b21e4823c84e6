"""An exercise in rungs, from the easiest on: ``course.practise("attention")``."""

from __future__ import annotations

import hashlib
from typing import Any

from tinytx_course.exercises.card import Sheet
from tinytx_course.exercises.checking import find_exercise
from tinytx_course.exercises.exercise import Exercise
from tinytx_course.exercises.rungs import (
    blanks,
    labelled,
    lowest_left,
    may_watch,
    pass_rung,
    program_lines,
    rungs_of,
    title_of,
)
from tinytx_course.quizzes.card import Answer, QuestionCard
from tinytx_course.widgets.parsons import ParsonsExplorer, parsons


def practise(
    name: str, rung: str | None = None, *, anyway: bool = False
) -> Sheet | ParsonsExplorer | QuestionCard:
    """Meet an exercise on one of its rungs.

    Parameters
    ----------
    name : str
        Of the exercise, such as ``"attention"``.
    rung : {"watch", "order", "fill", "write"}, optional
        Read the right program, order its lines, fill in what is missing, or write it; by default the lowest
        of the last three that is not passed.
    anyway : bool
        To watch before the exercise is passed or tried twice.

    Returns
    -------
    Sheet, ParsonsExplorer or QuestionCard
        The last line of its cell. What is passed is recorded.

    Raises
    ------
    ValueError
        If there is no such exercise, or it has no such rung.

    Examples
    --------
    >>> practise("padding_mask", "watch", anyway=True)
    The right program of `padding_mask`, step by step:
    <BLANKLINE>
    def padding_mask(token_ids, pad_id):
        return token_ids != pad_id  # 1. returned: (B, S)
    """
    exercise = find_exercise(name)
    rung = rung or lowest_left(exercise)
    if rung not in rungs_of(exercise):
        raise ValueError(f"rung of {name} must be one of {', '.join(rungs_of(exercise))}, got {rung!r}")
    if rung == "order":
        return parsons(name)
    if rung == "fill":
        return fill(exercise)
    if rung == "write":
        lines = f'{exercise.stub}\n\n\ncourse.check("{name}", {name})'
        return Sheet(f"Write `{exercise.signature}`. It returns {exercise.rule}", lines)
    if anyway or may_watch(name):
        return Sheet(f"The right program of `{name}`, step by step:", labelled(exercise))
    words = "This opens once the exercise is passed or tried twice. To see it anyway:"
    return Sheet(words, f'course.practise("{name}", "watch", anyway=True)')


def fill(exercise: Exercise) -> QuestionCard:
    """Return a card with a question for each blank of the right program; wrong choices name the mistake."""
    lines, title = program_lines(exercise.solve), title_of(exercise)
    asked: list[dict[str, Any]] = []
    for number, blank in enumerate(blanks(exercise), 1):
        feedback = {text: f"Not quite. {mistake.words}" for text, mistake in blank.wrong.items()}
        feedback[blank.right] = f"Right. The line is `{lines[blank.number].strip()}`."
        lines[blank.number] = f"{blank.before}__{number}__{blank.after}"
        choices = [
            {"text": f"`{text}`", "right": text == blank.right, "feedback": feedback[text]}
            for text in sorted(feedback, key=lambda text: hashlib.sha256(text.encode()).digest())
        ]
        prompt = f"What belongs in `{lines[blank.number].strip()}`?"
        asked.append({"key": f"{exercise.name}/{blank.number}", "prompt": prompt, "choices": choices})
    asked[0]["program"] = "\n".join(lines)

    def hear(_: str, __: Answer) -> None:
        given = [(one["choices"], card.answers.get(one["key"], {"checked": False})) for one in asked]
        if all(answer["checked"] and choices[answer["choice"]]["right"] for choices, answer in given):
            pass_rung(exercise.name, "fill")

    card = QuestionCard(hear, title=f"Fill the blanks: {title[0].lower()}{title[1:]}", questions=asked)
    return card
