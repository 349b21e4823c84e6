"""Vote cards for peer instruction: two questions a lesson, each with a twin in another dress.

The questions are data, in ``votes/NN_slug.toml``. A table is one question, a table ``twin`` in it its twin::

    [a-stable-key]
    section = "A heading of the notebook"
    prompt = "What is asked? `Backticks` mark code."
    answer = "B"
    options = [["A choice", "what it reveals about who chooses it", 3], ...]
    check = "the last line is an expression that has the third entry of the right option as its value"

Where the right option cannot be computed, `check` and the third entries are absent.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from tinytx_course.lessons import Lesson

LETTERS = "ABCD"


@dataclass(frozen=True, kw_only=True)
class Option:
    """One answer: its text, what it reveals about who chooses it, and its value where that is computed."""

    text: str
    reveals: str
    value: Any = None


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question to vote on.

    Parameters
    ----------
    lesson : Lesson
        The lesson it is about.
    key : str
        A stable name, unique within the lesson.
    section : str
        The heading in the notebook of what it is about.
    prompt : str
        What is asked; `backticks` mark code, as in the texts of options.
    options : tuple of Option
        Four, for the letters A to D.
    answer : str
        The letter of the right one.
    check : str
        Python that computes the value of the right option, empty where it cannot be computed.
    twin : Question, optional
        The same idea in another dress; a twin has none.

    Raises
    ------
    ValueError
        If there are not four different options, the answer is no letter of them, or some values are missing.
    """

    lesson: Lesson
    key: str
    section: str
    prompt: str
    options: tuple[Option, ...]
    answer: str
    check: str = ""
    twin: Question | None = None

    def __post_init__(self) -> None:
        where = f"{self.lesson.name}/{self.key}"
        if len({option.text for option in self.options}) != len(LETTERS) or len(self.options) != len(LETTERS):
            raise ValueError(f"a vote must have four different options, got {len(self.options)} in {where}")
        if self.answer not in tuple(LETTERS):
            raise ValueError(f"the answer of a vote must be one of {LETTERS}, got {self.answer!r} in {where}")
        texts = [self.prompt, *(text for option in self.options for text in (option.text, option.reveals))]
        if not all(text.strip() for text in texts):
            raise ValueError(f"texts of a vote must not be empty, got an empty one in {where}")
        valued = sum(option.value is not None for option in self.options)
        if valued != len(LETTERS) * bool(self.check):
            raise ValueError(f"a vote must have four values and a check or none, got {valued} in {where}")

    @property
    def right(self) -> Option:
        """The right option."""
        return self.options[LETTERS.index(self.answer)]


def questions(lesson: Lesson) -> tuple[Question, ...]:
    """Return the questions of a lesson, each with its twin.

    Raises
    ------
    ValueError
        If the lesson has none, or one of them lacks a field.
    """
    source = files(__package__).joinpath(f"votes/{lesson.name}.toml")
    if not source.is_file():
        raise ValueError(f"a lesson must have votes/{lesson.name}.toml, got no such file")
    tables = tomllib.loads(source.read_text(encoding="utf-8"))
    return tuple(_question(lesson, key, table) for key, table in tables.items())


def with_twins(asked: Iterable[Question]) -> list[Question]:
    """Return questions, each before its twin."""
    return [one for vote in asked for one in (vote, vote.twin) if one is not None]


def _question(lesson: Lesson, key: str, table: Mapping[str, Any], section: str = "") -> Question:
    section = section or table.get("section", "")
    missing = [name for name in ("prompt", "options", "answer") if name not in table]
    if missing or not section:
        lacks = missing or ["section"]
        raise ValueError(f"a vote must have {', '.join(lacks)}, got none in {lesson.name}/{key}")
    return Question(
        lesson=lesson,
        key=key,
        section=section,
        prompt=table["prompt"],
        options=tuple(
            Option(**dict(zip(("text", "reveals", "value"), o, strict=False))) for o in table["options"]
        ),
        answer=table["answer"],
        check=table.get("check", ""),
        twin=_question(lesson, f"{key}-twin", table["twin"], section) if "twin" in table else None,
    )
