"""Two questions of earlier lessons at the beginning of a lesson: ``course.recall``."""

from __future__ import annotations

import hashlib

from tinytx_course.lessons import LESSONS, Lesson
from tinytx_course.progress.record import record
from tinytx_course.quizzes.card import QuestionCard
from tinytx_course.quizzes.quiz import QUIZZES, Question, question_card, quiz

_N_ASKED = 2


def recall(lesson: str | int) -> QuestionCard:
    """Ask two questions of earlier lessons: those answered wrong last, then those missed most, then others.

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
        If there is no such lesson, or no earlier one has questions.
    """
    known = [one for one in LESSONS if str(lesson).isdecimal() and one.number == int(lesson)]
    if not known:
        raise ValueError(f"a lesson is named by its number, 00 to {LESSONS[-1].number:02d}, got {lesson!r}")
    earlier = [one for one in LESSONS[: known[0].number] if one.slug in QUIZZES]
    if not earlier:
        raise ValueError(f"recall needs an earlier lesson with questions, got {lesson!r}")
    asked = _chosen(known[0], [(one, question) for one in earlier for question in quiz(one.slug).questions])
    return question_card("Two questions from earlier lessons", asked, remembered=False)


def _chosen(lesson: Lesson, questions: list[tuple[Lesson, Question]]) -> list[tuple[Lesson, Question]]:
    """Return the questions most worth asking, of different lessons where none was missed."""
    record_of = record().part("questions")

    def worth(pair: tuple[Lesson, Question]) -> tuple[bool, int, str]:
        name = f"{pair[0].slug}/{pair[1].key}"
        entry = record_of.get(name, {})
        spread = hashlib.sha256(f"{lesson.slug} {name}".encode()).hexdigest()
        return entry.get("right", True), -entry.get("missed", 0), spread

    first, *rest = sorted(questions, key=worth)
    missed = [pair for pair in rest if worth(pair)[:2] < (True, 0)]
    others = [pair for pair in rest if pair[0] != first[0]]
    return [first, *(missed + others + rest)[: _N_ASKED - 1]]
