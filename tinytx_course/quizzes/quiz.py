"""The quiz of a lesson, ``course.quiz("positions")``, and two questions of earlier ones, `course.recall`."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

from tinytx_course.lessons import LESSONS
from tinytx_course.progress.record import record
from tinytx_course.quizzes.bank import Option, Question, questions
from tinytx_course.quizzes.card import Answer, QuestionCard
from tinytx_course.results import nearest


def feedback(question: Question, option: Option) -> str:
    """Return what the reader who picked an option reads; words, not colours, carry the verdict."""
    return f"{'Right.' if option == question.right else 'Not quite.'} {option.reveals}"


def name_of(question: Question) -> str:
    """Return the name of a question in the record of a learner."""
    return f"{question.lesson.slug}/{question.key}"


def question_card(title: str, asked: Sequence[Question], *, remembered: bool = True) -> QuestionCard:
    """Return a card that asks questions and records the answers.

    With `remembered` it shows what this learner answered before.
    """
    options = {name_of(question): question.shuffled for question in asked}
    right = {name_of(question): question.right for question in asked}

    def record_answer(name: str, answer: Answer) -> None:
        if answer["checked"]:
            chosen, before = options[name][answer["choice"]], record().entry("questions", name)
            is_right = chosen == right[name]
            missed = before.get("missed", 0) + (not is_right)
            record().change("questions", name, {"choice": chosen.text, "right": is_right, "missed": missed})

    answers = {}
    for name in options if remembered else ():
        texts = [option.text for option in options[name]]
        if (text := record().entry("questions", name).get("choice")) in texts:
            answers[name] = {"choice": texts.index(text), "sure": 0, "checked": True}
    return QuestionCard(
        record_answer,
        title=title,
        remembered=remembered,
        questions=[
            {
                "key": name_of(question),
                "prompt": question.prompt,
                "choices": [
                    {"text": one.text, "right": one == question.right, "feedback": feedback(question, one)}
                    for one in question.shuffled
                ],
            }
            for question in asked
        ],
        answers=answers,
    )


def quiz(lesson: str | int) -> QuestionCard:
    """Ask the questions of a lesson.

    Parameters
    ----------
    lesson : str or int
        Its slug (``"attention_and_masks"``), number (``2``, ``"02"``), or a word of the slug that no other
        lesson has (``"masks"``).

    Returns
    -------
    QuestionCard
        As the last line of a cell it is shown as a card, in a page too; without scripts with folded answers.

    Raises
    ------
    ValueError
        If no lesson has this name.

    Examples
    --------
    >>> quiz("masks").title
    'Questions about lesson 02, Attention and masks'
    """
    words = [word for one in LESSONS for word in one.slug.split("_") if len(word) > 3]
    names = {word: one for one in LESSONS for word in one.slug.split("_") if Counter(words)[word] == 1}
    for one in LESSONS:
        names |= dict.fromkeys((one.slug, one.name, str(one.number)), one)
    key = str(lesson).strip().lower().replace(" ", "_").removesuffix(".ipynb")
    key = str(int(key)) if key.isdecimal() else key
    if key not in names:
        hint = nearest(key, (name for name in names if not name.isdecimal()))
        raise ValueError(f"a quiz is one of {', '.join(one.slug for one in LESSONS)}, got {lesson!r}{hint}")
    asked = names[key]
    return question_card(f"Questions about lesson {asked.number:02d}, {asked.title}", questions(asked))


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
