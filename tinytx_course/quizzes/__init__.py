"""Questions for the understanding, three to five a lesson: ``course.quiz("positions")``."""

from __future__ import annotations

import difflib
import importlib
from dataclasses import dataclass
from typing import Any

from tinytx_course.lessons import LESSONS, Lesson
from tinytx_course.quizzes.display import as_html, as_text, as_widget
from tinytx_course.quizzes.questions import Choice, Question

__all__ = ["QUIZZES", "Choice", "Question", "Quiz", "quiz"]

#: The lessons that have questions; each has a module of its slug in this folder.
QUIZZES = (
    "tokens",
    "attention_and_masks",
    "positions",
    "the_block",
    "heads_and_cost",
    "counting_parameters",
    "pretraining",
    "transfer",
    "masked_or_causal",
    "translation",
    "real_text_and_real_models",
)


@dataclass(frozen=True, kw_only=True)
class Quiz:
    """The questions of one lesson; a notebook shows it as radio buttons, or folded where no kernel runs.

    Parameters
    ----------
    lesson : Lesson
        Whose it is.
    questions : tuple of Question
        In the order in which they are asked.
    """

    lesson: Lesson
    questions: tuple[Question, ...]

    @property
    def title(self) -> str:
        """What is written above it."""
        return f"Questions about lesson {self.lesson.number:02d}, {self.lesson.title}"

    def __repr__(self) -> str:
        return as_text(self.title, self.questions)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "text/plain": as_text(self.title, self.questions),
            "text/html": as_html(self.title, self.questions),
        }
        if _kernel_runs():
            view = "application/vnd.jupyter.widget-view+json"
            shown[view] = as_widget(self.title, self.questions)._repr_mimebundle_()[view]
        return shown


def _kernel_runs() -> bool:
    """Tell whether picking a radio button would reach anybody."""
    try:
        import ipywidgets  # noqa: F401
        from IPython import get_ipython
    except ImportError:
        return False
    return getattr(get_ipython(), "kernel", None) is not None


def _names() -> dict[str, Lesson]:
    """Every name a quiz answers to: slug, number, file name, and the words of the slug that no other has."""
    lessons = [lesson for lesson in LESSONS if lesson.slug in QUIZZES]
    names: dict[str, Lesson] = {}
    words = [(word, lesson) for lesson in lessons for word in lesson.slug.split("_") if len(word) > 3]
    seen = [word for word, _ in words]
    names.update({word: lesson for word, lesson in words if seen.count(word) == 1})
    for lesson in lessons:
        names |= dict.fromkeys((lesson.slug, lesson.name, str(lesson.number)), lesson)
    return names


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
        If no lesson with questions is called so.

    Examples
    --------
    >>> quiz("masks").lesson.number
    2
    >>> len(quiz(3).questions) >= 3
    True
    """
    names = _names()
    key = str(lesson).strip().lower().replace(" ", "_").removesuffix(".ipynb")
    key = str(int(key)) if key.isdecimal() else key
    if key not in names:
        words = [name for name in names if not name.isdecimal()]
        near = difflib.get_close_matches(key, words, n=3, cutoff=0.6)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise ValueError(f"a quiz is one of {', '.join(QUIZZES)}, got {lesson!r}{hint}")
    chosen = names[key]
    module = importlib.import_module(f"{__name__}.{chosen.slug}")
    return Quiz(lesson=chosen, questions=tuple(module.QUESTIONS))
