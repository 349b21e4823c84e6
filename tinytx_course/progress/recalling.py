"""Two questions of earlier lessons at the beginning of a lesson: ``course.recall``."""

from __future__ import annotations

import hashlib

from tinytx_course.lessons import LESSONS
from tinytx_course.progress.record import record
from tinytx_course.quizzes.bank import Question, questions
from tinytx_course.quizzes.card import QuestionCard
from tinytx_course.quizzes.quiz import name_of, question_card


def recall(lesson: str | int) -> QuestionCard:
    """Ask two questions of earlier lessons: those answered wrong last, then those missed most, then others.

    Where none was missed they are of different lessons, and the core of these answers them.

    Parameters
    ----------
    lesson : str or int
        The number of the lesson that begins, such as ``"05"``.

    Returns
    -------
    QuestionCard
        The last line of its cell. Without a record, as in a page, the choice follows from the lesson alone.

    Raises
    ------
    ValueError
        If there is no such lesson, or no earlier one.
    """
    number = int(lesson) if str(lesson).isdecimal() else -1
    if not 0 < number < len(LESSONS):
        raise ValueError(f"recall needs a lesson from 01 to {LESSONS[-1].number:02d}, got {lesson!r}")
    record_of = record().part("questions")

    def worth(question: Question) -> tuple[bool, int, bool, str]:
        name = name_of(question)
        entry = record_of.get(name, {})
        spread = hashlib.sha256(f"{LESSONS[number].slug} {name}".encode()).hexdigest()
        return entry.get("right", True), -entry.get("missed", 0), question.is_further, spread

    first, *rest = sorted((one for earlier in LESSONS[:number] for one in questions(earlier)), key=worth)
    missed = [one for one in rest if worth(one)[:2] < (True, 0)]
    others = [one for one in rest if one.lesson != first.lesson]
    return question_card(
        "Two questions from earlier lessons", [first, *missed, *others, *rest][:2], remembered=False
    )
