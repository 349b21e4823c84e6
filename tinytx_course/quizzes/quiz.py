"""Multiple-choice questions, three to five a lesson: ``course.quiz("positions")``.

The questions are data, in ``SLUG.toml`` next to this file. A table is one question::

    [a-stable-key]
    prompt = "What is asked? `Backticks` mark code."
    right = ["the right choice", "what the reader who picks it reads"]
    wrong = [["a wrong choice", "why it is wrong", "name-of-the-misconception (optional)"], ...]
"""

from __future__ import annotations

import difflib
import hashlib
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from tinytx_course.lessons import LESSONS, Lesson
from tinytx_course.progress.record import record
from tinytx_course.quizzes.card import Answer, QuestionCard

#: The slugs of the lessons that have questions, in the order of the course.
QUIZZES = tuple(
    lesson.slug for lesson in LESSONS if files(__package__).joinpath(f"{lesson.slug}.toml").is_file()
)


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One answer that can be picked: its text, its explanation, and the name of its misconception."""

    text: str
    why: str
    right: bool = False
    misconception: str | None = None

    @property
    def feedback(self) -> str:
        """What the reader who picked it reads; words, not colours, carry the verdict."""
        return f"{'Right.' if self.right else 'Not quite.'} {self.why}"


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question with its choices, shuffled the same way in every edition.

    Parameters
    ----------
    key : str
        A stable name, unique within the quiz.
    prompt : str
        What is asked.
    choices : sequence of Choice
        In any order: the order shown follows from a hash of their texts.

    Raises
    ------
    ValueError
        If not exactly one choice is right, a text or feedback is empty, or two choices are equal.
    """

    key: str
    prompt: str
    choices: Sequence[Choice]

    def __post_init__(self) -> None:
        n_right = sum(choice.right for choice in self.choices)
        if n_right != 1:
            raise ValueError(f"a question must have exactly one right choice, got {n_right} in {self.key!r}")
        if len({choice.text for choice in self.choices}) < len(self.choices):
            raise ValueError(f"the choices of a question must differ, got two alike in {self.key!r}")
        if any(not choice.text.strip() or not choice.why.strip() for choice in self.choices):
            raise ValueError(f"a choice must have a text and a feedback, got an empty one in {self.key!r}")

        def shuffled(choice: Choice) -> str:
            return hashlib.sha256(f"{self.key}\n{choice.text}".encode()).hexdigest()

        object.__setattr__(self, "choices", tuple(sorted(self.choices, key=shuffled)))

    @property
    def answer(self) -> Choice:
        """The right choice."""
        return next(choice for choice in self.choices if choice.right)

    def asked(self, name: str) -> dict[str, Any]:
        """What a card knows of it, under the name that its answer is stored with."""
        choices = [{"text": one.text, "right": one.right, "feedback": one.feedback} for one in self.choices]
        return {"key": name, "prompt": self.prompt, "choices": choices}


@dataclass(frozen=True, kw_only=True)
class Quiz:
    """The questions of one lesson, shown as a card."""

    lesson: Lesson
    questions: tuple[Question, ...]

    @property
    def title(self) -> str:
        """The heading of the quiz."""
        return f"Questions about lesson {self.lesson.number:02d}, {self.lesson.title}"

    def __repr__(self) -> str:
        """Return questions and choices for a terminal, without the answers."""
        return repr(self.to_widget())

    def to_html(self) -> str:
        """Return HTML that the script of a page brings to life; else each choice unfolds its feedback."""
        return self.to_widget().to_html()

    def to_widget(self) -> QuestionCard:
        """Return the card that asks them, with the answers of this learner."""
        return question_card(self.title, [(self.lesson, question) for question in self.questions])

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return self.to_widget()._repr_mimebundle_()


def question_card(
    title: str, questions: Sequence[tuple[Lesson, Question]], *, remembered: bool = True
) -> QuestionCard:
    """Return a card that asks questions, each with its lesson, and records the answers.

    With `remembered` it shows what this learner answered before.
    """
    by_name = {f"{lesson.slug}/{question.key}": question for lesson, question in questions}

    def record_answer(name: str, answer: Answer) -> None:
        if answer["checked"]:
            choice, before = by_name[name].choices[answer["choice"]], record().entry("questions", name)
            missed = before.get("missed", 0) + (not choice.right)
            entry = {"choice": choice.text, "right": choice.right, "missed": missed}
            record().change("questions", name, entry)

    def answered(name: str, question: Question) -> Answer | None:
        texts = [choice.text for choice in question.choices]
        text = record().entry("questions", name).get("choice")
        return {"choice": texts.index(text), "sure": 0, "checked": True} if text in texts else None

    before = {name: answered(name, question) for name, question in by_name.items()} if remembered else {}
    return QuestionCard(
        record_answer,
        title=title,
        remembered=remembered,
        questions=[question.asked(name) for name, question in by_name.items()],
        answers={name: answer for name, answer in before.items() if answer is not None},
    )


def _names() -> dict[str, Lesson]:
    """Map slug, number, file name, and each word that occurs in one slug only, to its lesson."""
    lessons = [lesson for lesson in LESSONS if lesson.slug in QUIZZES]
    words = [(word, lesson) for lesson in lessons for word in lesson.slug.split("_") if len(word) > 3]
    counted = [word for word, _ in words]
    names = {word: lesson for word, lesson in words if counted.count(word) == 1}
    for lesson in lessons:
        names |= dict.fromkeys((lesson.slug, lesson.name, str(lesson.number)), lesson)
    return names


def _read_questions(slug: str) -> tuple[Question, ...]:
    tables = tomllib.loads(files(__package__).joinpath(f"{slug}.toml").read_text(encoding="utf-8"))
    questions = []
    for key, table in tables.items():
        choices = [Choice(text=table["right"][0], why=table["right"][1], right=True)]
        for text, why, *name in table["wrong"]:
            choices.append(Choice(text=text, why=why, misconception=name[0] if name else None))
        questions.append(Question(key=key, prompt=table["prompt"], choices=choices))
    return tuple(questions)


def quiz(lesson: str | int) -> Quiz:
    """Ask the questions of a lesson.

    Parameters
    ----------
    lesson : str or int
        Its slug (``"attention_and_masks"``), number (``2``, ``"02"``), or a word of the slug that no other
        lesson has (``"masks"``).

    Returns
    -------
    Quiz
        As the last line of a cell it is shown as a card, in a page too; without scripts with folded answers.

    Raises
    ------
    ValueError
        If no lesson with questions has this name.

    Examples
    --------
    >>> quiz("masks").lesson.slug
    'attention_and_masks'
    """
    names = _names()
    key = str(lesson).strip().lower().replace(" ", "_").removesuffix(".ipynb")
    key = str(int(key)) if key.isdecimal() else key
    if key not in names:
        words = [name for name in names if not name.isdecimal()]
        near = difflib.get_close_matches(key, words, n=3, cutoff=0.6)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise ValueError(f"a quiz is one of {', '.join(QUIZZES)}, got {lesson!r}{hint}")
    return Quiz(lesson=names[key], questions=_read_questions(names[key].slug))
