"""A multiple-choice question: one right choice, and a word of its own for each of the others."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One answer that can be picked.

    Parameters
    ----------
    text : str
        What is picked; `backticks` mark code.
    why : str
        What is said to the reader who picked it.
    right : bool
        True for one choice of a question.
    slip : str, optional
        The name of a slip of understanding that was seen in somebody's work.
    """

    text: str
    why: str
    right: bool = False
    slip: str | None = None


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question with its choices, in the order in which they are shown.

    Parameters
    ----------
    key : str
        A stable name, unique within the quiz.
    prompt : str
        What is asked; `backticks` mark code.
    choices : sequence of Choice
        Written in any order: shown in one that follows from their texts, so that the right one stands
        anywhere and an edition of the course is like the other.

    Raises
    ------
    ValueError
        If not exactly one choice is right, a word of explanation is missing, or a choice stands there twice.
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
            raise ValueError(f"a choice must have a text and a reason, got an empty one in {self.key!r}")
        object.__setattr__(self, "choices", tuple(sorted(self.choices, key=self._place)))

    def _place(self, choice: Choice) -> str:
        return hashlib.sha256(f"{self.key}\n{choice.text}".encode()).hexdigest()

    @property
    def answer(self) -> Choice:
        """The right choice."""
        return next(choice for choice in self.choices if choice.right)


def right(text: str, why: str) -> Choice:
    """Return the right choice with its confirmation."""
    return Choice(text=text, why=why, right=True)


def wrong(text: str, why: str, slip: str | None = None) -> Choice:
    """Return a wrong choice with its explanation."""
    return Choice(text=text, why=why, slip=slip)


def ask(key: str, prompt: str, *choices: Choice) -> Question:
    """Return a question."""
    return Question(key=key, prompt=prompt, choices=choices)
