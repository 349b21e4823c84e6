"""Hints of rising help for one exercise: where to read, what is wrong, which step to look at; no answers.

The step comes from the file of the exercise: it is where the program with the mistake differs from the right
one. No hint shares five tokens in a row with a right program: a mistake whose words do has a ``hint`` in the
file, and axes ``(B, T, D)`` become ``B × T × D``.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tinytx_course.exercises.card import Grid, as_text
from tinytx_course.exercises.catalogue import NAMES, Mistake, Program
from tinytx_course.exercises.checking import find_exercise
from tinytx_course.exercises.exercise import Exercise
from tinytx_course.exercises.telling import describe_call, where_to_read
from tinytx_course.grading.grades import Grade
from tinytx_course.grading.running import grade_exercise
from tinytx_course.grading.submission import read_submission

_WORD = re.compile(r"\w+")
_AXIS = r"\w+(?: ?[·+-] ?\w+)*"
_AXES = re.compile(rf"(?<![\w`])\((?=[^()]*[A-Z])((?:{_AXIS}, )+{_AXIS})\)")
_MOST_STEPS = 3  # more, and it is another program


@dataclass(frozen=True, kw_only=True)
class Hints:
    """What is known of a learner's answer to an exercise."""

    verdict: str  # ``passed``, ``not yet`` or ``not attempted``
    mistake: str | None = None  # its name, if it is a known one
    words: str = ""  # what is wrong
    input: str = ""  # the smallest that shows it, as far as one call does
    expected: str = ""
    got: str = ""
    hints: tuple[str, ...] = ()  # of rising help; without the name of a mistake only where to read

    def to_dict(self) -> dict:
        """Return plain values for ``--json``."""
        return asdict(self)

    def __str__(self) -> str:
        about = {"input": self.input, "expected": self.expected, "got": self.got}
        name = f" ({self.mistake})" if self.mistake else ""
        lines = [f"{self.verdict}{name}" + (f": {self.words}" if self.words else "")]
        lines += [f"{key}: {text}" for key, text in about.items() if text]
        return "\n".join([*lines, *(f"hint {i}: {hint}" for i, hint in enumerate(self.hints, 1))])


def give_hints(path: Path, name: str) -> Hints:
    """Judge one exercise of a notebook or a Python file, and give hints.

    Raises
    ------
    ValueError
        If there is no such exercise, or the file is neither, or has no such function.
    FileNotFoundError
        If there is no such file.
    """
    exercise = find_exercise(name)
    grade = grade_exercise(read_submission(path), name)
    if grade.status == "missing":
        raise ValueError(f"{path.name} must define a function {name} or call its check, got neither")
    if path.suffix == ".py":
        grade = replace(grade, message=grade.message.replace("code cell 1", path.name))
    return hints_for(exercise, grade)


def hints_for(exercise: Exercise, grade: Grade) -> Hints:
    """Give hints on what was graded.

    Examples
    --------
    >>> import torch
    >>> from tinytx_course.exercises.checking import check, find_exercise
    >>> verdict = check("causal_mask", lambda seq_len: torch.ones(seq_len, seq_len).triu() > 0, display=False)
    >>> grade = Grade(exercise="causal_mask", status="failed", verdict=verdict)
    >>> hints_for(find_exercise("causal_mask"), grade).hints[2]
    'Of the 4 steps of a right program, look at number 4, which gives the result.'
    """
    if grade.passed:
        return Hints(verdict="passed")
    state, verdict = "not yet" if grade.status == "failed" else grade.status, grade.verdict
    if verdict is None:
        words, where = grade.message, where_to_read(exercise)
        return Hints(verdict=state, mistake=grade.mistake, words=words, hints=(where, words))
    texts = [part for part in verdict.parts if isinstance(part, str)]
    where = next((text for text in texts if text.startswith("Where to read")), where_to_read(exercise))
    if not verdict.attempted:
        return Hints(verdict=state, words=texts[0], hints=(where,))
    trial, words = verdict.trial, verdict.finding
    known = next((mistake for mistake in exercise.mistakes if mistake.slug == verdict.mistake), None)
    words = _plain(known.hint or words if known else words)
    call = describe_call(exercise, trial.call) if trial is not None else []
    parts = (part for part in verdict.parts if not isinstance(part, str) and part not in call)
    grids = [grid for part in parts for grid in part]
    got = _as_lines(grid for grid in grids if "expected" not in grid.title)
    if not got and trial is not None and trial.failure is not None:
        got = trial.failure.message
    return Hints(
        verdict=state,
        mistake=verdict.mistake,
        words=words,
        input=as_text(call).removeprefix("The smallest input that shows it: "),
        expected=_as_lines(grid for grid in grids if "expected" in grid.title) or exercise.rule,
        got=got,
        hints=tuple(filter(None, (where, words, _where_it_differs(exercise, known) if known else ""))),
    )


def _as_lines(grids: Iterable[Grid]) -> str:
    """Grids as text; of their titles what says which part they show, such as ``[0]``."""
    titled = [(re.sub("expected|: |yours", "", grid.title).strip(), *grid.lines()[1:]) for grid in grids]
    return "\n".join(line.rstrip() for lines in titled for line in lines if line.strip())


def _plain(words: str) -> str:
    """Words with axes as a product: brackets and commas could be pasted into an answer."""

    def product(axes: re.Match[str]) -> str:
        return " × ".join(f"({axis})" if " " in axis else axis for axis in axes[1].split(", "))

    return _AXES.sub(product, words)


def _where_it_differs(exercise: Exercise, mistake: Mistake) -> str:
    """Steps of the right program that the mistake changes; empty where it is another program, or no text."""
    right = exercise.solve.text
    wrong = next((way.text for way in mistake.wrongs if isinstance(way, Program)), "")
    tree = ast.parse(right if wrong else "")
    steps = [s for node in tree.body if getattr(node, "name", "") == exercise.name for s in _steps(node)]
    matcher = difflib.SequenceMatcher(None, right.splitlines(), wrong.splitlines(), autojunk=False)
    changes = [change for change in matcher.get_opcodes() if change[0] != "equal"]
    lines = {line + 1 for _, begin, end, *_ in changes for line in range(begin, max(end, begin + 1))}
    found = [f"{i}, which {does}" for i, (own, does) in enumerate(steps, 1) if lines & {*own}]
    if len(steps) < 2 or not 1 <= len(found) <= _MOST_STEPS:
        return ""
    place = "what comes before number" if {change[0] for change in changes} == {"insert"} else "number"
    places = ", at ".join(found[:-1]) + ", and at " * (len(found) > 1) + found[-1]
    return f"Of the {len(steps)} steps of a right program, look at {place} {places}."


def _steps(outer: ast.stmt, function: str = "") -> Iterator[tuple[range, str]]:
    """Lines of each statement within another one, and what it does."""
    for step in [*getattr(outer, "body", []), *getattr(outer, "orelse", [])]:
        inner, does = getattr(step, "body", None), "decides how to go on"
        target = getattr(step, "targets", [getattr(step, "target", None)])[0]
        names = _names(target) if target else ""
        if isinstance(step, ast.FunctionDef):
            does = f"begins the function `{step.name}`"
        elif isinstance(step, ast.Return):
            does = f"gives the result{function}"
        elif isinstance(step, ast.For):
            does = f"begins the loop with {names}" if names else "begins the loop"
        elif isinstance(step, ast.Expr):
            path = re.split(r"\(", ast.unparse(step.value))[0].split(".")
            does = f"calls `{path[-1]}`" if path[0] in NAMES else f"changes `{path[0]}`"
        elif names:
            does = f"computes {names}"
        yield range(step.lineno, inner[0].lineno if inner else (step.end_lineno or step.lineno) + 1), does
        yield from _steps(step, f" of `{step.name}`" if isinstance(step, ast.FunctionDef) else function)


def _names(target: ast.expr) -> str:
    """Variables that an expression names, without indices, attributes and arguments."""
    bare = re.split(r"[\[.(]", ast.unparse(target).strip("()"))[0]
    return " and ".join(f"`{name}`" for name in _WORD.findall(bare) if name != "_")
