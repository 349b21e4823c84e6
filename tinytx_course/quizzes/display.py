"""A quiz on the screen: radio buttons where a kernel runs, folded answers on a page, text in a terminal."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Any

from tinytx_course.quizzes.questions import Choice, Question

_CODE = re.compile(r"`([^`]+)`")
# The labels of radio buttons are made for single words: let these wrap.
_STYLE = """<style>
.tinytx-quiz .widget-radio-box label, .tinytx-quiz .jupyter-widget-radio-box label
  {height: auto; line-height: 1.4; white-space: normal; margin-bottom: 4px;}
.tinytx-quiz .widget-radio-box, .tinytx-quiz .jupyter-widget-radio-box {max-width: 60em; width: auto;}
</style>"""


def letter(place: int) -> str:
    """Return the letter of a choice: A for the first."""
    return chr(ord("A") + place)


def feedback(choice: Choice) -> str:
    """Return what is said to the reader who picked a choice; words, not colours, carry the verdict."""
    return f"{'Right.' if choice.right else 'Not quite.'} {choice.why}"


def _marked(text: str) -> str:
    return _CODE.sub(r"<code>\1</code>", html.escape(text))


def _plain(text: str) -> str:
    return _CODE.sub(r"\1", text)


def as_text(title: str, questions: Sequence[Question]) -> str:
    """Return the questions and their choices for a terminal, without the answers."""
    lines = [title]
    for number, question in enumerate(questions, 1):
        lines += ["", f"{number}. {_plain(question.prompt)}"]
        lines += [f"   {letter(place)}. {_plain(c.text)}" for place, c in enumerate(question.choices)]
    return "\n".join(lines)


def as_html(title: str, questions: Sequence[Question]) -> str:
    """Return the questions as a page without a script shows them: each choice opens its own explanation."""
    parts = [f'<section class="quiz" aria-label="{html.escape(title)}">']
    for number, question in enumerate(questions, 1):
        parts.append(f"<p><strong>{number}.</strong> {_marked(question.prompt)}</p>")
        for place, choice in enumerate(question.choices):
            parts.append(
                f"<details><summary>{letter(place)}. {_marked(choice.text)}</summary>"
                f"<p>{_marked(feedback(choice))}</p></details>"
            )
    return "\n".join([*parts, "</section>"])


def as_widget(title: str, questions: Sequence[Question]) -> Any:
    """Return the questions as radio buttons; picking one shows its explanation below.

    Works with the keyboard alone: Tab goes to the next question, the arrows move within one.
    """
    import ipywidgets

    boxes = [_question_widget(number, question) for number, question in enumerate(questions, 1)]
    whole = ipywidgets.VBox([ipywidgets.HTML(_STYLE), *boxes])
    whole.add_class("tinytx-quiz")
    return whole


def _question_widget(number: int, question: Question) -> Any:
    import ipywidgets

    prompt = ipywidgets.HTML(f"<p><strong>{number}.</strong> {_marked(question.prompt)}</p>")
    options = [(f"{letter(p)}. {_plain(c.text)}", p) for p, c in enumerate(question.choices)]
    buttons = ipywidgets.RadioButtons(
        options=options,
        value=None,
        description=f"Question {number}",
        layout=ipywidgets.Layout(width="auto"),
        style={"description_width": "initial"},
    )
    answer = ipywidgets.HTML('<div role="status"></div>')

    def picked(change: Any) -> None:
        place = change["new"]
        if place is None:
            return
        said = f"{letter(place)}: {_marked(feedback(question.choices[place]))}"
        answer.value = f'<div role="status">{said}</div>'

    buttons.observe(picked, names="value")
    return ipywidgets.VBox([prompt, buttons, answer])
