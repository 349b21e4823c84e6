"""The bank of questions, one file a lesson: a reader answers them in its quiz, a class votes on others.

The questions are data, in ``NN_slug.toml``. A table is one question; one with a `section` is a vote, and its
table ``twin`` is the same idea in another dress::

    [a-stable-key]
    section = "A heading of the notebook, of what a class votes on"
    prompt = "What is asked? `Backticks` mark code."
    options = [["A choice", "what it reveals about who chooses it", 3], ...]
    answer = "B"
    check = "the last line is an expression that has the third entry of the right option as its value"

Where the right option cannot be computed, `check` and the third entries are absent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tinytx_course.lessons import Lesson
from tinytx_course.results import tables_of

LETTERS = "ABCD"


@dataclass(frozen=True, kw_only=True)
class Option:
    """One answer: its text, what it reveals about who chooses it, and its value where that is computed."""

    text: str
    reveals: str
    value: Any = None


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question with one right answer.

    Raises
    ------
    ValueError
        If there are not four different options, the answer is no letter of them, or some values are missing.
    """

    lesson: Lesson  # that it is about
    key: str  # a stable name, unique within the lesson
    prompt: str  # what is asked; `backticks` mark code, as in the texts of options
    options: tuple[Option, ...]  # four, for the letters A to D
    answer: str  # the letter of the right one
    section: str = ""  # of a vote: the heading in the notebook of what it is about
    check: str = ""  # Python that computes the value of the right option, where it can be computed
    twin: Question | None = None  # of a vote: the same idea in another dress; a twin has none

    def __post_init__(self) -> None:
        where, n_options = f"{self.lesson.name}/{self.key}", len(self.options)
        if len({option.text for option in self.options}) != len(LETTERS) or n_options != len(LETTERS):
            raise ValueError(f"a question must have four different options, got {n_options} in {where}")
        if self.answer not in tuple(LETTERS):
            raise ValueError(f"an answer must be one of {LETTERS}, got {self.answer!r} in {where}")
        texts = [self.prompt, *(text for option in self.options for text in (option.text, option.reveals))]
        if not all(text.strip() for text in texts):
            raise ValueError(f"texts of a question must not be empty, got an empty one in {where}")
        valued = sum(option.value is not None for option in self.options)
        if valued != len(LETTERS) * bool(self.check):
            raise ValueError(f"a question must have four values and a check or none, got {valued} in {where}")

    @property
    def is_further(self) -> bool:
        """Whether what it asks is answered outside the core of its lesson."""
        return self.prompt.startswith("(Further)")

    @property
    def right(self) -> Option:
        """The right option."""
        return self.options[LETTERS.index(self.answer)]

    @property
    def shuffled(self) -> list[Option]:
        """The options in the order of a hash of their texts: the same in every edition of a quiz."""
        hashed = {one.text: hashlib.sha256(f"{self.key}\n{one.text}".encode()) for one in self.options}
        return sorted(self.options, key=lambda one: hashed[one.text].digest())


def questions(lesson: Lesson) -> tuple[Question, ...]:
    """Return the questions of the quiz of a lesson.

    Raises
    ------
    ValueError
        If the lesson has no file of questions, or one of them lacks a field.
    """
    return tuple(one for one in _read(lesson) if not one.section)


def votes(lesson: Lesson) -> tuple[Question, ...]:
    """Return the questions that a class votes on in a lesson, each with its twin; else as `questions`."""
    return tuple(one for one in _read(lesson) if one.section)


def with_twins(asked: Iterable[Question]) -> list[Question]:
    """Return votes, each before its twin."""
    return [one for vote in asked for one in (vote, vote.twin) if one is not None]


@cache
def _read(lesson: Lesson) -> list[Question]:
    try:
        tables = tables_of(f"quizzes/{lesson.name}.toml")
    except FileNotFoundError:
        raise ValueError(f"a lesson must have quizzes/{lesson.name}.toml, got no such file") from None
    return [_question(lesson, key, table, table.get("section", "")) for key, table in tables.items()]


def _question(lesson: Lesson, key: str, table: Mapping[str, Any], section: str) -> Question:
    if missing := [name for name in ("prompt", "options", "answer") if name not in table]:
        raise ValueError(f"a question must have {', '.join(missing)}, got none in {lesson.name}/{key}")
    return Question(
        lesson=lesson,
        key=key,
        prompt=table["prompt"],
        options=tuple(
            Option(**dict(zip(("text", "reveals", "value"), o, strict=False))) for o in table["options"]
        ),
        answer=table["answer"],
        section=section,
        check=table.get("check", ""),
        twin=_question(lesson, f"{key}-twin", table["twin"], section) if "twin" in table else None,
    )
