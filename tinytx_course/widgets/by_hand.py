"""Exercises that need no Python: fill a mask, predict a number, count parameters; known mistakes are named.

The tasks are data, ``tinytx_course/exercises/by_hand.toml``. Answers, right and wrong, are computed by the
exercises with a checker in Python: a mistake has the same name and the same words there and here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
import traitlets
from torch import Tensor

from tinytx_course.exercises.checking import EXERCISES
from tinytx_course.exercises.exercise import Exercise
from tinytx_course.results import tables_of
from tinytx_course.widgets.base import Explorer


@dataclass(frozen=True, kw_only=True)
class Task:
    """A task for paper and pencil; see ``by_hand.toml``.

    Attributes
    ----------
    part, title, task : str
    calls : mapping of str to str
        Names of exercises, and the arguments of their checker as an expression.
    rows, columns : str
        Words of a mask; empty where a number is due.
    entry : int
        Which number of the result is due.
    within : float
        A number is right up to this distance.
    sum : str
        How one computes a number, in Python's signs; shown after a right answer.
    """

    part: str
    title: str
    task: str
    calls: dict[str, str]
    rows: str = ""
    columns: str = ""
    entry: int = 0
    within: float = 0.0
    sum: str = ""

    @property
    def exercises(self) -> list[Exercise]:
        """The exercises that check this in Python."""
        return [EXERCISES[name] for name in self.calls]

    def answers(self) -> list[tuple[str, str, str]]:
        """Return (value, mistake, words): the right answer, whose mistake is "", then the wrong ones."""
        arguments = [eval(f"({text},)", {"torch": torch}) for text in self.calls.values()]
        right = [torch.as_tensor(one.solve(*own)) for one, own in zip(self.exercises, arguments, strict=True)]
        found = [(self._value(right), "", "")]
        for i, (exercise, own) in enumerate(zip(self.exercises, arguments, strict=True)):
            about = f"The {exercise.name.replace('_', ' ')}: " if len(right) > 1 else ""
            for slug, words, wrong in _wrongs(exercise, own):
                if wrong.shape == right[i].shape and wrong.isfinite().all():
                    value = self._value([*right[:i], wrong, *right[i + 1 :]])
                    if not any(self._same(value, other) for other, _, _ in found):
                        found.append((value, slug, about + words))
        return found

    def _value(self, results: list[Tensor]) -> str:
        """Return a mask as zeros and ones, row by row, or a number."""
        if self.rows:
            mask = results[0]
            for other in results[1:]:
                mask = mask & other
            return "".join(str(int(cell)) for cell in mask.flatten())
        number = results[0].flatten()[self.entry].item()
        return f"{number:.6g}" if self.within else f"{number:.0f}"

    def _same(self, one: str, other: str) -> bool:
        return one == other or (not self.rows and abs(float(one) - float(other)) <= 2 * self.within)


def _wrongs(exercise: Exercise, arguments: tuple[Any, ...]) -> Iterator[tuple[str, str, Tensor]]:
    """Yield the mistakes of an exercise, the commonest first, with what they give."""
    for mistake in exercise.mistakes:
        for wrong in mistake.wrongs:
            try:
                yield mistake.slug, mistake.words, torch.as_tensor(wrong(*arguments))
            except (ArithmeticError, IndexError, RuntimeError, TypeError, ValueError):
                continue  # a mistake that gives nothing for these arguments


@cache
def tasks() -> dict[str, Task]:
    """Return all tasks by name, in order.

    Examples
    --------
    >>> tasks()["untrained"].answers()[0]
    ('6.90776', '', '')
    """
    return {name: Task(**fields) for name, fields in tables_of("exercises/by_hand.toml").items()}


class ByHandExplorer(Explorer):
    """See `by_hand`.

    `cells` holds a mask as zeros and ones, row by row, `typed` a number as it was written.
    """

    kind = "by_hand"
    title = traitlets.Unicode().tag(sync=True)
    task = traitlets.Unicode().tag(sync=True)
    rows = traitlets.List(traitlets.Unicode()).tag(sync=True)
    columns = traitlets.List(traitlets.Unicode()).tag(sync=True)
    answers = traitlets.List(traitlets.List(traitlets.Unicode())).tag(sync=True)
    within = traitlets.Float().tag(sync=True)
    sum = traitlets.Unicode().tag(sync=True)
    cells = traitlets.Unicode().tag(sync=True)
    typed = traitlets.Unicode().tag(sync=True)
    report = traitlets.Enum(["", "check", "solution"], "").tag(sync=True)

    @traitlets.validate("cells")
    def _check_cells(self, proposal: Any) -> str:
        size = len(self.rows) * len(self.columns)
        if len(proposal.value) != size or set(proposal.value) - {"0", "1"}:
            raise ValueError(f"cells must hold {size} zeros and ones, got {proposal.value!r}")
        return proposal.value

    def summary(self) -> str:
        """Return the task."""
        size = f" A mask of {len(self.rows)} × {len(self.columns)} cells." if self.rows else ""
        return f"{self.task.replace('`', '')}{size}"


def by_hand(name: str) -> ByHandExplorer:
    """Show a task that needs no Python.

    Parameters
    ----------
    name : str
        Of the task, such as ``"causal"``.

    Raises
    ------
    ValueError
        If there is no such task.

    Examples
    --------
    >>> by_hand("causal").title
    'Who may attend to whom?'
    """
    if name not in tasks():
        raise ValueError(f"a task is one of {', '.join(tasks())}, got {name!r}")
    one = tasks()[name]
    rows, columns = ([word.replace("·", " ") for word in words.split()] for words in (one.rows, one.columns))
    return ByHandExplorer(
        title=one.title,
        task=one.task,
        rows=rows,
        columns=columns,
        answers=[list(answer) for answer in one.answers()],
        within=one.within,
        sum=one.sum.replace("*", "·").replace("-", "−"),
        cells="0" * (len(rows) * len(columns)),
    )
