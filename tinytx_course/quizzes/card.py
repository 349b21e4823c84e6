"""The card that asks: questions of a quiz, of earlier lessons, or one prediction.

In JupyterLab what is picked reaches Python; in a page without a kernel the browser stores it.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from typing import Any

import traitlets

from tinytx_course.widgets.base import Explorer

_MARKS = re.compile(r"`([^`]+)`|\*([^*\s][^*]*)\*")
Answer = dict[str, Any]


class QuestionCard(Explorer):
    """Questions with one right choice each, or a prediction, of which only the future knows.

    Attributes
    ----------
    questions : list of dict
        Each with a ``key``, a ``prompt`` and ``choices``: dicts with ``text`` and, unless it is a prediction,
        ``right`` and ``feedback``. The first may have a ``program`` that all are about.
    levels : list of int
        How sure one can be, in percent; empty unless it is a prediction.
    answers : dict
        By key: ``choice`` (its index), ``sure`` (percent, 0 = not said) and ``checked``.
    live : bool
        Whether a kernel hears; a page stores answers itself.
    remembered : bool
        Whether a page shows the answers again when it is opened again.
    """

    kind = "questions"
    questions = traitlets.List(traitlets.Dict()).tag(sync=True)
    levels = traitlets.List(traitlets.Int()).tag(sync=True)
    answers = traitlets.Dict().tag(sync=True)
    remembered = traitlets.Bool(True).tag(sync=True)
    live = traitlets.Bool(True).tag(sync=True)

    def __init__(self, on_answer: Callable[[str, Answer], None], **state: Any) -> None:
        super().__init__(**state)
        self._on_answer = on_answer

    @traitlets.observe("answers")
    def _hear(self, change: Any) -> None:
        if not hasattr(self, "_on_answer"):
            return  # what was answered before
        for key, answer in change.new.items():
            if answer != change.old.get(key):
                self._on_answer(key, answer)

    def summary(self) -> str:
        """Return questions and choices for a terminal, without the answers."""
        lines = [one["program"] for one in self.questions if "program" in one]
        for number, question in enumerate(self.questions, 1):
            prompt = plain(question["prompt"])
            lines += ["", f"{number}. {prompt}"] if len(self.questions) > 1 else [prompt]
            lines += [f"  {letter}. {plain(choice['text'])}" for letter, choice in lettered(question)]
        return "\n".join(lines + ["Choose before you look at the next cell."] * bool(self.levels))

    def state(self) -> dict[str, Any]:
        """Return what a page knows: no answers, which are personal, and no kernel."""
        return {**super().state(), "answers": {}, "live": False}

    def still(self) -> str:
        """Return HTML that needs no script: each choice opens its own feedback."""
        parts = [f'<section class="tx-still" aria-label="{html.escape(self.title)}">']
        if self.levels:
            parts.append(f"<p><strong>{html.escape(self.title)}.</strong></p>")
        for number, question in enumerate(self.questions, 1):
            several = f"<strong>{number}.</strong> " if len(self.questions) > 1 else ""
            if "program" in question:
                parts.append(f"<pre>{html.escape(question['program'])}</pre>")
            parts.append(f"<p>{several}{marked(question['prompt'])}</p>")
            parts += [_folded(letter, choice) for letter, choice in lettered(question)]
        return "\n".join([*parts, "</section>"])


def lettered(question: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the choices of a question with the letters A, B, ..."""
    return list(zip("ABCDEFGH", question["choices"], strict=False))


def marked(text: str) -> str:
    """Return text as HTML: what is between backticks as code, what is between asterisks emphasised."""

    def tagged(match: re.Match[str]) -> str:
        return f"<code>{match[1]}</code>" if match[1] else f"<em>{match[2]}</em>"

    return _MARKS.sub(tagged, html.escape(text))


def plain(text: str) -> str:
    """Return text without backticks."""
    return text.replace("`", "")


def _folded(letter: str, choice: Mapping[str, Any]) -> str:
    words = f"{letter}. {marked(choice['text'])}"
    if "feedback" not in choice:
        return f"<p>{words}</p>"
    return f"<details><summary>{words}</summary><p>{marked(choice['feedback'])}</p></details>"
