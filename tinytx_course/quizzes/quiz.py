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
import html
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from tinytx_course.lessons import LESSONS, Lesson

#: The slugs of the lessons that have questions, in the order of the course.
QUIZZES = tuple(
    lesson.slug for lesson in LESSONS if files(__package__).joinpath(f"{lesson.slug}.toml").is_file()
)

_CODE = re.compile(r"`([^`]+)`")
# The labels of radio buttons are made for single words: let these wrap.
_STYLE = """<style>
.tinytx-quiz .widget-radio-box label, .tinytx-quiz .jupyter-widget-radio-box label
  {height: auto; line-height: 1.4; white-space: normal; margin-bottom: 4px;}
.tinytx-quiz .widget-radio-box, .tinytx-quiz .jupyter-widget-radio-box {max-width: 60em; width: auto;}
</style>"""


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


@dataclass(frozen=True, kw_only=True)
class Quiz:
    """The questions of one lesson; a notebook shows radio buttons, a page without a kernel folded answers."""

    lesson: Lesson
    questions: tuple[Question, ...]

    @property
    def title(self) -> str:
        """The heading of the quiz."""
        return f"Questions about lesson {self.lesson.number:02d}, {self.lesson.title}"

    def __repr__(self) -> str:
        """Return questions and choices for a terminal, without the answers."""
        lines = [self.title]
        for number, question in enumerate(self.questions, 1):
            lines += ["", f"{number}. {_plain(question.prompt)}"]
            lines += [f"   {letter}. {_plain(choice.text)}" for letter, choice in _lettered(question)]
        return "\n".join(lines)

    def to_html(self) -> str:
        """Return HTML that needs no script: each choice opens its own feedback."""
        parts = [f'<section class="quiz" aria-label="{html.escape(self.title)}">']
        for number, question in enumerate(self.questions, 1):
            parts.append(f"<p><strong>{number}.</strong> {_marked(question.prompt)}</p>")
            parts += [
                f"<details><summary>{letter}. {_marked(choice.text)}</summary>"
                f"<p>{_marked(choice.feedback)}</p></details>"
                for letter, choice in _lettered(question)
            ]
        return "\n".join([*parts, "</section>"])

    def to_widget(self) -> Any:
        """Return radio buttons; picking one shows its feedback below.

        Works with the keyboard alone: Tab moves to the next question, the arrows move within one.
        """
        import ipywidgets

        boxes = [_question_widget(number, question) for number, question in enumerate(self.questions, 1)]
        whole = ipywidgets.VBox([ipywidgets.HTML(_STYLE), *boxes])
        whole.add_class("tinytx-quiz")
        return whole

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle: dict[str, Any] = {"text/plain": repr(self), "text/html": self.to_html()}
        if _kernel_runs():
            view = "application/vnd.jupyter.widget-view+json"
            bundle[view] = self.to_widget()._repr_mimebundle_()[view]
        return bundle


def _lettered(question: Question) -> list[tuple[str, Choice]]:
    return list(zip("ABCDEFGH", question.choices, strict=False))


def _marked(text: str) -> str:
    return _CODE.sub(r"<code>\1</code>", html.escape(text))


def _plain(text: str) -> str:
    return _CODE.sub(r"\1", text)


def _question_widget(number: int, question: Question) -> Any:
    import ipywidgets

    buttons = ipywidgets.RadioButtons(
        options=[
            (f"{letter}. {_plain(choice.text)}", i) for i, (letter, choice) in enumerate(_lettered(question))
        ],
        value=None,
        description=f"Question {number}",
        layout=ipywidgets.Layout(width="auto"),
        style={"description_width": "initial"},
    )
    answer = ipywidgets.HTML('<div role="status"></div>')

    def picked(change: Any) -> None:
        if change["new"] is not None:
            letter, choice = _lettered(question)[change["new"]]
            answer.value = f'<div role="status">{letter}: {_marked(choice.feedback)}</div>'

    buttons.observe(picked, names="value")
    prompt = ipywidgets.HTML(f"<p><strong>{number}.</strong> {_marked(question.prompt)}</p>")
    return ipywidgets.VBox([prompt, buttons, answer])


def _kernel_runs() -> bool:
    """Tell whether a widget would be alive: in a notebook, not in a terminal or a test."""
    try:
        import ipywidgets  # noqa: F401
        from IPython import get_ipython
    except ImportError:
        return False
    return getattr(get_ipython(), "kernel", None) is not None


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
        As the last line of a cell it is shown: radio buttons where a kernel runs, else folded answers.

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
