"""Predict before a cell, resolve after it: ``course.predict`` and ``course.resolve``."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Any

import traitlets

from tinytx.settings import require
from tinytx_course.lessons import LESSONS
from tinytx_course.progress.record import record
from tinytx_course.quizzes.card import Answer, QuestionCard, marked, plain
from tinytx_course.widgets.base import Explorer

LEVELS = (50, 70, 90)  # percent
OPEN = "open"  # the outcome where what was measured does not decide
_NUMBER = re.compile(r"(\d\d)\.([1-9]\d*)")
_asked: dict[str, tuple[str, ...]] = {}  # by number, the options shown in this process


def predict(number: str, question: str, options: Sequence[str]) -> QuestionCard:
    """Ask what the next cell will show, and how sure the reader is.

    Parameters
    ----------
    number : str
        Of the lesson, a dot, and from 1 on within it: ``"02.1"``.
    question : str
        What is asked. `Backticks` mark code.
    options : sequence of str
        At least two, in the order shown.

    Returns
    -------
    QuestionCard
        The last line of its cell. The choice is recorded; the first one that `resolve` has seen counts.

    Raises
    ------
    ValueError
        If the number has another form or no lesson, or options are fewer than two, empty, alike or "open".
    """
    _check_number(number)
    texts = [option.strip() for option in options]
    if len(texts) < 2 or len(set(texts)) < len(texts) or not all(texts) or OPEN in texts:
        raise ValueError(f"options must be at least two different texts, none {OPEN!r}, got {list(options)}")
    _asked[number] = tuple(texts)
    card = QuestionCard(
        lambda _, answer: _record_choice(number, texts, answer, card),
        title=f"Predict {number}",
        levels=list(LEVELS),
        questions=[{"key": number, "prompt": question, "choices": [{"text": text} for text in texts]}],
        answers=_answers(number, texts),
    )
    return card


def _check_number(number: str) -> None:
    found = _NUMBER.fullmatch(number)
    if not found or int(found[1]) >= len(LESSONS):
        raise ValueError(
            f"a prediction is numbered by lesson, dot and running number, as '02.1', got {number!r}"
        )


def _answers(number: str, texts: Sequence[str]) -> dict[str, Answer]:
    """Return what was chosen before, if it is still an option."""
    entry = record().entry("predictions", number)
    if entry.get("choice") not in texts:
        return {}
    return {number: {"choice": texts.index(entry["choice"]), "sure": entry.get("sure", 0), "checked": False}}


def _record_choice(number: str, texts: Sequence[str], answer: Answer, card: QuestionCard) -> None:
    """Store a choice; one that is resolved already stays, and the card shows it again."""
    if "right" in record().entry("predictions", number):
        card.answers = _answers(number, texts) or card.answers
    else:
        entry = {"choice": texts[answer["choice"]], "sure": answer["sure"]}
        record().change("predictions", number, entry)


class OutcomeCard(Explorer):
    """What came out, and whether it was predicted.

    Attributes
    ----------
    number, answer, finding : str
        The number of the prediction, the option that is right, and a sentence that says more.
    choice : str
        The option chosen, empty where there is none.
    sure : int
        In percent; 0 = not said.
    live : bool
        False in a page, which looks for the choice itself.
    """

    kind = "outcome"
    number = traitlets.Unicode().tag(sync=True)
    answer = traitlets.Unicode().tag(sync=True)
    finding = traitlets.Unicode().tag(sync=True)
    choice = traitlets.Unicode().tag(sync=True)
    sure = traitlets.Int().tag(sync=True)
    live = traitlets.Bool(True).tag(sync=True)

    def summary(self) -> str:
        """Return whether the prediction was right, where there is one, and the finding."""
        return plain(f"{_verdict(self.choice, self.sure, self.answer)} {self.finding}".strip())

    def state(self) -> dict[str, Any]:
        """Return what a page knows: not the choice, which is personal, and no kernel."""
        return {**super().state(), "choice": "", "sure": 0, "live": False}

    def still(self) -> str:
        """Return the summary as HTML."""
        verdict = marked(_verdict(self.choice, self.sure, self.answer))
        return (
            f'<p class="tx-still"><strong>{html.escape(self.title)}.</strong> '
            f"{verdict} {marked(self.finding)}</p>"
        )


def _verdict(choice: str, sure: int, answer: str) -> str:
    """Say what was predicted; ``js/outcome.js`` says the same."""
    if not choice:
        return f"Answer: “{answer}”."
    predicted = f"predicted “{choice}”{f', {sure} % sure' if sure else ''}"
    if answer == OPEN:
        return f"Open: you {predicted}, and what was measured does not decide."
    return f"✓ Right: you {predicted}." if choice == answer else f"✗ You {predicted}. It is “{answer}”."


def resolve(
    number: str,
    answer: str | float,
    finding: str,
    *,
    between: tuple[float, float] | None = None,
    thresholds: Sequence[float] = (),
) -> OutcomeCard:
    """Compare a prediction with what came out, and record the outcome.

    Parameters
    ----------
    number : str
        As in `predict`.
    answer : str or float
        The option that is right, computed from the numbers of the cell; or the value that decides, where
        `thresholds` are given.
    finding : str
        A sentence with these numbers.
    between : pair of float, optional
        The range in which the value was measured. Where it holds a threshold, ends included, the outcome is
        *open*, and no choice is recorded as right or wrong.
    thresholds : sequence of float
        What divides the options, in ascending order: the first one is right below the first threshold.

    Returns
    -------
    OutcomeCard
        The last line of its cell: whether the prediction was right, and the finding. Without a prediction
        only the finding.

    Raises
    ------
    ValueError
        If the answer is none of the options that `predict` showed in this notebook, a value lies outside its
        range or thresholds do not divide the options, or the finding is empty.
    """
    _check_number(number)
    options = _asked.get(number)
    if not isinstance(answer, str):
        answer = _option(options, answer, between or (answer, answer), thresholds)
    if options is not None and answer not in (*options, OPEN):
        raise ValueError(f"the answer to {number} must be one of {', '.join(options)}, got {answer!r}")
    require(finding.strip(), f"the finding of {number} must be a sentence", repr(finding))
    entry = record().entry("predictions", number)
    choice = entry.get("choice", "")
    if options is not None and choice not in options:
        choice = ""  # of an earlier wording
    if choice and "right" not in entry and answer != OPEN:
        record().change("predictions", number, {**entry, "answer": answer, "right": choice == answer})
    return OutcomeCard(
        title=f"Result of {number}",
        number=number,
        answer=answer,
        finding=finding.strip(),
        choice=choice,
        sure=entry.get("sure", 0) if choice else 0,
    )


def _option(
    options: Sequence[str] | None, value: float, between: tuple[float, float], thresholds: Sequence[float]
) -> str:
    """The option on whose side of the thresholds a whole range lies, else `OPEN`."""
    low, high = between
    require(low <= value <= high, "the value must lie in its range", f"value={value}, between={between}")
    if options is None or len(thresholds) != len(options) - 1 or list(thresholds) != sorted(set(thresholds)):
        raise ValueError(
            f"thresholds must be ascending, one less than the options that predict showed, "
            f"got thresholds={list(thresholds)}, options={options}"
        )
    if any(low <= limit <= high for limit in thresholds):
        return OPEN
    return options[sum(limit < value for limit in thresholds)]
