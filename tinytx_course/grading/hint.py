"""Hints of rising help for one exercise: where to read, what is wrong, which step to look at; no answers.

The step comes from the file of the exercise: it is where the program with the mistake differs from the right
one. Words of a mistake may quote code. No hint shares five tokens in a row with a right program, so they are
shortened: axes ``(B, T, D)`` become ``B × T × D``; indices, arguments in brackets and the end of a formula
become ``…``, and so does the end of what a right program still shares.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tinytx_course.exercises.card import Grid, as_text
from tinytx_course.exercises.catalogue import Mistake, Program
from tinytx_course.exercises.checking import EXERCISES, nearest_first
from tinytx_course.exercises.exercise import Exercise
from tinytx_course.exercises.telling import describe_call, where_to_read
from tinytx_course.grading.grades import Grade
from tinytx_course.grading.running import grade_exercise
from tinytx_course.grading.submission import read_submission

#: So many tokens in a row, and a hint would quote a solution.
QUOTE = 5
_WORD = re.compile(r"\w+")
_COMMENT = re.compile(r"#.*")
_TOKEN = re.compile(r"\w+|[^\w\s`]")
_AXIS = r"[\w.]+(?: ?[·+] ?\w+)*"
_AXES = re.compile(rf"(?<!\w)\((?=[^()]*[A-Z])((?:{_AXIS}, )+{_AXIS})\)")
_LONG_NAME = re.compile(r"(?:\b[A-Za-z_]\w*\.)+(\w+\.[A-Za-z_])")
_BRACKETS = re.compile(r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)|\[[^\[\]]*\]")
_PROSE = re.compile(r"[A-Za-z]\w* \w|^[A-Za-z]+(-|, )[a-z]+$")
_LITERAL = re.compile(r"-?\d+|True|False|None")
_OPERAND = r"\w+(?:\.\w+)*(?:\([^()]*\)|\[[^\[\]]*\])*"
_FORMULA = re.compile(rf"({_OPERAND}(?: [-+*/@<>]=? | ?== ?| ?= ?))(?:-?{_OPERAND}(?: [-+*/@<>]=? | ?= ?)?)+")
_MOST_STEPS = 3  # more, and it is another program


@dataclass(frozen=True, kw_only=True)
class Hints:
    """What is known of a learner's answer to an exercise.

    Attributes
    ----------
    verdict : str
        ``passed``, ``not yet`` or ``not attempted``.
    mistake : str or None
        Its name, if it is a known one.
    words : str
        What is wrong.
    input, expected, got : str
        The smallest input that shows it, as far as one call does.
    hints : tuple of str
        Of rising help; without the name of a mistake only where to read.
    """

    verdict: str
    mistake: str | None = None
    words: str = ""
    input: str = ""
    expected: str = ""
    got: str = ""
    hints: tuple[str, ...] = ()

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
    if name not in EXERCISES:
        known = f"the known ones, the nearest first: {', '.join(nearest_first(name))}"
        raise ValueError(f"--exercise must be the name of an exercise, got {name!r}; {known}")
    grade = grade_exercise(read_submission(path), name)
    if grade.status == "missing":
        raise ValueError(f"{path.name} must define a function {name} or call its check, got neither")
    if path.suffix == ".py":
        grade = replace(grade, message=grade.message.replace("code cell 1", path.name))
    return hints_for(EXERCISES[name], grade)


def hints_for(exercise: Exercise, grade: Grade) -> Hints:
    """Give hints on what was graded.

    Examples
    --------
    >>> import torch
    >>> from tinytx_course.exercises.checking import check
    >>> verdict = check("causal_mask", lambda seq_len: torch.ones(seq_len, seq_len).triu() > 0, display=False)
    >>> grade = Grade(exercise="causal_mask", status="failed", verdict=verdict)
    >>> hints_for(EXERCISES["causal_mask"], grade).hints[2]
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
    if known is not None or exercise.recognise is not None:
        words = _shortened(words, exercise)
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


def _shortened(words: str, exercise: Exercise) -> str:
    """Words of a mistake without what could be pasted into an answer."""
    words = _AXES.sub(lambda axes: axes[1].replace(", ", " × "), words)
    words = _LONG_NAME.sub(r"\1", words.replace("()", ""))
    words = re.sub(r"(\.\w+)\(…\)", r"\1…", _BRACKETS.sub(_without_code, words))
    words = _FORMULA.sub(_without_end, words)
    right = _COMMENT.sub("", exercise.solve.text)
    for pattern in (_TOKEN, _WORD):
        quotes = {tuple(token[0] for token in run) for run in _runs(pattern, right)}
        while run := next((run for run in _runs(pattern, words) if tuple(t[0] for t in run) in quotes), None):
            words = f"{words[: run[-2].start()]}…{words[run[-1].end() :]}"
    return words


def _runs(pattern: re.Pattern[str], text: str) -> Iterator[list[re.Match[str]]]:
    tokens = [*pattern.finditer(text)]
    return (tokens[i : i + QUOTE] for i in range(len(tokens) - QUOTE + 1))


def _without_code(brackets: re.Match[str]) -> str:
    """Brackets around prose or a name as they are, around arguments as ``(…)``; indices as ``…``."""
    inner, n_tokens = brackets[0][1:-1], len(_TOKEN.findall(brackets[0])) - 2
    if brackets[0][0] == "[":
        return "…" if n_tokens > 1 else brackets[0]
    if _PROSE.search(inner):
        return f"({_BRACKETS.sub(_without_code, inner)})"
    return "(…)" if n_tokens > 2 or _LITERAL.fullmatch(inner) else brackets[0]


def _without_end(formula: re.Match[str]) -> str:
    parts = [_TOKEN.findall(part) for part in formula[0].split("…")]
    too_long = QUOTE - (len(parts) == 1)  # with a comma before the formula
    return f"{formula[1]}…" if max(map(len, parts)) >= too_long else formula[0]


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
    return f"Of the {len(steps)} steps of a right program, look at {place} {', and at '.join(found)}."


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
            does = f"begins the loop with {names}"
        elif isinstance(step, ast.Expr):
            does = f"changes {_names(step.value)}"
        elif names:
            does = f"computes {names}"
        yield range(step.lineno, inner[0].lineno if inner else (step.end_lineno or step.lineno) + 1), does
        yield from _steps(step, f" of `{step.name}`" if isinstance(step, ast.FunctionDef) else function)


def _names(target: ast.expr) -> str:
    """Variables that an expression names, without indices, attributes and arguments."""
    bare = re.split(r"[\[.(]", ast.unparse(target).strip("()"))[0]
    return " and ".join(f"`{name}`" for name in _WORD.findall(bare))
